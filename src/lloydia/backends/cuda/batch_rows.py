"""The members of a batch in a GPU's memory, measured together."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.batch_halves import BatchHalves
from lloydia.backends.cuda.extent import queue_bounds, read_bounds
from lloydia.backends.cuda.placed import WIDE
from lloydia.backends.cuda.sums import Lattice
from lloydia.exact import sums as exact

__all__ = ["BatchRows", "measure"]


class BatchRows:
    """Members that have sums of as many limbs; none is weighted.

    Parameters
    ----------
    X : torch.Tensor of shape (members, n, d)
        Row-major, on the device.
    extents : list of Extent
        Of each member.

    Attributes
    ----------
    grids : list of Grid
        Of each member.
    halves : BatchHalves
    lattice : Lattice
        Its columns and exponents are those of one member after the other.
    """

    def __init__(self, X: torch.Tensor, extents: list[exact.Extent]) -> None:
        self.X, self.extents = X, extents
        self.device = X.device
        self.members, self.n_samples, self.n_features = X.shape
        self.wide = WIDE[X.dtype]
        self.halves = BatchHalves(self)
        self.dtype = np.dtype(str(self.wide).removeprefix("torch."))
        self.grids = [exact.Grid.choose(extent, self.dtype) for extent in extents]

    @cached_property
    def lattice(self) -> Lattice:
        """The grids on the device."""
        first = self.grids[0]
        exponents = np.stack([grid.exponents for grid in self.grids])
        grid = exact.Grid(first.bits, first.n_limbs, exponents, 0, False)
        numbers = np.stack([grid.scale, grid.quantum, 1.0 / grid.quantum], axis=1)
        there = torch.from_numpy(numbers).to(self.device)
        return Lattice(grid, there, torch.from_numpy(exponents).to(self.device), None, None)


def measure(X: torch.Tensor) -> tuple[list[exact.Extent], NDArray[np.bool_]]:
    """Return the extent of each member of shape (n, d), and whether its rows are finite."""
    found = read_bounds(queue_bounds(X).cpu().numpy(), X.dtype == torch.float64)
    extents = [exact.Extent(X.shape[1], *both) for both in zip(*found[:2])]
    return extents, np.isfinite(found[0]).all(axis=1)
