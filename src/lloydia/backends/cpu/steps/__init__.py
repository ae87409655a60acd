"""One assignment by each algorithm, as a step to be applied to every block of rows.

A step assigns the rows ``start`` to ``stop``, moves those whose labels changed in the sums of its
thread, and returns their number.  Each algorithm has its own module, imported at its first use:
:mod:`lloyd`, :mod:`hamerly`, :mod:`exponion`, :mod:`elkan`, :mod:`yinyang`, :mod:`filtering`.
:mod:`drift` bounds how far centres moved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.protocols import SummedClusters
from lloydia.backends.cpu.scan.scanners import ScanState
from lloydia.imports import load

if TYPE_CHECKING:
    from lloydia.backends.cpu.accelerated.tiles import Tiles

__all__ = ["AssignedRun", "Step", "Tally", "maker"]

Step = Callable[[int, int, int], int]


class Tally:
    """The counts of each thread, and its scratch for the labels of a block.

    Attributes
    ----------
    changed, evaluated, rechecked : list of int
        A number for each thread.
    fresh : ndarray of shape (n_threads, block), int32
    """

    def __init__(self, fresh: NDArray[np.int32]) -> None:
        # Lists, because adding to an element of an array takes longer than some blocks.
        n = len(fresh)
        self.changed, self.evaluated, self.rechecked = [0] * n, [0] * n, [0] * n
        self.fresh = fresh


class AssignedRun(ScanState, Protocol):
    """A run as the steps see it; see :class:`run.Run`.

    Attributes
    ----------
    clusters : SummedClusters
        The sums that filtering changes.
    bounds : object
        The state of the algorithm, of :mod:`lloydia.algorithms`.
    last : bool
        Whether this is the last assignment, which leaves the sums as they are.
    labels_in_tiles : bool
        Whether `bounds` has newer labels than `assigned`, in the order of the tiles.
    """

    bounds: Any
    last: bool
    labels_in_tiles: bool

    @property
    def clusters(self) -> SummedClusters: ...
    @property
    def assigned(self) -> NDArray[np.int32]:
        """The labels by row."""

    @property
    def tiles(self) -> Tiles:
        """The rows in the order of a space-filling curve."""

    def move(self, thread: int, rows: NDArray, start: int, stop: int, fresh: NDArray) -> int:
        """Give a block of a list of rows their fresh labels; return how many changed."""


@cache
def maker(algorithm: str) -> Callable[[AssignedRun, NDArray, Tally], Step]:
    """Return the function that makes the steps of an algorithm.

    It takes the run, the centres of the previous assignment, and the tally of counts.
    """
    return getattr(load(f"lloydia.backends.cpu.steps.{algorithm}"), algorithm)
