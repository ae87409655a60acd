r"""Recheck ambiguous rows by D to every centre, where centres are few.

A table of D, rows by centres, stays in registers.  It is computed in the type of the centres, with
one fused operation for each square, so that every square goes through at most d additions: the
bound of :mod:`recheck_pairs` for float32 holds with m = d.  In float64, canonical D and this D each
have an error of at most ``g = (m + 3) 2**-53 (1 + 2**-10)``, so two of each differ by at most four
times that: if one D exceeds another by a part of ``(d + 4) 2**-50``, its canonical D is larger.

Where several centres are closer than that, canonical D to all centres decides, one row at a time:
such rows are rare.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import (
    N_AMBIGUOUS,
    N_RECHECKED,
    STOPPED,
    first_row,
    item_state,
    programs_each,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.matmul.fp16_centers import Fp16Centers
from lloydia.backends.cuda.matmul.recheck_exact import LAST, canonical_nearest
from lloydia.backends.cuda.matmul.row_lists import change
from lloydia.backends.cuda.protocols import LabelChanges, Rows
from lloydia.backends.cuda.rows.distances import columns_of
from lloydia.backends.cuda.runtime.launching import EXACT, launch, next_power, processors

__all__ = ["recheck_all"]

# Rows of a table and its size, at most; 2**LEVELS features are loaded at once.
ROWS, TABLE, LEVELS = 16, 4096, 3
# Programs on a multiprocessor and registers of a thread, for tables above a quarter of TABLE or
# not.
LARGE, SMALL = (4, 128), (6, 80)
# Four roundings of float32, or eight of float64, and the absolute error near 0.
ROUNDING, LOST = tl.constexpr(2.0**-22), tl.constexpr(2.0**-100)
DOUBLE_ROUNDING, DOUBLE_LOST = tl.constexpr(2.0**-50), tl.constexpr(2.0**-1000)
# ONE is above all column numbers.
ONE = tl.constexpr(1 << 16)
# Features that are loaded at once for canonical D, of few rows: it must not cost others registers.
EXACT_FEATURES = tl.constexpr(8)


@triton.jit
def table_of(x_at, c_at, size, d, D, LEVELS: tl.constexpr):
    """Add the squared differences of rows and centres, feature by feature, to the table D.

    `x_at` points to the rows' first feature, `c_at` to that of the centres, whose features are
    `size` apart.  Features of rows are prefetched.
    """
    CHUNK: tl.constexpr = 2**LEVELS
    step = tl.arange(0, CHUNK)[None, :]
    x_at = x_at[:, None] + step
    end = tl.zeros(c_at.shape, tl.int32) + d
    prefetched = tl.load(x_at, mask=step < d, other=0.0)
    for f in tl.range(0, d, CHUNK, num_stages=1):
        x = columns_of(prefetched.to(D.dtype), LEVELS)
        x_at += CHUNK
        prefetched = tl.load(x_at, mask=f + CHUNK + step < d, other=0.0)
        for s in tl.static_range(CHUNK):
            c = tl.load(c_at, mask=f + s < end, other=0.0)
            c_at += size
            gap = tl.reshape(x[s], (D.shape[0],))[:, None] - c[None, :]
            D = tl.fma(gap, gap, D)
    return D


@triton.jit
def nearest_in(D, d, double: tl.constexpr):
    """Return the nearest column of each row, and whether all other D are certainly larger.

    `D` is not negative.  Where another D may be as small, or none is finite, the column is invalid.
    """
    # Bits of non-negative floats are ordered as the floats; no comparison with NaN is true.
    bits: tl.constexpr = tl.int64 if double else tl.int32
    least = tl.min(D.to(bits, bitcast=True), 1).to(D.dtype, bitcast=True)
    roundings = (d + 4).to(D.dtype)
    if double:
        top = least * (1.0 + roundings * DOUBLE_ROUNDING) + DOUBLE_LOST
    else:
        top = least * (1.0 + roundings * ROUNDING) + LOST
    # A single column gives its number plus ONE; several give at least 2 ONE.
    column = tl.arange(0, D.shape[1])[None, :]
    found = tl.sum(tl.where(D > top[:, None], 0, ONE + column), 1)
    return found & (ONE - 1), found < 2 * ONE


@triton.jit(do_not_specialize=["n", "k", "d"])
def recheck_all_kernel(
    X, n, centers, size, k, d, ambiguous, labels, changed_rows, changed_old, run_state,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    """Write the labels of the rows listed in `ambiguous`, block by block.

    Parameters
    ----------
    X : (batch_size, n, d), IN
    n, size, k, d : int, IN
    centers : float32 or float64 (batch_size, d, size), IN
        The first k columns are centres.
    ambiguous : int32 (batch_size, n), IN
    labels : int32 (batch_size, n), IN and OUT
    changed_rows, changed_old : int32 (batch_size, n), OUT
    run_state : int32 (batch_size, SIZE), IN and OUT
        Counts the rows that changed, and those that needed canonical D.
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    # Both loads are in flight at once.
    stopped, n_listed = tl.load(run_state + STOPPED), tl.load(run_state + N_AMBIGUOUS)
    if stopped != 0:
        return
    kind: tl.constexpr = centers.dtype.element_ty
    ambiguous += first_row(n)
    changed_rows += first_row(n)
    changed_old += first_row(n)
    row, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    centers += tl.program_id(2).to(tl.int64) * d * size
    # Padding columns read the last centre.
    c_at = centers + tl.minimum(j, k - 1)
    for block in range(tl.program_id(0), tl.cdiv(n_listed, ROWS), tl.num_programs(0)):
        mask = block * ROWS + row < n_listed
        rows = tl.load(ambiguous + block * ROWS + row, mask=mask, other=0)
        # Loaded here, so that the wait for it is hidden.
        old = tl.load(labels + rows, mask=mask, other=0)
        D = tl.zeros((ROWS, COLUMNS), kind)
        D = table_of(X + rows.to(tl.int64) * d, c_at, size, d, D, LEVELS)
        D = tl.where((j < k)[None, :], D, float("inf"))
        label, certified = nearest_in(D, d, kind == tl.float64)
        left = mask & ~certified
        n_left = tl.sum(left.to(tl.int32), 0)
        if n_left > 0:
            tl.atomic_add(run_state + N_RECHECKED, n_left, sem="relaxed")
        for _ in range(n_left):
            which = tl.min(tl.where(left, row, ROWS), 0)
            one = tl.zeros((1,), tl.int64) + tl.sum(tl.where(row == which, rows, 0), 0)
            _, nearest = canonical_nearest(
                X + one * d, tl.zeros((1,), tl.int32) + d, centers, k, d, 1, size, 0, 1,
                COLUMNS, EXACT_FEATURES,
            )  # fmt: skip
            label = tl.where(row == which, tl.sum(nearest, 0), label)
            left = left & (row != which)
        # A row that is not finite keeps its label; the host refuses it later.
        found = mask & (label < LAST)
        change(rows, old, label, found, labels, changed_rows, changed_old, run_state)


def recheck_all(
    rows: Rows,
    centers: Fp16Centers,
    ambiguous: torch.Tensor,
    changes: LabelChanges,
) -> None:
    """Queue the recheck of the rows in `ambiguous` against the packed centres."""
    columns = next_power(centers.k, 32)
    n_rows = min(ROWS, TABLE // columns)
    resident, registers = LARGE if n_rows * columns > TABLE // 4 else SMALL
    programs = programs_each(resident * processors(rows.device), rows.batch_size)
    launch(
        recheck_all_kernel, (programs, 1, rows.batch_size),
        rows.X, rows.n_samples, centers.columns, centers.size, centers.k, centers.columns.shape[1],
        ambiguous, *changes,
        ROWS=n_rows, COLUMNS=columns, LEVELS=LEVELS, num_warps=4, maxnreg=registers,
        **EXACT,
    )  # fmt: skip
