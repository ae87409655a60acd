"""The grid of sums, found on the device without waiting for the host.

The numbers are those of :meth:`lloydia.exact.sums.Grid.choose` for rows without weights, except for
the number of limbs, which kernels are launched with.  With more than 8 features the host guesses it
from earlier rows of the same shape; with fewer there is room for as many as rows need as a rule.
The host checks it later.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

import numpy as np
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import power_of_two
from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.magnitudes import magnitude
from lloydia.backends.cuda.rows.totals import exponent_of
from lloydia.backends.cuda.runtime.arena import Arena
from lloydia.backends.cuda.runtime.launching import launch
from lloydia.exact import sums as exact

__all__ = [
    "grid_found_on_device",
    "limbs_before",
    "queue_grid",
    "remember_limbs",
    "write_columns",
]

HEADROOM = tl.constexpr(exact.HEADROOM)

COLUMNS = 256
UNKNOWN_EXPONENTS = np.zeros(0, dtype=np.int64)
# The most shapes whose numbers of limbs are remembered.
REMEMBERED_SHAPES = 1024

_limbs: dict[Hashable, int] = {}


def remember_limbs(X: torch.Tensor, n_limbs: int) -> None:
    """Remember how many limbs the sums of these rows need, unless they have no numbers."""
    if X.is_meta:
        return
    if len(_limbs) >= REMEMBERED_SHAPES:
        _limbs.clear()
    _limbs[X.shape, X.dtype] = n_limbs


def limbs_before(X: torch.Tensor) -> int | None:
    """Return how many limbs earlier rows of this shape needed; None if there were none."""
    return _limbs.get((X.shape, X.dtype))


def grid_found_on_device(
    X: torch.Tensor, memory: torch.Tensor | Arena, n_limbs: int
) -> FixedPointGrid:
    """Return the grid that :func:`queue_grid` writes; the host does not have its exponents."""
    return FixedPointGrid(grid_of(X.shape[0], n_limbs), memory, None)


@lru_cache
def grid_of(n: int, n_limbs: int) -> exact.Grid:
    """Return the grid of n rows whose exponents the host does not have."""
    return exact.Grid(exact.bits_a_limb(n), n_limbs, UNKNOWN_EXPONENTS, 0, False)


@triton.jit
def write_columns(numbers, f, exponent, bits, m, column):
    """Write the scale, the quantum, its inverse and the exponent of columns f, of m in all."""
    raised = tl.minimum(HEADROOM - exponent, 1000)
    step = (exponent + raised - bits).to(tl.int64)
    floats = numbers.to(tl.pointer_type(tl.float64))
    tl.store(floats + f, power_of_two(raised.to(tl.int64)), mask=column)
    tl.store(floats + m + f, power_of_two(step), mask=column)
    tl.store(floats + 2 * m + f, power_of_two(-step), mask=column)
    tl.store(numbers + 4 * m + f, exponent.to(tl.int64), mask=column)


@triton.jit(do_not_specialize=["d", "bits"])
def grid_kernel(bounds, d, bits, numbers, DOUBLE: tl.constexpr, COLUMNS: tl.constexpr):
    """Write the grid of some columns; the last column is the constant 1."""
    m = d + 1
    f = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    largest = magnitude(tl.load(bounds + f, mask=f < d, other=0), DOUBLE)
    write_columns(numbers, f, exponent_of(largest), bits, m, f < m)


def queue_grid(rows: WholeRows, bounds: torch.Tensor, numbers: torch.Tensor) -> None:
    """Queue the writing of the grid of rows whose bounds the device has by then.

    Parameters
    ----------
    rows : WholeRows
    bounds : torch.Tensor
        See :func:`lloydia.backends.cuda.rows.magnitudes.new_bounds`.
    numbers : int64 tensor of shape (5 (d + 1),)
        Those of a :class:`lloydia.backends.cuda.rows.fixed_point_grid.FixedPointGrid`, without the
        frame.
    """
    launch(
        grid_kernel, (rows.n_features // COLUMNS + 1,),
        bounds, rows.n_features, exact.bits_a_limb(rows.n_samples), numbers,
        DOUBLE=rows.X.dtype == torch.float64, COLUMNS=COLUMNS,
    )  # fmt: skip
