"""One assignment by each algorithm, as a step to be applied to every block of rows.

A step assigns the rows ``start`` to ``stop``, moves those that changed in its thread's sums, and
returns how many did.  Each algorithm's is in a file of its own, imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lloydia.imports import load

if TYPE_CHECKING:
    from lloydia.backends.cpu import CPU

__all__ = ["Step", "Tally", "maker"]

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


@cache
def maker(algorithm: str) -> Callable[[CPU, NDArray, Tally], Step]:
    """Return the function that makes the steps of an algorithm.

    It takes the engine, the centres of the assignment before, and where to count.
    """
    return getattr(load(f"lloydia.backends.cpu.steps.{algorithm}"), algorithm)
