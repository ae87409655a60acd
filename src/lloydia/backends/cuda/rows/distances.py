"""Canonical distances D (:mod:`lloydia.exact.distance`): float64, in feature order, none fused.

Each row has a thread, which adds its squares one after the other.  Launch these kernels with
:data:`~lloydia.backends.cuda.runtime.launching.EXACT`.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import first_row
from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.distinct import ROWS_PER_MARK, see
from lloydia.backends.cuda.rows.totals import load_weights, raise_to
from lloydia.backends.cuda.runtime.launching import (
    EXACT,
    ceil_div,
    given,
    launch,
    next_power,
    where_given,
)

__all__ = [
    "add_in_order",
    "distances",
    "levels",
    "own_distances",
    "pair_distances",
    "squares",
    "table",
]

BLOCK = tl.constexpr(128)  # rows of a program: one for each thread of four warps
OWN = tl.constexpr(32)  # rows of a program of one warp that computes D to the rows' own centres
LINE = 128  # bytes of a cache line
WIDTH = tl.constexpr(16)  # centres at a time: their sums stay in registers


@triton.jit
def squares(x_at, feature_pitch, inside, c_at, center_pitch, d, COUNT: tl.constexpr):
    """Return D of rows to centres: shape (COUNT, rows).

    `x_at` points to the rows' first feature, `c_at` to that of COUNT float64 centres; the pitches
    are the strides to the next feature.
    """
    total = tl.zeros([COUNT, x_at.shape[0]], tl.float64)
    for _ in range(d):
        x = tl.load(x_at, mask=inside, other=0.0).to(tl.float64)
        gap = x[None, :] - tl.load(c_at)[:, None]
        total += gap * gap
        x_at += feature_pitch
        c_at += center_pitch
    return total


@triton.jit
def halve(tile):
    """Return the even and the odd columns of a tile."""
    return tl.split(tl.reshape(tile, (tile.shape[0], tile.shape[1] // 2, 2)))


@triton.jit
def columns_of(tile, LEVELS: tl.constexpr):
    """Return the ``2**LEVELS`` columns of a tile, in order; one thread gets all of a row."""
    parts = (tile,)
    for level in tl.static_range(LEVELS):
        # Part i has the columns that are i modulo 2**level.
        evens = ()
        odds = ()
        for i in tl.static_range(2**level):
            even, odd = halve(parts[i])
            evens = evens + (even,)
            odds = odds + (odd,)
        parts = evens + odds
    return parts


@triton.jit
def add_in_order(totals, tile, LEVELS: tl.constexpr):
    """Return totals plus the ``2**LEVELS`` columns of a tile, added one after the other."""
    columns = columns_of(tile, LEVELS)
    for i in tl.static_range(2**LEVELS):
        totals += tl.reshape(columns[i], totals.shape)
    return totals


@triton.jit
def pair_distances(x_at, c_at, inside, d, LEVELS: tl.constexpr, STAGES: tl.constexpr = 1):
    """Return D of pairs of a row and a centre, one thread for each pair.

    `inside` masks the pairs.  Threads load and square ``2**LEVELS`` neighbouring features, and then
    exchange them for the squares of one pair.  Loads of rows bypass the L1 cache, which is left to
    the centres; they are STAGES steps ahead.
    """
    CHUNK: tl.constexpr = 2**LEVELS
    step = tl.arange(0, CHUNK)
    x_at = x_at[:, None] + step[None, :]
    c_at = c_at[:, None] + step[None, :]
    total = tl.zeros(inside.shape, tl.float64)
    for f in tl.range(0, d, CHUNK, num_stages=STAGES):
        there = inside[:, None] & (f + step < d)[None, :]
        x = tl.load(x_at, mask=there, other=0.0, eviction_policy="evict_first").to(tl.float64)
        gap = x - tl.load(c_at, mask=there, other=0.0).to(tl.float64)
        total = add_in_order(total, gap * gap, LEVELS)
        x_at += CHUNK
        c_at += CHUNK
    return total


def levels(X: torch.Tensor) -> int:
    """Return the base-2 logarithm of how many features :func:`pair_distances` loads at once."""
    chunk = min(LINE // max(4, X.element_size()), next_power(X.shape[-1]))
    return chunk.bit_length() - 1


@triton.jit(
    do_not_specialize=["labelled", "n", "k", "weighted", "raised", "n_marks"],
    do_not_specialize_on_alignment=["centers", "largest", "seen"],
)
def own_kernel(
    X, labels, labelled, centers, out, n, k, d, weights, weighted, largest, raised, seen, n_marks,
    LEVELS: tl.constexpr,
):  # fmt: skip
    """Write D of rows to their own centres; note the largest term, and which labels occur early.

    D is 0 for a row without a label, such as one that is not finite.  If rows are not `labelled`,
    all have the first centre.  The largest term is noted if it is to be `raised`, and labels are
    if there are marks for them.
    """
    rows = tl.program_id(0).to(tl.int64) * OWN + tl.arange(0, OWN)
    inside = rows < n
    if tl.program_id(0) * OWN < ROWS_PER_MARK * n_marks:
        see(labels, rows, inside, seen)
    rows += first_row(n)
    label = tl.load(labels + rows, mask=where_given(labelled, inside), other=0).to(tl.int64)
    own = first_row(k) + label
    D = pair_distances(X + rows * d, centers + own * d, inside & (label >= 0), d, LEVELS)
    tl.store(out + rows, D, mask=inside)
    if raised != 0:
        D = load_weights(weights, weighted, rows, inside) * D
        largest += tl.program_id(2)
        top = tl.max(D, axis=0)
        # A plain load first: few programs find a larger term.
        if top > tl.load(largest, volatile=True):
            raise_to(largest, top)


def own_distances(
    rows: WholeRows,
    labels: torch.Tensor | None,
    centers: torch.Tensor,
    out: torch.Tensor | None = None,
    largest: torch.Tensor | None = None,
    seen: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return D of every row to the centre of its label: shape (n,), float64.

    Parameters
    ----------
    rows : WholeRows
    labels : tensor of shape (n,), int32, or None
        None: all rows have the first centre.
    centers : tensor of shape (k, d), or (batch_size, k, d), contiguous
    out : tensor of shape (n,), float64, optional
        Receives the result.
    largest : tensor of shape (batch_size,), float64, optional
        Raised to the largest weight times D of each item; it may hold zeros.
    seen : tensor of shape (k,), int32, optional
        Elements become 1 for labels that occur among the first rows.
    """
    n, d = rows.n_samples, rows.n_features
    if out is None:
        out = torch.empty(rows.batch_size * n, dtype=torch.float64, device=rows.device)
    nothing = out.view(torch.int32)
    # At least two steps: a warp with fewer registers leaves room for others.
    most = max(0, next_power(d).bit_length() - 2)
    launch(
        own_kernel, (ceil_div(n, OWN.value), 1, rows.batch_size),
        rows.X, *given(labels, nothing), centers, out, n, centers.shape[-2], d,
        *given(rows.weights, out), *given(largest, out), given(seen, nothing)[0],
        0 if seen is None else len(seen), LEVELS=min(levels(rows.X), most), num_warps=1, **EXACT,
    )  # fmt: skip
    return out


def table(centers: torch.Tensor, multiple: int) -> torch.Tensor:
    """Return centres as float64, feature by feature, padded with zeros: shape (d, padded k)."""
    k, d = centers.shape
    out = centers.new_zeros((d, ceil_div(k, multiple) * multiple), dtype=torch.float64)
    out[:, :k] = centers.T
    return out


@triton.jit(do_not_specialize=["n", "k"])
def distances_kernel(X, centers, out, n, k, pitch, d):
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    inside = rows < n
    D = squares(X + rows * d, 1, inside, centers + j, pitch, d, WIDTH)
    at = out + rows[None, :] * k + j[:, None]
    tl.store(at, tl.sqrt(D).to(out.dtype.element_ty), mask=inside[None, :] & (j < k)[:, None])


def distances(rows: WholeRows, centers: torch.Tensor) -> torch.Tensor:
    """Return the distance (not squared) of every row to every centre: shape (n, k), `rows.wide`."""
    (n, d), k = rows.X.shape, len(centers)
    out = torch.empty((n, k), dtype=rows.wide, device=rows.device)
    padded = table(centers, WIDTH.value)
    grid = (ceil_div(n, BLOCK.value), padded.shape[1] // WIDTH.value)
    launch(
        distances_kernel, grid, rows.X, padded, out, n, k, padded.shape[1], d, num_warps=4, **EXACT
    )  # fmt: skip
    return out
