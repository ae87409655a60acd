"""The magnitudes of each feature, in one pass."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.run_state import programs_each
from lloydia.backends.cuda.runtime.launching import ceil_div, launch, next_power, processors

__all__ = [
    "add_magnitudes",
    "bounds_of_columns",
    "magnitude",
    "magnitudes",
    "new_bounds",
    "no_magnitudes",
    "queue_bounds",
    "raise_bounds",
    "read_bounds",
]


@triton.jit
def no_magnitudes(ROWS: tl.constexpr, COLUMNS: tl.constexpr, double: tl.constexpr):
    """Return empty maxima of magnitudes and of their complements, for float32 or float64 tiles."""
    largest = tl.zeros((ROWS, COLUMNS), tl.int64 if double else tl.int32)
    return largest, largest - 1


@triton.jit
def add_magnitudes(largest, smallest, x):
    """Return elementwise maxima, updated with a tile: of magnitudes, and for the smallest ones.

    Magnitudes are ordered as the integers of their bits; NaN comes last.  For the smallest non-zero
    magnitude, 1 is subtracted from the bits: as unsigned integers, 0 comes last.
    """
    integer: tl.constexpr = largest.dtype
    unsigned: tl.constexpr = tl.uint64 if integer == tl.int64 else tl.uint32
    none: tl.constexpr = 0x7FFFFFFFFFFFFFFF if integer == tl.int64 else 0x7FFFFFFF
    bits = x.to(integer, bitcast=True) & none
    less = (bits - 1).to(unsigned, bitcast=True)
    smallest = tl.minimum(smallest.to(unsigned, bitcast=True), less)
    return tl.maximum(largest, bits), smallest.to(integer, bitcast=True)


@triton.jit
def bounds_of_columns(largest, smallest):
    """Return the largest of each column, and the largest complement of its smallest."""
    integer: tl.constexpr = largest.dtype
    unsigned: tl.constexpr = tl.uint64 if integer == tl.int64 else tl.uint32
    none: tl.constexpr = 0x7FFFFFFFFFFFFFFF if integer == tl.int64 else 0x7FFFFFFF
    least = tl.min(smallest.to(unsigned, bitcast=True), 0).to(integer, bitcast=True)
    # All of `bounds` starts at 0, which also means that there is no magnitude.
    below = tl.where(least < 0, 0, none - 1 - least)
    return tl.max(largest, 0), below


@triton.jit
def raise_bounds(bounds, largest, below, f, d):
    """Raise the bounds of features f, where these are larger, which is rare."""
    for which in tl.static_range(2):
        at = bounds + which * d + f
        found = (largest if which == 0 else below).to(tl.int64)
        known = tl.load(at, mask=f < d, other=0)
        tl.atomic_max(at, found, mask=(f < d) & (found > known), sem="relaxed")


@triton.jit(do_not_specialize=["n", "d"])
def magnitudes_kernel(X, n, d, bounds, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    batch_item = tl.program_id(2).to(tl.int64)
    X += batch_item * n * d
    bounds += batch_item * 2 * d
    f = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    column = f < d
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    kind: tl.constexpr = tl.float64 if double else tl.float32
    largest, smallest = no_magnitudes(ROWS, COLUMNS, double)
    for block in range(tl.program_id(0), tl.cdiv(n, ROWS), tl.num_programs(0)):
        rows = block * ROWS + tl.arange(0, ROWS)
        at = rows.to(tl.int64)[:, None] * d + f[None, :]
        x = tl.load(X + at, mask=(rows < n)[:, None] & column[None, :], other=0.0).to(kind)
        largest, smallest = add_magnitudes(largest, smallest, x)
    largest, below = bounds_of_columns(largest, smallest)
    raise_bounds(bounds, largest, below, f, d)


def new_bounds(X: torch.Tensor) -> torch.Tensor:
    """Return bounds for rows of shape (n, d), or (batch_size, n, d), before any row is measured.

    They are not initialised: :func:`queue_bounds`, or
    :func:`~lloydia.backends.cuda.rows.fp16_frame.queue_frame`, makes them 0 before kernels raise
    them.  :func:`read_bounds` reads them.
    """
    n, d = X.shape[-2:]
    return torch.empty((X.numel() // (n * d), 2, d), dtype=torch.int64, device=X.device)


def queue_bounds(X: torch.Tensor) -> torch.Tensor:
    """Queue the measurement of rows, and return their bounds: see :func:`new_bounds`."""
    n, d = X.shape[-2:]
    bounds = new_bounds(X).zero_()
    columns = min(64, next_power(d))
    rows = 4096 // columns
    blocks = min(ceil_div(n, rows), programs_each(8 * processors(X.device), len(bounds)))
    launch(
        magnitudes_kernel, (blocks, ceil_div(d, columns), len(bounds)),
        X, n, d, bounds, ROWS=rows, COLUMNS=columns,
    )  # fmt: skip
    return bounds


def read_bounds(
    found: NDArray[np.int64], double: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest and the smallest non-zero magnitudes, each of shape (batch_size, d).

    The largest is NaN or infinity where there is such a value; the smallest is infinity where all
    are 0.  `double` is whether the rows are float64.
    """
    # The bits of the largest, and the complements of those of the smallest.
    found = found.swapaxes(0, 1)
    none = 0x7FFFFFFFFFFFFFFF if double else 0x7FFFFFFF
    bits = found.astype(np.int64 if double else np.int32)
    bits[1] = none - bits[1]
    both = bits.view(np.float64 if double else np.float32).astype(np.float64)
    both[1, found[1] == 0] = np.inf
    return both[0], both[1]


def magnitudes(
    found: NDArray[np.int64], double: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return :func:`read_bounds` for a single data set: each of shape (d,)."""
    largest, smallest = read_bounds(found, double)
    return largest[0], smallest[0]


@triton.jit
def magnitude(bits, DOUBLE: tl.constexpr):
    """Return the non-negative number with these bits, as float64."""
    if DOUBLE:
        return bits.to(tl.float64, bitcast=True)
    return bits.to(tl.int32).to(tl.float32, bitcast=True).to(tl.float64)
