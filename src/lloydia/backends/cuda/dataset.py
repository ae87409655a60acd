"""A data set in a GPU's memory, and what is known of its rows.

That is their magnitudes, the grid of their sums on the host and on the device, the frame of float32
scores, the half-precision copy, and the mean variance.  The device may know some of it before the
host: a run of few features measures its rows, one of more features guesses how many limbs their
sums have, and the variance is found on the way.  What a run has found or guessed is *unchecked*
until the host has checked it (:mod:`run_setup`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache, partial

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.found_grid import limbs_before, remember_limbs
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.rows.frame import frame_of
from lloydia.backends.cuda.rows.magnitudes import magnitudes, new_bounds, queue_bounds
from lloydia.backends.cuda.rows.totals import cost_limbs, join_cost, largest_term
from lloydia.backends.cuda.run_kinds import run_kind
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.relocation import BufferMap, replay
from lloydia.backends.cuda.update.mean_variance import MeanVariance
from lloydia.backends.cuda.update.means import MAX_CENTERS_WITH_LIMIT
from lloydia.data.device_rows import refuse_non_finite
from lloydia.data.weights import positive_rows
from lloydia.exact import sums as exact
from lloydia.exact.distance import check_magnitudes, largest_magnitude
from lloydia.seeding.given import checked

__all__ = ["INFINITE", "WIDE", "Dataset"]

# The type of the centres of each type that rows can be stored in.
WIDE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
}

# The same for NumPy.
DTYPES = {wide: np.dtype(str(wide).removeprefix("torch.")) for wide in WIDE.values()}

# The bits of infinity: no number that is finite has them, or more.
INFINITE = int(np.float64(np.inf).view(np.int64))


@lru_cache
def bits_below(d: int, n: int) -> int:
    """Return the bits of the magnitude that n rows of d features are to be below."""
    return int(np.float64(largest_magnitude(d, n)).view(np.int64))


class Dataset:
    """Rows on a GPU and their weights; see :class:`lloydia.backends.engine.Engine` for the methods.

    Parameters
    ----------
    X : torch.Tensor of shape (n, d)
        Row-major.
    weights : torch.Tensor of shape (n,), float64, or None

    Attributes
    ----------
    wide : torch.dtype
        Of the centres; `dtype` is NumPy's.
    batch_size : int
        1: to kernels, a single data set is a batch of one.
    kind : RunKind
        That of the runs over the rows.
    fp16_rows : Fp16Rows or None
        The half-precision copy, once there is one.
    in_range : bool
        Whether rows and starts are refused whose squared distances could overflow.
    unchecked : bool
        Whether the host has yet to check what a run has found, or guessed.
    start : torch.Tensor or None
        The centres, if there are any, that a run measures with the rows.
    bounds : AsyncCopy or None
        The copy of the bounds of the rows' magnitudes to the host.
    measured : int64 tensor or None
        The same on the device, where the half-precision copy was stored.
    variance : MeanVariance or None
        The mean variance, once a run or the host has asked for it.
    """

    batch_size = 1

    def __init__(self, X: torch.Tensor, weights: torch.Tensor | None) -> None:
        self.X, self.weights, self.device = X, weights, X.device
        self.name = f"cuda:{self.device.index or 0}"
        self.wide = WIDE[X.dtype]
        self.dtype = DTYPES[self.wide]
        self.n_samples, self.n_features = X.shape
        self.kind = run_kind(self.n_features)
        self.fp16_rows: Fp16Rows | None = None
        self.in_range = self.unchecked = False
        self._fixed_point_grid: FixedPointGrid | None = None
        self._magnitudes: exact.Magnitudes | None = None
        self._grid: exact.Grid | None = None
        self.bounds: AsyncCopy | None = None
        self.measured: torch.Tensor | None = None
        self._found: NDArray[np.int64] | None = None
        self._frame: NDArray[np.float64] | None = None
        self.start: torch.Tensor | None = None
        self.variance: MeanVariance | None = None

    def detach(self) -> None:
        """Release the rows; `X` is set again before it is needed."""
        del self.X

    # -- magnitudes --------------------------------------------------------------------------

    @property
    def is_measured(self) -> bool:
        """Whether the magnitudes are known, or are being copied to the host."""
        return not (self._magnitudes is None and self.bounds is None and self._found is None)

    def ask(self) -> AsyncCopy:
        """Queue the measurement of the rows, unless it was: :meth:`magnitudes` waits for it."""
        if self.bounds is None:
            bounds = queue_bounds(self.X) if self.measured is None else self.measured
            self.bounds = AsyncCopy(bounds)
        return self.bounds

    def take_bounds(self, found: NDArray[np.int64]) -> None:
        """Take the bounds that a run has found of the rows: shape (1, 2, d)."""
        if not self.is_measured:
            self._found = found

    def take_magnitudes(self, known: exact.Magnitudes) -> None:
        """Take the magnitudes, measured elsewhere."""
        self._magnitudes = known

    def magnitudes(self) -> exact.Magnitudes:
        if self._magnitudes is None:
            found = self.ask().numpy() if self._found is None else self._found
            largest, smallest = magnitudes(found, self.X.dtype == torch.float64)
            if not np.isfinite(largest).all():
                if self.start is not None:
                    # The bounds are raised as well where the start is not finite.
                    self.check_start(self.start)
                refuse_non_finite(self.X)
            self._magnitudes = exact.Magnitudes(
                self.n_samples, largest, smallest, *self.weight_magnitudes
            )
        if self.in_range:
            largest_of_all = float(self._magnitudes.largest.max())
            check_magnitudes(largest_of_all, (), self.n_features, self.n_samples)
        return self._magnitudes

    @property
    def start_limit_bits(self) -> int:
        """The bits of a float64 number that starts are to be below, wherever they are."""
        return bits_below(self.n_features, self.n_samples) if self.in_range else INFINITE

    def check_start(self, centers: NDArray | torch.Tensor) -> NDArray:
        """Return a start on the host; refuse what is not finite, or too large."""
        found = checked(centers, self.X, centers.shape[0])
        if self.in_range:
            check_magnitudes(0.0, found, self.n_features, self.n_samples)
        return found

    def check_range_later(self) -> None:
        """Refuse rows whose D may overflow, which have no weights, once they are measured."""
        self.in_range = True
        if self._magnitudes is not None:
            self.magnitudes()

    @property
    def knows_magnitudes(self) -> bool:
        """Whether the magnitudes are on the host."""
        return self._magnitudes is not None

    # -- the grid of the sums ----------------------------------------------------------------

    def set_grid(self, whole: exact.Magnitudes) -> None:
        self._magnitudes, self._grid = whole, exact.Grid.choose(whole, self.dtype)

    @property
    def grid(self) -> exact.Grid:
        """The grid of all sums; from this data's own magnitudes unless it was set."""
        if self._grid is None:
            self.set_grid(self.magnitudes())
        assert self._grid is not None
        return self._grid

    @property
    def limbs_before(self) -> int | None:
        """How many limbs earlier rows of this shape needed; None if there were none."""
        return limbs_before(self.X)

    @property
    def expected(self) -> int | None:
        """How many limbs the sums will probably have, if that is all that is known of the grid."""
        if self._magnitudes is not None or self.weights is not None or self.measured is None:
            return None
        return self.limbs_before

    @property
    def knows_grid(self) -> bool:
        """Whether the grid, or a guess of it, is there without waiting for the device."""
        return self._magnitudes is not None or self.expected is not None

    def guess(self) -> bool:
        """Return whether a guess is taken for the grid, which it is where there is one."""
        if self._fixed_point_grid is None and (expected := self.expected):
            assert self.fp16_rows is not None
            self._fixed_point_grid, self.unchecked = self.fp16_rows.fixed_point_grid(expected), True
        return self.unchecked and not self.kind.measures

    def confirm_guess(self) -> bool:
        """Return whether the guess was right; waits for the bounds of the rows."""
        guess, grid = self._fixed_point_grid, self.grid
        assert guess is not None
        if grid.n_limbs != guess.grid.n_limbs:
            return False
        self._fixed_point_grid = replace(guess, grid=grid)
        return True

    @property
    def fixed_point_grid(self) -> FixedPointGrid:
        """The grid on the device; where it is a guess, as far as it is known."""
        known = self._fixed_point_grid
        if not self.guess() and (known is None or known.grid is not self.grid):
            self._fixed_point_grid = FixedPointGrid.of(self, self.grid, self.weights)
            remember_limbs(self.X, self.grid.n_limbs)
        assert self._fixed_point_grid is not None
        return self._fixed_point_grid

    def use_grid(self, found: FixedPointGrid | None) -> None:
        """Have this be the grid on the device; None: find it anew."""
        self._fixed_point_grid = found

    # -- frame, half-precision copy, mean variance ---------------------------------------------

    def frame(self) -> NDArray[np.float64]:
        """Return the frame of float32 scores, found while the rows are here: shape (d + 1,)."""
        if self._frame is None:
            self._frame = frame_of(self.X, self.magnitudes().largest, self.dtype)
        return self._frame

    def use_frame(self, frame: NDArray[np.float64]) -> None:
        """Have this be the frame of float32 scores."""
        self._frame = frame

    def halve(self, later: bool = False) -> None:
        """Queue the half-precision copy of the rows, and their measurement unless it was.

        Unless `later`, or where a guess of the grid suffices, the copy of the bounds to the host is
        queued as well.
        """
        self.measured = new_bounds(self.X) if self.bounds is None else None
        self.fp16_rows = Fp16Rows(self, bounds=self.measured)
        replay(*self.fp16_rows.storing)
        if self.measured is None or later:
            return
        if self.weights is not None or self.limbs_before is None:
            self.ask()

    def queue_variance(self, tolerance: float) -> MeanVariance:
        """Return the mean variance, queued, with the limit of a tolerance."""
        found, tol = self.variance, max(tolerance, 0.0)
        if found is None or not found.queued:
            # What a run of few features finds as it is launched is its own.
            if found is None or self.kind.measures:
                found = MeanVariance(self, self.fixed_point_grid, tol)
            buffer_map = BufferMap.of("variance", self.X, more=(*found.key, self.kind.package))
            buffer_map = buffer_map.with_buffers(*found.buffers)
            replay(partial(found.stages, self), self.device, buffer_map)
            found.done()
            if self.variance is None:
                self.variance = found
        found.aim(tol)
        return found

    def limit(self, tolerance: float, k: int) -> torch.Tensor | None:
        """Return the sum of squared movements at which a run of k clusters ends, once computed."""
        return self.queue_variance(tolerance).limit if is_limited(tolerance, k) else None

    # -- rows and weights ----------------------------------------------------------------------

    @cached_property
    def weight_magnitudes(self) -> tuple[float, float]:
        """The largest weight and the smallest positive one; waits for the device."""
        if self.weights is None:
            return 1.0, 1.0
        positive = torch.where(self.weights > 0, self.weights, torch.inf)
        largest, smallest = torch.stack([self.weights.max(), positive.min()]).tolist()
        return largest, smallest

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights: see :func:`lloydia.exact.sums.total_weight`."""
        if self.weights is None:
            return float(self.n_samples)
        limbs = cost_limbs(self.weights, None, largest_term(self.weights, None))
        return join_cost(limbs.tolist(), self.n_samples)

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        chosen = self.X[torch.as_tensor(indices, device=self.device)]
        return chosen.to(self.wide).cpu().numpy() + 0.0

    def seed_weights(self) -> NDArray[np.float64] | None:
        return None if self.weights is None else self.weights.cpu().numpy()

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        return positive_rows(self.seed_weights(), self.n_samples, count)


def is_limited(tolerance: float, k: int) -> bool:
    """Return whether the device ends runs of k clusters by the mean variance."""
    return tolerance > 0.0 and k <= MAX_CENTERS_WITH_LIMIT
