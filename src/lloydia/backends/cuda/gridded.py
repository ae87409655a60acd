"""Magnitudes of the rows of a run, the grid of their sums, and their mean variance.

The device may know before the host: a run of few features measures its rows, one of more features
guesses how many limbs their sums have, and the mean variance is found on the way.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.run_state import LOW_DIM_FEATURES
from lloydia.backends.cuda.low_dim.run import LIMBS, LowRun
from lloydia.backends.cuda.matmul.run import TensorRun
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.found_grid import grid_found_on_device, limbs_before, remember_limbs
from lloydia.backends.cuda.runtime.own_device import anywhere
from lloydia.backends.cuda.runtime.plans import Layout, planned
from lloydia.backends.cuda.seeding.state import SeedingState
from lloydia.backends.cuda.update.mean_variance import MeanVariance
from lloydia.backends.cuda.update.means import MAX_CENTERS_WITH_LIMIT
from lloydia.backends.engine import NEVER
from lloydia.data.device_rows import refuse_non_finite
from lloydia.exact import sums as exact
from lloydia.exact.distance import check_magnitudes, largest_magnitude
from lloydia.seeding.given import checked

__all__ = ["Gridded"]

# The bits of infinity: no number that is finite has them, or more.
INFINITE = int(np.float64(np.inf).view(np.int64))


@lru_cache
def bits_below(d: int, n: int) -> int:
    """Return the bits of the magnitude that n rows of d features are to be below."""
    return int(np.float64(largest_magnitude(d, n)).view(np.int64))


class Gridded(SeedingState):
    """Rows, and what is known of them.

    What a run has found of its rows, or guessed, is *unchecked* until the host has looked at it.
    """

    k: int
    run: LowRun | TensorRun

    def _hold(self, X: torch.Tensor) -> None:
        super()._hold(X)
        # Whether their magnitudes are to be looked at.
        self.ranges = self.unchecked = False
        self.low = self.n_features <= LOW_DIM_FEATURES
        self.tolerance = NEVER
        self._fixed_point_grid: FixedPointGrid | None = None

    def forget_magnitudes(self) -> None:
        super().forget_magnitudes()
        self._variance: MeanVariance | None = None

    def magnitudes(self) -> exact.Magnitudes:
        run = self.__dict__.get("run")
        if self._magnitudes is None and isinstance(run, LowRun) and not run.begins:
            largest, smallest = run.measured()
            if not np.isfinite(largest).all():
                refuse_non_finite(self.X)
            self._magnitudes = exact.Magnitudes(self.n_samples, largest, smallest)
        found = super().magnitudes()
        if self.ranges:
            largest = float(found.largest.max())
            check_magnitudes(largest, (), self.n_features, self.n_samples)
        return found

    @property
    def start_limit_bits(self) -> int:
        """The bits of a float64 number that starts are to be below, wherever they are."""
        return bits_below(self.n_features, self.n_samples) if self.ranges else INFINITE

    def _checked(self, centers: NDArray | torch.Tensor) -> NDArray:
        """Return a start on the host; refuse what is not finite, or too large."""
        found = checked(centers, self.X, self.k)
        if self.ranges:
            check_magnitudes(0.0, found, self.n_features, self.n_samples)
        return found

    def check_range_later(self) -> bool:
        """Refuse rows, which have no weights, whose D may overflow, once magnitudes are known."""
        self.ranges = True
        if self._magnitudes is not None:
            self.magnitudes()
        return True

    @property
    def expected(self) -> int | None:
        """How many limbs the sums will probably have, if that is all that is known of the grid."""
        if self._magnitudes is not None or self.weights is not None or self.measured is None:
            return None
        return limbs_before(self.X)

    @property
    def knows_grid(self) -> bool:
        """Whether the grid, or a guess of it, is there without waiting for the device."""
        return self._magnitudes is not None or self.expected is not None

    @anywhere
    def guess(self) -> bool:
        """Return whether a guess is taken for the grid, which it is where there is one."""
        if self._fixed_point_grid is None and (expected := self.expected):
            assert self.fp16_rows is not None
            self._fixed_point_grid, self.unchecked = self.fp16_rows.fixed_point_grid(expected), True
        return self.unchecked

    @property
    def fixed_point_grid(self) -> FixedPointGrid:
        """The grid on the device; of a run that nobody waits for yet, as far as it is known."""
        if not self.guess() and (
            self._fixed_point_grid is None or self._fixed_point_grid.grid is not self.grid
        ):
            self._fixed_point_grid = FixedPointGrid.of(self, self.grid, self.weights)
            remember_limbs(self.X, self.grid.n_limbs)
        assert self._fixed_point_grid is not None
        return self._fixed_point_grid

    @property
    def limits(self) -> bool:
        """Whether runs end by the mean variance."""
        return self.tolerance > 0.0 and self.k <= MAX_CENTERS_WITH_LIMIT

    def _grid_of_variance(self) -> FixedPointGrid:
        """Return the grid of the rows; of a guess, as far as it is known."""
        if not (self.low and self.unchecked):
            return self.fixed_point_grid
        return FixedPointGrid.of(self, self.grid, self.weights)

    def _mean_variance_of(self, run: LowRun) -> MeanVariance:
        """Return the mean variance that a run is to queue, if nobody has."""
        variance, tol = self._variance, self.tolerance
        if variance is not None and variance.queued:
            variance.aim(tol)
        elif self.unchecked:
            fixed_point_grid = grid_found_on_device(self.X, run.numbers, LIMBS)
            variance = MeanVariance(self, fixed_point_grid, tol, run.bounds, run.variance_memory)
        else:
            variance = MeanVariance(self, self._grid_of_variance(), tol)
        self._variance = variance
        return variance

    def queue_mean_variance(self) -> MeanVariance:
        """Return the mean variance, queued."""
        variance, tol = self._variance, max(self.tolerance, 0.0)
        if variance is None or not variance.queued:
            # What a run of few features finds as it is launched is its own.
            if variance is None or self.low:
                variance = MeanVariance(self, self._grid_of_variance(), tol)
            layout = Layout.of("variance", self.X, more=(*variance.key, self.low))
            layout = layout._replace(parts=[self.X, *variance.buffers])
            planned(partial(variance.queue, self), self.device, layout)
            variance.done()
            if self._variance is None:
                self._variance = variance
        variance.aim(tol)
        return variance

    def limit(self) -> torch.Tensor | None:
        """Return the sum of squares of movements that a run ends at, which is on its way."""
        return self.queue_mean_variance().limit if self.limits else None
