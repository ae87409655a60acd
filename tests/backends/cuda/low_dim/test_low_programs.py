"""Several programs measure rows, label them, check them again and move them from sum to sum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.ptx.warp_lists import BLOCK, LISTS
from lloydia.backends.cuda.device_functions.run_state import (
    ITERATION,
    N_CHANGED,
    N_RECHECKED,
    SIZE,
    STOPPED,
)
from lloydia.backends.cuda.low_dim import table_sums
from lloydia.backends.cuda.low_dim.assign import assign_kernel
from lloydia.backends.cuda.low_dim.center_table import table_size, tabulate_kernel
from lloydia.backends.cuda.low_dim.grid import measure
from lloydia.backends.cuda.low_dim.recheck import recheck_kernel
from lloydia.backends.cuda.low_dim.scores import CENTERS_PER_STEP
from lloydia.backends.cuda.low_dim.stages import ITERATING, LAST
from lloydia.backends.cuda.low_dim.table_sums import WORDS, copies_of
from lloydia.backends.cuda.low_dim.update import LISTS_PER_PROGRAM, update_kernel
from lloydia.backends.cuda.rows.frame import frame_of
from lloydia.backends.cuda.rows.low_cost import COST, DONE
from lloydia.backends.cuda.runtime.launching import INTERPRETED, ceil_div
from lloydia.exact import sums

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="compiled, whole runs are tested")

POISON = -(1 << 30)
# Entries behind a list that nobody may write to.
GUARD = 64


def nearest(X, centers):
    D = np.zeros((len(X), len(centers)))
    for x, c in zip(X.T.astype(np.float64), centers.T.astype(np.float64)):
        D += (x[:, None] - c) ** 2
    return D.argmin(axis=1)


def rows_of(kind, n, d):
    X = np.random.default_rng(n).normal(scale=5, size=(n, d))
    if kind == "ties":
        return np.rint(X)
    if kind == "full":
        # All but a few are one cluster's, and of numbers whose lower parts are as large as can be.
        X[:] = 0.0
        X[:, 0] = 0.5 + 2.0**-23
        X[:30, 1] = np.arange(30) / 30
        return X
    if kind != "normal":
        # Numbers that span more limbs than a table holds, and than float32 can halve.
        X[::5] *= 2.0 ** (-45 if kind == "wide" else -60)
        X[1::7] *= 2.0 ** (25 if kind == "wide" else 112)
    return X


class Steps:
    """What the kernels of an iteration work with, for so many programs."""

    def __init__(self, X, rows, k, grid, programs, copies, n_replicas):
        n, d = X.shape
        self.rows, self.k, self.grid, self.programs, self.copies = rows, k, grid, programs, copies
        self.n_lists = LISTS * programs
        self.room = ceil_div(ceil_div(n, BLOCK), programs) * (BLOCK // LISTS)
        self.numbers = torch.zeros(5 * (d + 1), dtype=torch.int64)
        floats, magnitudes = self.numbers.view(torch.float64), sums.Magnitudes.of(X)
        floats[: 3 * (d + 1)] = torch.from_numpy(grid.columns)
        frame = frame_of(rows, magnitudes.largest, X.dtype)
        floats[3 * (d + 1) : 4 * (d + 1)] = torch.from_numpy(frame)
        self.labels = torch.full((n + GUARD,), POISON, dtype=torch.int32)
        size = self.n_lists * self.room + GUARD
        self.lists = [torch.full((size,), POISON, dtype=torch.int32) for _ in range(4)]
        self.counts = torch.full((2, self.n_lists), POISON, dtype=torch.int32)
        self.table = torch.full((table_size(k, d),), float("nan"))
        self.own = torch.full((WORDS,), 7, dtype=torch.int32) if copies else None
        self.sums = torch.zeros((n_replicas, grid.n_limbs, k, d + 1), dtype=torch.int64)
        self.state = torch.zeros(SIZE, dtype=torch.int32)
        self.cost = torch.zeros(COST, dtype=torch.int64)

    def assign(self, centers, states):
        n, d = self.rows.shape
        current = torch.from_numpy(centers)
        tabulate_kernel[(1,)](current, self.k, self.numbers, self.table, self.state, d=d)
        rows, old, new, ambiguous = self.lists
        lists = rows, old, new, self.counts[0], ambiguous, self.counts[1], self.room, states
        assign_kernel[(self.programs,)](
            self.rows, n, self.k, self.labels, self.numbers, self.table, self.state, self.cost,
            *lists, d=d, ONE_GROUP=self.k <= CENTERS_PER_STEP.value,
        )  # fmt: skip
        recheck_kernel[(self.programs,)](
            self.rows, self.k, self.labels, current, self.state, self.cost, *lists, d=d
        )

    def update(self):
        n, d = self.rows.shape
        update_kernel[(ceil_div(self.n_lists, LISTS_PER_PROGRAM),)](
            self.rows, n, self.k, None, self.numbers, None, self.labels, self.sums,
            self.grid.n_limbs, self.grid.bits, self.state, *self.lists[:3], self.counts[0],
            self.room, self.n_lists, len(self.sums), self.copies, self.own,
            d=d, RECOVER=False, TABLE=self.copies > 0,
        )  # fmt: skip


def steps_of(kind, n, d, k, dtype, programs, bits):
    """Return the steps of a case, and the rows as an array."""
    rows = torch.from_numpy(rows_of(kind, n, d)).to(getattr(torch, dtype))
    X = rows.to(torch.float64 if dtype == "float64" else torch.float32).numpy()
    magnitudes = sums.Magnitudes.of(X)
    span = int(sums.span_of(magnitudes.largest, magnitudes.smallest))
    exponents = sums.Grid.choose(magnitudes, X.dtype).exponents
    grid = sums.Grid(bits, int(sums.limbs_for(span, bits, X.dtype)), exponents, 0, False)
    copies = copies_of(n, d, k, bits, dtype == "float64")
    return Steps(X, rows, k, grid, programs, copies, 1 + n % 2), X


@pytest.mark.parametrize(("kind", "n", "d", "k", "dtype", "programs", "bits"), [
    # One row; less than a block, and programs without one; a block and one row more.
    ("normal", 1, 1, 1, "float32", 1, 45), ("ties", 130, 2, 3, "float32", 3, 45),
    ("ties", 513, 3, 5, "float32", 2, 45),
    # Programs with one block and with two, and more lists than a program updates together.
    ("normal", 2900, 3, 16, "float32", 3, 45), ("ties", 1900, 2, 5, "float16", 2, 40),
    ("normal", 1500, 3, 17, "bfloat16", 3, 45), ("normal", 1100, 8, 12, "float64", 2, 45),
    # Rows that leave limbs that a table does not hold; tables that are full more than once.
    ("wide", 1700, 5, 32, "float32", 1, 45), ("vast", 1600, 2, 2, "float32", 2, 45),
    ("wide", 1500, 3, 3, "float64", 2, 51), ("vast", 1100, 2, 4, "float64", 1, 51),
    ("full", 1100, 5, 100, "float32", 1, 45),
    # No table, for want of coarse limbs.
    ("wide", 1100, 2, 40, "float32", 3, 50),
])  # fmt: skip
def test_labels_and_sums_are_those_of_the_host(kind, n, d, k, dtype, programs, bits, monkeypatch):
    monkeypatch.setattr(table_sums, "MIN_ROWS", 0)
    steps, X = steps_of(kind, n, d, k, dtype, programs, bits)
    assert (steps.copies > 0) == (bits < 50 or dtype == "float64")
    if kind == "full":
        # Of a program's rows nearly all are one cluster's, which its entries cannot hold at once.
        assert n << (bits + 2) // 2 > steps.copies << 31
    limbs = sums.limbs(X, None, steps.grid)
    rng = np.random.default_rng(0)
    centers = X[np.arange(k) if kind == "full" else rng.choice(n, k, replace=False)].copy()
    before, totals = np.full(n, -1), np.zeros(steps.sums.shape[1:], dtype=np.int64)
    # All rows are labelled; all move; few do; many do; few are labelled anew, and none moves.
    order = (0, 0, 0.0), (0, 1, 0.05), (1, 1, 3.0), (2, 1, 0.05), (3, 0, 0.0)
    for iteration, updates, moved in order:
        steps.state.zero_()
        steps.state[ITERATION.value] = iteration
        steps.assign(centers, ITERATING)
        expected = nearest(X, centers)
        assert (steps.labels[:n].numpy() == expected).all()
        assert steps.state[N_CHANGED.value] == np.count_nonzero(expected != before)
        assert steps.state[N_RECHECKED.value] == steps.counts[1].sum()
        if updates:
            steps.update()
            totals[:] = 0
            np.add.at(totals, (slice(None), expected), limbs)
            before = expected
        assert (steps.sums.sum(dim=0).numpy() == totals).all()
        assert (steps.labels[n:] == POISON).all()
        assert all((part[-GUARD:] == POISON).all() for part in steps.lists)
        centers = (centers + rng.normal(scale=moved, size=centers.shape)).astype(X.dtype)


def test_every_row_that_changed_is_listed_once():
    steps, X = steps_of("ties", 1700, 2, 9, "float32", 2, 45)
    steps.assign(X[:9].copy(), ITERATING)
    old = steps.labels[:-GUARD].clone()
    steps.state[ITERATION.value] = 1
    steps.assign(X[9:18].copy(), ITERATING)
    entries = [
        [part[i * steps.room :][:count] for part in steps.lists[:3]]
        for i, count in enumerate(steps.counts[0].tolist())
    ]
    rows, before, after = (torch.cat(parts) for parts in zip(*entries))
    changed = (old != steps.labels[:-GUARD]).nonzero()[:, 0]
    assert (rows.sort().values == changed).all()
    assert (before == old[rows]).all()
    assert (after == steps.labels[rows]).all()


@pytest.mark.parametrize(("stopped", "done", "states", "runs"), [
    (0, 0, ITERATING, True), (1, 0, ITERATING, False), (2, 0, ITERATING, False),
    (0, 0, LAST, True), (1, 0, LAST, False), (2, 0, LAST, True), (2, 1, LAST, False),
])  # fmt: skip
def test_rows_are_labelled_in_the_states_that_are_asked_for(stopped, done, states, runs):
    steps, X = steps_of("normal", 40, 2, 3, "float32", 1, 45)
    centers = X[:3].copy()
    steps.assign(centers, ITERATING)
    steps.labels[:40] = 7
    steps.state[STOPPED.value], steps.cost[DONE.value] = stopped, done
    steps.assign(centers, states)
    expected = nearest(X, centers) if runs else 7
    assert (steps.labels[:40].numpy() == expected).all()


@triton.jit
def magnitudes_of(X, n, bounds, d: tl.constexpr, ROWS: tl.constexpr):
    measure(X, n, bounds, d, ROWS)


@pytest.mark.parametrize(("n", "d", "dtype", "rows", "programs"), [
    # Less than a block, one, blocks and a row, programs without one.
    (1, 3, "float32", 512, 2), (512, 3, "float32", 512, 3), (1025, 3, "float32", 512, 2),
    (2000, 1, "float16", 256, 3), (700, 5, "float64", 128, 9), (640, 8, "float32", 128, 2),
    (999, 7, "float16", 128, 1), (385, 6, "float64", 128, 2), (300, 2, "float32", 128, 2),
])  # fmt: skip
def test_several_programs_find_the_magnitudes(n, d, dtype, rows, programs):
    rng = np.random.default_rng(n)
    X = (rng.normal(size=(n, d)) * 2.0 ** rng.integers(-10, 10, size=d)).astype(dtype)
    X[rng.random((n, d)) < 0.1] = -0.0
    X[rng.integers(n), 0] = np.finfo(dtype).smallest_subnormal
    X[:, d - 1] = 0
    X[rng.integers(n), rng.integers(d)] = rng.choice([1.0, np.inf, np.nan])
    # What is around them is no row's.
    memory = np.full(n * d + 8 * rows * 8, np.nan, dtype)
    memory[1 : 1 + n * d] = X.ravel()
    bounds = torch.zeros(2 * d, dtype=torch.int64)
    magnitudes_of[(programs,)](torch.from_numpy(memory)[1:], n, bounds, d, rows)
    wide = X if dtype == "float64" else X.astype(np.float32)
    integer = np.int64 if dtype == "float64" else np.int32
    none = np.iinfo(integer).max
    bits = wide.view(integer) & none
    expected = bits.max(axis=0), np.where(bits == 0, 0, none - bits).max(axis=0)
    assert (bounds.view(2, d).numpy() == expected).all()
