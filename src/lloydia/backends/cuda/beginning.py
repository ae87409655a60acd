"""How a run begins: its memory, its grid, and what is found of the rows on the way."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.devices import check_memory, row_bytes
from lloydia.backends.cuda.ending import Ending
from lloydia.backends.cuda.first_iterations import FirstIterations
from lloydia.backends.cuda.first_launch import FirstLaunch
from lloydia.backends.cuda.flow import MOST_FEATURES
from lloydia.backends.cuda.found_grid import found_lattice, limbs_before, remember_limbs
from lloydia.backends.cuda.half_rows import padded
from lloydia.backends.cuda.low_run import LIMBS, SPARE, LowRun
from lloydia.backends.cuda.low_told import LowEnding
from lloydia.backends.cuda.means import MOST_LIMITED
from lloydia.backends.cuda.own_device import anywhere
from lloydia.backends.cuda.picks import Picks
from lloydia.backends.cuda.plans import Layout, overlap, planned
from lloydia.backends.cuda.spread import Spread
from lloydia.backends.cuda.sums import Lattice, replicas
from lloydia.backends.cuda.tensor_run import TensorRun
from lloydia.backends.engine import NEVER, UNLIMITED
from lloydia.data.device_rows import refuse_non_finite
from lloydia.exact import sums as exact
from lloydia.exact.distance import check_magnitudes, largest_magnitude
from lloydia.seeding.given import checked

__all__ = ["Beginning"]

# Of at most so many rows iterations take the device less than the host.
FEW_ROWS = 1 << 14


# The bits of infinity: no number that is finite has them, or more.
INFINITE = int(np.float64(np.inf).view(np.int64))


@lru_cache
def bits_below(d: int, n: int) -> int:
    """Return the bits of the magnitude that n rows of d features are to be below."""
    return int(np.float64(largest_magnitude(d, n)).view(np.int64))


class Beginning(Picks):
    """Rows, and the run that they are in.

    A run of few features that begins with measuring its rows, and one of more features that guesses
    how many limbs their sums have, are *unchecked* until the host has looked at what they found.
    """

    # What the run began with.
    begun: NDArray | torch.Tensor
    run: LowRun | TensorRun
    # Where labels are looked for now: the centres that the rows were assigned to.
    used: torch.Tensor
    ending: LowEnding | Ending | None
    # What was queued for the next run, over few features or over more.
    first_launch: FirstLaunch | None = None
    first_iterations: FirstIterations | None = None

    def forget_extent(self) -> None:
        super().forget_extent()
        self._variance: Spread | None = None

    def _hold(self, X: torch.Tensor) -> None:
        super()._hold(X)
        # Whether their magnitudes are to be looked at.
        self.ranges = False
        self.n_distances = self.n_rechecked = 0
        self.low = self.n_features <= MOST_FEATURES
        self.lag = 0
        self._lattice: Lattice | None = None
        self.renewed = self.unchecked = False
        # Iterations queued by the loop, those that the device was told of, and the last one that
        # the loop was told of.
        self.queued = self.launched = self.reported = 0
        self.fixed: tuple | None = None
        self.tolerance = NEVER

    def extent(self) -> exact.Extent:
        run = self.__dict__.get("run")
        if self._extent is None and isinstance(run, LowRun) and run.stale is not None:
            largest, smallest = run.measured()
            if not np.isfinite(largest).all():
                refuse_non_finite(self.X)
            self._extent = exact.Extent(self.n_samples, largest, smallest)
        found = super().extent()
        if self.ranges:
            largest = float(found.largest.max())
            check_magnitudes(largest, (), self.n_features, self.n_samples)
        return found

    @property
    def most_bits(self) -> int:
        """The bits of a float64 number that starts are to be below, wherever they are."""
        return bits_below(self.n_features, self.n_samples) if self.ranges else INFINITE

    def _checked(self, centers: NDArray | torch.Tensor) -> NDArray:
        """Return a start on the host; refuse what is not finite, or too large."""
        found = checked(centers, self.X, self.k)
        if self.ranges:
            check_magnitudes(0.0, found, self.n_features, self.n_samples)
        return found

    def check_range_later(self) -> None:
        """Refuse rows, which have no weights, whose D may overflow, once their extent is known."""
        self.ranges = True
        if self._extent is not None:
            self.extent()

    def _check(self) -> None:
        """Refuse what the first run has found not to be finite.

        Where it had no room for their grid, or guessed another one, it begins again.  Waits for
        what was launched.
        """
        self.unchecked = False
        if isinstance(self.run, TensorRun):
            self._check_guess()
            return
        if not 0 < self.run.needs() <= LIMBS:
            before, settles = self.run, bool(self.run.settles)
            self.begun = self._begin(self._checked(self.begun))
            self.extent()
            self._variance = None
            self._build(self.begun, settles)
            self.run.repeat(before)
        elif self.ranges:
            self.extent()

    @anywhere
    def lag_of(self, k: int) -> int:
        """Return how many iterations of k clusters to have in flight.

        Many where they are short, since then the host is what they wait for; what is queued past
        the end is lost.
        """
        n, d = self.n_samples, self.n_features
        if self.low:
            microseconds = 4.0 + n * (4 * d + 8) / 3e6 + n * k * (d + 6) / 1e7
        else:
            microseconds = 50.0 + n * d / 5e5 + n * k * d / 2e8
        return max(1, min(15, int(2000.0 / microseconds)))

    def _check_guess(self) -> None:
        """Begin a run again where the grid is not what it was taken to be."""
        guess, grid, run = self._lattice, self.grid, self.run
        assert guess is not None
        if grid.n_limbs == guess.grid.n_limbs:
            self._lattice = replace(guess, grid=grid)
            return
        self._lattice = self._variance = None
        # No more iterations were launched than there are slots: the first still has the start.
        start, settles = run.before(1).cpu().numpy(), bool(run.settles)
        ends = run.ending is not None
        del run
        self._build(start, settles)
        if self.launched:
            self.run.launch(1, self.launched, ends)

    @property
    def expected(self) -> int | None:
        """How many limbs the sums will probably have, if that is all that is known of the grid."""
        if self.first_iterations is not None:
            # Whatever other fits have taught since.
            return self.first_iterations.known.n_limbs
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
        if self._lattice is None and (expected := self.expected):
            assert self.halves is not None
            self._lattice, self.unchecked = self.halves.lattice(expected), True
        return self.unchecked

    @property
    def lattice(self) -> Lattice:
        """The grid on the device; of a run that nobody waits for yet, as far as it is known."""
        if not self.guess() and (self._lattice is None or self._lattice.grid is not self.grid):
            self._lattice = Lattice.of(self, self.grid, self.weights)
            remember_limbs(self.X, self.grid.n_limbs)
        assert self._lattice is not None
        return self._lattice

    # -- a run -------------------------------------------------------------------------------

    def start(
        self,
        centers: NDArray | torch.Tensor,
        algorithm: str,
        settles: bool = True,
        max_iter: int = UNLIMITED,
    ) -> None:
        self.forget_seeds()
        self.max_iter, self.k = max_iter, centers.shape[0]
        self.begun = self._begin(centers)
        if self.renewed and self.fixed == self._fixed(self.k, int(settles)):
            assert isinstance(self.run, TensorRun)
            self.run.begin_again(self.begun)
            self.limit()
            self.used = self.run.current
            self.ending = None
        else:
            self._build(self.begun, settles)
        self.renewed = False
        self.queued = self.launched = self.reported = 0

    def _begin(self, centers: NDArray | torch.Tensor) -> NDArray | torch.Tensor:
        """Return what a run begins with.

        Centres on the device stay there if that run finds whether they are finite.
        """
        if isinstance(centers, torch.Tensor):
            if not (self._measures() or self._guesses()):
                return self._checked(centers)
            # Plans tell memory apart by where it is.
            return centers.clone() if overlap(centers, self.X) else centers
        # Its own, whatever becomes of the caller's, if it may be needed again.
        own = np.array if self.low else np.asarray
        return own(centers, dtype=self.dtype, order="C")

    def _measures(self) -> bool:
        """Return whether the next run begins with measuring."""
        unknown = self._extent is None and self.bounds is None
        return self.low and unknown and "run" not in self.__dict__

    def _guesses(self) -> bool:
        """Return whether the next run begins with storing the rows, for a grid that is guessed."""
        unknown = self._extent is None and self.bounds is None and self.weights is None
        first = not self.low and unknown and self.halves is None
        return first and limbs_before(self.X) is not None

    def _refuse(self) -> None:
        begun = self.__dict__.get("begun")
        if isinstance(begun, torch.Tensor):
            # The bounds of the rows are raised where it is not finite.
            self._checked(begun)
        super()._refuse()

    def _build(self, centers: NDArray | torch.Tensor, settles: bool) -> None:
        """Make what a run needs."""
        if self.unchecked:
            # Of a run whose grid nobody has looked at.
            self._variance = None
        if self._variance is not None and self._variance.queued:
            # It may be part of the last run's memory, which is given back.
            self._variance.part_with()
        self.unchecked = self._measures()
        if self.low and not self.unchecked:
            self.extent()
        self.forget_run()
        k = self.k
        self.lag = self.lag_of(k)
        together = self.lag + 1
        stops = self.limits or self.tolerance == 0.0
        if self.low and stops and self.n_samples > FEW_ROWS:
            # The device stops by itself: it may go on while the host looks at what was.
            self.lag += together
        check_memory(self.needed(k), self.device)
        if self.low:
            lattice = None if self.unchecked else self.lattice
            n_slots = min(self.lag, self.max_iter) + 4
            self._build_low(lattice, centers, n_slots, together, settles)
            return
        self._build_tensor(centers, settles)

    def _build_tensor(self, centers: NDArray | torch.Tensor, settles: bool) -> None:
        """Make a run over more features."""
        if self.halves is None:
            # The device stores them while the host goes on.
            self.halve(later=isinstance(centers, torch.Tensor), first=self.first_iterations)
        self.run = TensorRun(self, centers, self.lag, settles, self.first_iterations)
        self.used, self.ending = self.run.current, None

    def _build_low(
        self,
        lattice: Lattice | None,
        centers: NDArray | torch.Tensor,
        n_slots: int,
        together: int,
        settles: bool,
    ) -> None:
        """Make a run over few features."""
        self.run = run = LowRun(self, lattice, centers, n_slots, settles, self.first_launch)
        run.together = together
        if self.limits:
            run.spread = self._spread_of(run)
            if self.first_launch is not None:
                run.spread.done()
        self.used, self.ending = run.current, None

    @property
    def limits(self) -> bool:
        """Whether runs end by the spread."""
        return self.tolerance > 0.0 and self.k <= MOST_LIMITED

    def _plain(self) -> Lattice:
        """Return the grid of the rows without weights; of a guess, as far as it is known."""
        if self.weights is None and not (self.low and self.unchecked):
            return self.lattice
        return Lattice.of(self, exact.Grid.choose(self.extent().unweighted(), self.dtype), None)

    def _spread_of(self, run: LowRun) -> Spread:
        """Return the spread that a run is to queue, if nobody has."""
        spread, tol = self._variance, self.tolerance
        if spread is not None and spread.queued:
            spread.aim(tol)
        elif self.unchecked:
            lattice = found_lattice(self.X, run.numbers, LIMBS)
            spread = Spread(self, lattice, tol, run.bounds, run.spreading)
        else:
            spread = Spread(self, self._plain(), tol)
        self._variance = spread
        return spread

    def queue_spread(self) -> Spread:
        """Return the spread, queued."""
        spread, tol = self._variance, max(self.tolerance, 0.0)
        if spread is None or not spread.queued:
            # What a run of few features finds as it is launched is its own.
            if spread is None or self.low:
                spread = Spread(self, self._plain(), tol)
            layout = Layout.of("spread", self.X, more=(*spread.key, self.low))
            layout = layout._replace(parts=[self.X, *spread.pieces])
            planned(partial(spread.queue, self), self.device, layout)
            spread.done()
            if self._variance is None:
                self._variance = spread
        spread.aim(tol)
        return spread

    def limit(self) -> torch.Tensor | None:
        """Return the sum of squares of movements that a run ends at, which is on its way."""
        return self.queue_spread().limit if self.limits else None

    def _fixed(self, k: int, settles: int) -> tuple:
        """Return what is part of a recording, beside addresses and the shape of the rows."""
        grid = self.grid
        return k, settles, self.limits, grid.bits, grid.n_limbs, grid.recover

    def renew(self, X: torch.Tensor) -> None:
        """Copy other rows, of the same shape and type, over those that are here; none is weighted.

        The next run may use the memory of the last one and what it recorded: what
        :meth:`labels` and :meth:`centers` returned is overwritten then.
        """
        run = self.__dict__.get("run")
        if isinstance(run, TensorRun) and not self.renewed:
            self.fixed = self._fixed(self.k, run.settles)
        self.X.copy_(X)
        variance = self._variance
        self.forget_extent()
        if self.low:
            self.forget_run()
            return
        self.set_grid(self.extent())
        if self._lattice is not None:
            self._lattice = self._lattice.renewed(self, self.grid)
        if self.halves is not None:
            self.halves.renew(self)
        if variance is not None and variance.n_limbs == self.grid.n_limbs:
            # Where recordings look for it.
            variance.renew(self.lattice)
            self._variance = variance
        elif variance is not None:
            # Recordings look for it elsewhere.
            self.fixed = None
        self.renewed = True

    @anywhere
    def forget_run(self) -> None:
        """Give back what the last run needed, but for what :meth:`labels` and others returned."""
        for name in ("run", "used", "ending"):
            self.__dict__.pop(name, None)

    @anywhere
    def needed(self, k: int) -> int:
        """Return the bytes that a run of k clusters takes, beside the rows."""
        d = self.n_features
        width = padded(d) if self.halves is None else 0
        spare = 12 * SPARE if self.low else 0
        return self.n_samples * row_bytes(d, width) + self.of_clusters(k) + spare

    @anywhere
    def of_clusters(self, k: int) -> int:
        """Return the bytes of them that belong to clusters."""
        n_limbs = LIMBS if self._extent is None else self.grid.n_limbs
        center = (self.lag + 5) * self.dtype.itemsize
        if self.low:
            center += 8 * n_limbs * replicas(self.n_samples, k)
        else:
            center += 8 * n_limbs + 4 + self.dtype.itemsize
        return k * (self.n_features + 1) * center
