"""The items of a batch in a GPU's memory, measured together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.dataset import WIDE
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.rows.magnitudes import new_bounds, read_bounds
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.relocation import replay
from lloydia.exact import sums as exact

__all__ = ["BatchRows", "alike"]

B = TypeVar("B")


@dataclass(frozen=True)
class Measured:
    """The magnitudes of items whose sums have as many limbs; none is weighted.

    Attributes
    ----------
    largest, smallest : ndarray of shape (batch_size, d)
        See :class:`lloydia.exact.sums.Magnitudes`.
    grid : Grid
        Its exponents have shape (batch_size, d + 1).
    """

    largest: NDArray[np.float64]
    smallest: NDArray[np.float64]
    grid: exact.Grid


class BatchRows:
    """The rows of items; for kernels what :class:`Dataset` is for one data set.

    Parameters
    ----------
    X : torch.Tensor of shape (batch_size, n, d)
        Row-major, on the device.
    bounds : torch.Tensor, optional
        As for :class:`Fp16Rows`.

    Attributes
    ----------
    fp16_rows : Fp16Rows
    measured : Measured
        Once it is known.
    """

    measured: Measured
    weights = None

    def __init__(self, X: torch.Tensor, bounds: torch.Tensor | None = None) -> None:
        self.X, self.device, self.wide = X, X.device, WIDE[X.dtype]
        self.dtype = np.dtype(str(self.wide).removeprefix("torch."))
        self.batch_size, self.n_samples, self.n_features = X.shape
        self.fp16_rows = Fp16Rows(self, bounds=bounds)
        replay(*self.fp16_rows.storing)

    @cached_property
    def fixed_point_grid(self) -> FixedPointGrid:
        """The grids on the device, those of one item after the other."""
        grid = self.measured.grid
        columns = np.stack([grid.scale, grid.quantum, 1.0 / grid.quantum], axis=1)
        frames = np.zeros_like(grid.exponents)
        every = [x.ravel() for x in (columns.view(np.int64), frames, grid.exponents)]
        numbers = torch.from_numpy(np.concatenate(every)).to(self.device, non_blocking=True)
        return FixedPointGrid(grid, numbers, None)


def alike(
    X: torch.Tensor,
    made_of: Callable[[BatchRows, torch.Tensor | None], B],
    begin: Callable[[B], None],
) -> Iterator[tuple[list[int], B]]:
    """Yield the numbers of items whose sums have as many limbs, and what is made of these items.

    Single items, and those that are not finite, are left out.  X is as for :class:`BatchRows`,
    whose magnitudes are known when what was made of them is yielded.

    Parameters
    ----------
    X : torch.Tensor
    made_of : callable
        Gets rows and, of all items, their bounds, which it may raise.
    begin : callable
        Does what can be done with all items while their magnitudes are on their way.
    """
    bounds = new_bounds(X)
    # Usually all are alike, so the rows are measured while all of them are stored.
    rows = BatchRows(X, bounds)
    ready: B | None = made_of(rows, bounds)
    on_the_way = AsyncCopy(bounds)
    if len(X) > 1:
        begin(ready)
    largest, smallest = read_bounds(on_the_way.numpy(), X.dtype == torch.float64)
    finite = np.isfinite(largest).all(axis=1)
    largest[~finite] = 1.0
    bits = exact.bits_a_limb(X.shape[1])
    counts = exact.limbs_for(exact.span_of(largest, smallest), bits, rows.dtype)
    groups = [(n_limbs, np.flatnonzero(finite & (counts == n_limbs))) for n_limbs in set(counts)]
    if len(groups[0][1]) < len(X):
        # Its memory is used for others.
        ready = None
    for n_limbs, numbers in sorted(groups):
        if len(numbers) < 2:
            continue
        own = BatchRows(X[numbers]) if ready is None else rows
        exponents = exact.exponents_of(largest[numbers])
        grid = exact.Grid(bits, int(n_limbs), exponents, 0, False)
        own.measured = Measured(largest[numbers], smallest[numbers], grid)
        yield numbers.tolist(), made_of(own, None) if ready is None else ready
