"""One assignment by each algorithm, as a step to be applied to every block of rows.

A step assigns the rows ``start`` to ``stop``, moves those that changed in its thread's sums, and
returns how many did.  Each algorithm's is in a file of its own, imported when it is first used:
:mod:`lloyd`, :mod:`hamerly`, :mod:`exponion`, :mod:`elkan`, :mod:`yinyang`, :mod:`filtering`.
:mod:`moves` says how far centres moved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.protocols import SummedRows
from lloydia.backends.cpu.scan.scanners import ScannedRows
from lloydia.imports import load

if TYPE_CHECKING:
    from lloydia.backends.cpu.accelerated.tiles import Tiles

__all__ = ["AssignedRows", "Step", "Tally", "maker"]

Step = Callable[[int, int, int], int]


class Tally:
    """What the threads count, and their scratch for a block's labels.

    Attributes
    ----------
    changed, evaluated, rechecked : list of int
        A number for each thread.
    fresh : ndarray of shape (n_threads, block), int32
    """

    def __init__(self, fresh: NDArray[np.int32]) -> None:
        # Lists: to add to an element of an array takes longer than some blocks.
        n = len(fresh)
        self.changed, self.evaluated, self.rechecked = [0] * n, [0] * n, [0] * n
        self.fresh = fresh


class AssignedRows(ScannedRows, SummedRows, Protocol):
    """Rows whose labels an algorithm renews; see :class:`engine.CPU`.

    Attributes
    ----------
    assigned : ndarray of shape (n,), int32
        The labels.
    bounds : object
        The algorithm's, of :mod:`lloydia.algorithms`.
    sums : ndarray of shape (n_threads, n_limbs, k, d + 1 or more), int64
    touched : ndarray of shape (n_threads, k or more), bool
        Whether a thread changed a cluster's sums since its mean was taken.
    last : bool
        Whether rows are assigned for the last time: sums are left alone.
    behind : bool
        Whether there are labels in the order of the tiles that are not in `assigned` yet.
    """

    bounds: Any
    sums: NDArray[np.int64]
    touched: NDArray[np.bool_]
    last: bool
    behind: bool

    @property
    def assigned(self) -> NDArray[np.int32]: ...
    @property
    def tiles(self) -> Tiles:
        """The rows in the order of a space-filling curve."""

    def move(self, thread: int, rows: NDArray, start: int, stop: int, fresh: NDArray) -> int:
        """Move a block of a list of rows to their fresh labels; return how many changed."""


@cache
def maker(algorithm: str) -> Callable[[AssignedRows, NDArray, Tally], Step]:
    """Return the function that makes the steps of an algorithm.

    It takes the engine, the centres of the assignment before, and where to count.
    """
    return getattr(load(f"lloydia.backends.cpu.steps.{algorithm}"), algorithm)
