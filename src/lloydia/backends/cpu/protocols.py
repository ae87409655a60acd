"""What packages want of the engine: it breaks the circles that its type would be imported in."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.pool import Task
from lloydia.exact import sums as exact

__all__ = ["Rows", "SummedRows"]


class Rows(Protocol):
    """The rows of a data set, and the threads that work on them.

    Attributes
    ----------
    X : ndarray of shape (n, d), or the parts of a CSR matrix
    sparse : bool
        Whether it is the latter.
    n_samples, n_features : int
    width : float
        Numbers that are stored of a row.
    dtype : numpy.dtype
        Of centres: float32 or float64.
    """

    X: Any
    sparse: bool
    n_samples: int
    n_features: int
    width: float
    dtype: np.dtype

    def each_block(self, task: Task, cost: float, n: int | None = None) -> None:
        """Run a task over blocks of rows, or of `n` other things, on the threads."""


class SummedRows(Rows, Protocol):
    """Rows, and the grid of their sums.

    Attributes
    ----------
    grid : Grid
    scaled : ndarray of shape (n,), float64
        The weights on the grid; empty without weights.
    lattice : tuple
        The grid as the kernels of :mod:`update.sums` want it.
    """

    @property
    def grid(self) -> exact.Grid: ...
    @property
    def scaled(self) -> NDArray[np.float64]: ...
    @property
    def lattice(self) -> tuple[Any, ...]: ...
