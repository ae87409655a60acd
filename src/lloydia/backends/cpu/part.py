"""The CPU engine as one part of a larger data set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.engine import CPU
from lloydia.backends.cpu.rows.placed import NONE
from lloydia.backends.part import Step, Tally
from lloydia.exact import sums

__all__ = ["CPUPart"]


class CPUPart(CPU):
    """Rows in this process's memory; see :class:`lloydia.backends.part.Part`."""

    # Parts do not know what others take.
    single = False

    def all_sums(self) -> NDArray[np.int64]:
        return self.as_one().integers()

    def weight(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        if self.weights is NONE:
            return self.n_samples * np.array(sums.total_limbs(np.ones(1), *grid))
        return self.total_limbs(self.weights, NONE, grid)

    def tally(self) -> Tally:
        return Tally(self.n_distances, self.n_rechecked, self.algorithm)

    def step(self, centers: NDArray, measure: bool) -> Step:
        self.current = centers
        self.assign_and_choose()
        return Step(self.n_changed, self.integers(), self.measure() if measure else 0.0)

    def conclude(self, centers: NDArray) -> float:
        self.current = centers
        self.assign()
        return self.measure()

    def labels_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        return self.assigned[rows]
