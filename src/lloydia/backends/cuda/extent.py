"""The magnitudes of each feature, and an ordinary value, in one pass."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from lloydia.backends.cuda.launching import ceil_div, next_power, processors

__all__ = ["magnitudes"]


@triton.jit(do_not_specialize=["n", "d"])
def extent_kernel(X, n, d, bounds, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
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


def magnitudes(
    X: torch.Tensor,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest and smallest non-zero magnitudes, and the mean of the first few rows.

    Each has shape (d,).  The largest is NaN or infinity where there is such a value; the smallest
    is infinity where all are 0.
    """
    n, d = X.shape
    double = X.dtype == torch.float64
    none = 0x7FFFFFFFFFFFFFFF if double else 0x7FFFFFFF
    bounds = torch.zeros((3, d), dtype=torch.int64, device=X.device)
    columns = min(64, next_power(d))
    rows = 4096 // columns
    blocks = min(ceil_div(n, rows), 8 * processors(X.device))
    extent_kernel[(blocks, ceil_div(d, columns))](X, n, d, bounds, ROWS=rows, COLUMNS=columns)
    found = bounds.cpu().numpy()
    found[1] = none - found[1]
    bits = found[:2] if double else found[:2].astype(np.int32)
    largest, smallest = bits.view(np.float64 if double else np.float32).astype(np.float64)
    return largest, np.where(found[1] == none, np.inf, smallest), found[2].view(np.float64)
