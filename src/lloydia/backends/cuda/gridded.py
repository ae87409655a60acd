"""What is known of the rows of a run: their extent, the grid of their sums, and their spread.

The device may know before the host: a run of few features measures its rows, one of more features
guesses how many limbs their sums have, and the spread is found on the way.
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
from lloydia.backends.cuda.update.means import MAX_CENTERS_WITH_LIMIT
from lloydia.backends.cuda.update.spread import Spread
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

    def forget_extent(self) -> None:
        super().forget_extent()
        self._variance: Spread | None = None

    def magnitudes(self) -> exact.Magnitudes:
        run = self.__dict__.get("run")
        if self._extent is None and isinstance(run, LowRun) and not run.begins:
            largest, smallest = run.measured()
            if not np.isfinite(largest).all():
                refuse_non_finite(self.X)
            self._extent = exact.Magnitudes(self.n_samples, largest, smallest)
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
        """Refuse rows, which have no weights, whose D may overflow, once their extent is known."""
        self.ranges = True
        if self._extent is not None:
            self.magnitudes()
        return True

    @property
    def expected(self) -> int | None:
        """How many limbs the sums will probably have, if that is all that is known of the grid."""
        if self._extent is not None or self.weights is not None or self.measured is None:
            return None
        return limbs_before(self.X)

    @property
    def knows_grid(self) -> bool:
        """Whether the grid, or a guess of it, is there without waiting for the device."""
        return self._extent is not None or self.expected is not None

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
        """Whether runs end by the spread."""
        return self.tolerance > 0.0 and self.k <= MAX_CENTERS_WITH_LIMIT

    def _grid_of_variance(self) -> FixedPointGrid:
        """Return the grid of the rows; of a guess, as far as it is known."""
        if not (self.low and self.unchecked):
            return self.fixed_point_grid
        return FixedPointGrid.of(self, self.grid, self.weights)

    def _spread_of(self, run: LowRun) -> Spread:
        """Return the spread that a run is to queue, if nobody has."""
        spread, tol = self._variance, self.tolerance
        if spread is not None and spread.queued:
            spread.aim(tol)
        elif self.unchecked:
            fixed_point_grid = grid_found_on_device(self.X, run.numbers, LIMBS)
            spread = Spread(self, fixed_point_grid, tol, run.bounds, run.spreading)
        else:
            spread = Spread(self, self._grid_of_variance(), tol)
        self._variance = spread
        return spread

    def queue_spread(self) -> Spread:
        """Return the spread, queued."""
        spread, tol = self._variance, max(self.tolerance, 0.0)
        if spread is None or not spread.queued:
            # What a run of few features finds as it is launched is its own.
            if spread is None or self.low:
                spread = Spread(self, self._grid_of_variance(), tol)
            layout = Layout.of("spread", self.X, more=(*spread.key, self.low))
            layout = layout._replace(parts=[self.X, *spread.buffers])
            planned(partial(spread.queue, self), self.device, layout)
            spread.done()
            if self._variance is None:
                self._variance = spread
        spread.aim(tol)
        return spread

    def limit(self) -> torch.Tensor | None:
        """Return the sum of squares of movements that a run ends at, which is on its way."""
        return self.queue_spread().limit if self.limits else None
