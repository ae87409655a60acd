"""The magnitudes of each feature, and an ordinary value, in one pass."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from lloydia.backends.cuda.flow import programs_each
from lloydia.backends.cuda.launching import ceil_div, next_power, processors
from lloydia.backends.cuda.recording import launch

__all__ = ["bounds_of", "magnitudes", "queue_bounds", "read_bounds"]


@triton.jit(do_not_specialize=["n", "d"])
def extent_kernel(X, n, d, bounds, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    member = tl.program_id(2).to(tl.int64)
    X += member * n * d
    bounds += member * 3 * d
    f = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    column = f < d
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    kind: tl.constexpr = tl.float64 if double else tl.float32
    integer: tl.constexpr = tl.int64 if double else tl.int32
    none: tl.constexpr = 0x7FFFFFFFFFFFFFFF if double else 0x7FFFFFFF
    largest = tl.zeros((COLUMNS,), integer)
    below = tl.zeros((COLUMNS,), integer)
    for block in range(tl.program_id(0), tl.cdiv(n, ROWS), tl.num_programs(0)):
        rows = block * ROWS + tl.arange(0, ROWS)
        at = rows.to(tl.int64)[:, None] * d + f[None, :]
        x = tl.load(X + at, mask=(rows < n)[:, None] & column[None, :], other=0.0).to(kind)
        # Magnitudes are ordered as the integers that their bits are; NaN comes last.
        bits = x.to(integer, bitcast=True) & none
        largest = tl.maximum(largest, tl.max(bits, 0))
        if block == 0:
            total = tl.sum(x.to(tl.float64), 0)
            mean = total / tl.minimum(n, ROWS)
            tl.store(bounds + 2 * d + f, mean.to(tl.int64, bitcast=True), mask=column)
        # The smallest is what most is missing below `none`: all of `bounds` starts at 0.
        below = tl.maximum(below, tl.max(tl.where(bits == 0, 0, none - bits), 0))
    tl.atomic_max(bounds + f, largest.to(tl.int64), mask=column, sem="relaxed")
    tl.atomic_max(bounds + d + f, below.to(tl.int64), mask=column, sem="relaxed")


def queue_bounds(X: torch.Tensor) -> torch.Tensor:
    """Queue the measurement of rows; :func:`read_bounds` reads what this returns.

    Of shape (n, d), or (members, n, d) for a batch.
    """
    n, d = X.shape[-2:]
    members = X.numel() // (n * d)
    bounds = torch.zeros((members, 3, d), dtype=torch.int64, device=X.device)
    columns = min(64, next_power(d))
    rows = 4096 // columns
    blocks = min(ceil_div(n, rows), programs_each(8 * processors(X.device), members))
    launch(
        extent_kernel, (blocks, ceil_div(d, columns), members),
        X, n, d, bounds, ROWS=rows, COLUMNS=columns,
    )  # fmt: skip
    return bounds


def read_bounds(
    found: NDArray[np.int64], double: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest and smallest non-zero magnitudes, and the mean of the first few rows.

    Each has shape (members, d).  The largest is NaN or infinity where there is such a value; the
    smallest is infinity where all are 0.  `double` is whether the rows are float64.
    """
    largest, smallest = bounds_of(found[:, :2].swapaxes(0, 1), double)
    return largest, smallest, found[:, 2].view(np.float64)


def bounds_of(
    found: NDArray[np.int64], double: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the magnitudes that a kernel found: the largest, and what most is missing.

    Both as integers, one after the other along the first axis; see :func:`read_bounds`.
    """
    none = 0x7FFFFFFFFFFFFFFF if double else 0x7FFFFFFF
    bits = np.stack([found[0], none - found[1]]).astype(np.int64 if double else np.int32)
    both = bits.view(np.float64 if double else np.float32).astype(np.float64)
    return both[0], np.where(found[1] == 0, np.inf, both[1])


def magnitudes(
    found: NDArray[np.int64], double: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return what :func:`read_bounds` returns of one data set: each of shape (d,)."""
    largest, smallest, ordinary = (values[0] for values in read_bounds(found, double))
    return largest, smallest, ordinary
