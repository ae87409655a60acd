"""Candidates of more than 8 features: D is computed for pairs of a row and a candidate.

A candidate changes the sum of all terms only by the rows that it is nearer to than their seeds.
:mod:`screen` lists the pairs for which that is possible.  Without a list, or if it overflows
because there are few seeds yet, all pairs are evaluated.
"""

from __future__ import annotations

from typing import Protocol

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import rint
from lloydia.backends.cuda.device_functions.run_state import wait_for_previous_kernel
from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.distances import levels, pair_distances
from lloydia.backends.cuda.rows.totals import load_weights
from lloydia.backends.cuda.runtime.devices import free_bytes
from lloydia.backends.cuda.runtime.launching import EXACT, given, launch, processors
from lloydia.backends.cuda.seeding.int8_rows import (
    CANDIDATES,
    MOST_FEATURES,
    Int8Rows,
    bytes_a_row,
    reach_of,
)
from lloydia.backends.cuda.seeding.screen import queue_reach, queue_screen
from lloydia.backends.cuda.seeding.tiles import best_of, factors

__all__ = ["Pairs"]

# Pairs of a program, one for each thread of its warps; programs on a multiprocessor; steps of
# features that are loaded ahead.
BLOCK, WARPS, RESIDENT, STAGES = 32, 1, 10, 3
# The most features that are loaded at once, as a power of 2.
MOST_LEVELS = 5
# Pairs per row that a list has room for.
PAIRS_A_ROW = 2


@triton.jit
def listed_of(n_pairs, capacity):
    """Return the number of pairs in the list, or -1 if there is no list or it overflowed."""
    listed = tl.full([], -1, tl.int64)
    if n_pairs is not None:
        found = tl.load(n_pairs)
        listed = tl.where(found <= capacity, found, -1)
    return listed


@triton.jit(
    do_not_specialize=["weighted", "n", "bits", "count", "capacity"],
    do_not_specialize_on_alignment=["changes"],
)
def savings_kernel(
    X, table, nearest, weights, weighted, terms, pairs, squares, n_pairs, changes, step, n, d, bits,
    count, capacity, LEVELS: tl.constexpr, STAGES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Subtract from the changes what each candidate saves of the sum of all terms.

    Parameters
    ----------
    X : (n, d), IN
    table : (CANDIDATES, d), IN
        The candidates, float32 or float64.
    nearest : float64 (n,), IN
    weights, weighted
        As for :func:`~lloydia.backends.cuda.rows.totals.load_weights`.
    terms : float64 (2,), IN and OUT
        The grid of the integers follows from the first; the second becomes 0.
    pairs : int64 (capacity,), IN, or None
    squares : float64 (capacity,), OUT, or None
        D of the pairs.
    n_pairs : int64 (1,), IN, or None
    changes : int64 (steps, count), IN and OUT
    step : int32 (1,), IN
    n, d, bits, count, capacity : int, IN
    """
    # Not launched early: waiting programs would occupy the multiprocessors that the screen needs.
    low, high = factors(terms, bits)
    if tl.program_id(0) == 0:
        tl.store(terms + 1, 0.0)
    listed = listed_of(n_pairs, capacity)
    n_all = tl.where(listed < 0, n.to(tl.int64) * count, listed)
    candidate = tl.arange(0, CANDIDATES)
    sums = tl.zeros([CANDIDATES, BLOCK], tl.int64)
    for block in range(tl.program_id(0).to(tl.int64), tl.cdiv(n_all, BLOCK), tl.num_programs(0)):
        p = block * BLOCK + tl.arange(0, BLOCK)
        inside = p < n_all
        row = p // count
        candidate_of_pair = (p - row * count).to(tl.int32)
        if pairs is not None:
            pair = tl.load(pairs + p, mask=p < listed, other=0)
            row = tl.where(listed < 0, row, pair // CANDIDATES)
            candidate_of_pair = tl.where(
                listed < 0, candidate_of_pair, (pair % CANDIDATES).to(tl.int32)
            )
        D = pair_distances(X + row * d, table + candidate_of_pair * d, inside, d, LEVELS, STAGES)
        if squares is not None:
            tl.store(squares + p, D, mask=p < listed)
        near = tl.load(nearest + row, mask=inside, other=0.0)
        weight = load_weights(weights, weighted, row, inside)
        D = weight * tl.minimum(D, near)
        saved = (rint(weight * near * low * high) - rint(D * low * high)).to(tl.int64)
        sums += tl.where(candidate_of_pair[None, :] == candidate[:, None], saved[None, :], 0)
    total = tl.sum(sums, axis=1)
    to = changes + tl.load(step) * count + candidate
    tl.atomic_add(to, -total, mask=(candidate < count) & (total != 0), sem="relaxed")


@triton.jit(
    do_not_specialize=["n", "count", "capacity"], do_not_specialize_on_alignment=["changes"]
)
def accept_kernel(
    X, table, nearest, reach, residuals, frame, pairs, squares, n_pairs, changes, step, n, d,
    count, capacity, LEVELS: tl.constexpr, STAGES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Make the candidate with the least change a seed, and update `nearest` and `reach`.

    Parameters
    ----------
    X, table, squares, n_pairs, step, n, d, count, capacity
        As for :func:`savings_kernel`, IN.
    nearest : float64 (n,), IN and OUT
    reach, residuals, frame
        u, r and s of :mod:`int8_rows`, OUT, IN, IN; or None.
    pairs, changes : int64, IN
    """
    wait_for_previous_kernel()
    best = best_of(changes + tl.load(step) * count, count)
    listed = listed_of(n_pairs, capacity)
    n_all = tl.where(listed < 0, n.to(tl.int64), listed)
    for block in range(tl.program_id(0).to(tl.int64), tl.cdiv(n_all, BLOCK), tl.num_programs(0)):
        p = block * BLOCK + tl.arange(0, BLOCK)
        inside = p < n_all
        row = p
        c_at = table + tl.zeros_like(p) + best * d
        if pairs is None:
            D = pair_distances(X + row * d, c_at, inside, d, LEVELS, STAGES)
        elif listed >= 0:
            pair = tl.load(pairs + p, mask=inside, other=0)
            row = pair // CANDIDATES
            inside = inside & (pair % CANDIDATES == best)
            D = tl.load(squares + p, mask=inside, other=0.0)
        else:
            D = pair_distances(X + row * d, c_at, inside, d, LEVELS, STAGES)
        near = tl.load(nearest + row, mask=inside, other=0.0)
        nearer = inside & (D < near)
        tl.store(nearest + row, D, mask=nearer)
        if reach is not None:
            residual = tl.load(residuals + row, mask=nearer, other=0.0)
            tl.store(reach + row, reach_of(D, residual, frame), mask=nearer)


class Seeding(Protocol):
    """A seeding: see :class:`lloydia.backends.cuda.seeding.state.SeedingState`."""

    rows: WholeRows
    nearest: torch.Tensor
    terms: torch.Tensor
    table: torch.Tensor
    step: torch.Tensor
    bits: int


class Pairs:
    """The candidates of a seeding, evaluated pair by pair.

    Parameters
    ----------
    rows : WholeRows
    stay : bool
        Whether the rows stay in place, so that an 8-bit copy of them pays.

    Attributes
    ----------
    int8_rows : Int8Rows or None
        The copy, once there is one, if there is memory for it.
    reach : tensor of shape (n,), float32, or None
        u of :mod:`int8_rows`; `stale` is whether it must be computed again.
    pairs, squares, n_pairs : tensor or None
        The list, the D of its pairs, and its length.
    """

    def __init__(self, rows: WholeRows, stay: bool) -> None:
        self.rows, self.stay = rows, stay
        self.stale = True
        self.int8_rows: Int8Rows | None = None
        self.reach: torch.Tensor | None = None
        self.pairs: torch.Tensor | None = None
        self.squares: torch.Tensor | None = None
        self.n_pairs: torch.Tensor | None = None

    def begin(self, nearest: torch.Tensor) -> None:
        """Queue the copy of the rows, if there is room for it, and u where it is stale."""
        n, device = self.rows.n_samples, self.rows.device
        if self.int8_rows is None and self._has_room():
            self.int8_rows = Int8Rows(self.rows)
            for queue in self.int8_rows.stages(self.rows):
                queue()
            capacity = max(CANDIDATES.value, PAIRS_A_ROW * n)
            self.reach = torch.empty(n, dtype=torch.float32, device=device)
            self.pairs = torch.empty(capacity, dtype=torch.int64, device=device)
            self.squares = torch.empty(capacity, dtype=torch.float64, device=device)
            self.n_pairs = torch.zeros(1, dtype=torch.int64, device=device)
        if self.int8_rows is not None and self.stale:
            assert self.reach is not None
            queue_reach(self.int8_rows, nearest, self.reach)
            self.stale = False

    def _has_room(self) -> bool:
        """Return whether the copy pays, and takes at most half of the free memory."""
        d = self.rows.n_features
        if not self.stay or d > MOST_FEATURES:
            return False
        needed = self.rows.n_samples * (bytes_a_row(d) + 16 * PAIRS_A_ROW + 4)
        return 2 * needed <= free_bytes(self.rows.device, 2 * needed)

    def improve_all(self) -> None:
        """Mark candidate 0, which is not evaluated, as possibly nearer for all rows."""
        self.stale = True
        if self.n_pairs is not None:
            self.n_pairs.fill_(self._capacity() + 1)

    def encode(self, state: Seeding) -> None:
        """Queue the encoding of the candidates in the table, if there is an 8-bit copy."""
        if self.int8_rows is not None and self.n_pairs is not None:
            self.n_pairs.zero_()
            self.int8_rows.encode(state.table)

    def evaluate(self, state: Seeding, changes: torch.Tensor, count: int) -> None:
        """Queue the changes by `count` encoded candidates; `changes` is 0 before."""
        if self.int8_rows is not None:
            assert self.reach is not None
            assert self.pairs is not None
            assert self.n_pairs is not None
            queue_screen(self.int8_rows, self.reach, count, self.pairs, self.n_pairs)
        launch(
            savings_kernel, self._programs(),
            self.rows.X, state.table, state.nearest, *given(self.rows.weights, state.nearest),
            state.terms, self.pairs, self.squares, self.n_pairs, changes, state.step,
            *self.rows.X.shape, state.bits, count, self._capacity(), LEVELS=self._levels(),
            STAGES=STAGES, BLOCK=BLOCK, num_warps=WARPS, **EXACT,
        )  # fmt: skip

    def accept(self, state: Seeding, changes: torch.Tensor, count: int) -> None:
        """Queue the kernel that makes the candidate of least change a seed."""
        known, copy = self.n_pairs, self.int8_rows
        launch(
            accept_kernel, self._programs(),
            self.rows.X, state.table, state.nearest, self.reach, copy and copy.residuals,
            copy and copy.frame, self.pairs, self.squares, known, changes, state.step,
            *self.rows.X.shape, count, self._capacity(), LEVELS=self._levels(),
            STAGES=STAGES, BLOCK=BLOCK, num_warps=WARPS, **EXACT,
        )  # fmt: skip

    def _capacity(self) -> int:
        return 0 if self.pairs is None else len(self.pairs)

    def _levels(self) -> int:
        return min(levels(self.rows.X), MOST_LEVELS)

    def _programs(self) -> tuple[int]:
        return (RESIDENT * processors(self.rows.device),)
