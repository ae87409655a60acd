"""How a run begins, and how it begins again where the host finds its grid to be another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.gridded import Gridded
from lloydia.backends.cuda.low_dim.run import LIMBS, SPARE, LowRun
from lloydia.backends.cuda.low_dim.told import LowEnding
from lloydia.backends.cuda.matmul.run import TensorRun
from lloydia.backends.cuda.rows.ending import Ending
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid, replicas
from lloydia.backends.cuda.rows.found_grid import limbs_before
from lloydia.backends.cuda.rows.fp16_rows import padded
from lloydia.backends.cuda.rows.memory import row_bytes
from lloydia.backends.cuda.runtime.devices import check_memory
from lloydia.backends.cuda.runtime.own_device import anywhere
from lloydia.backends.cuda.runtime.plans import overlap
from lloydia.backends.engine import UNLIMITED

__all__ = ["Beginning"]

# Of at most so many rows iterations take the device less than the host.
SMALL_FIT_ROWS = 1 << 14


class Beginning(Gridded):
    """Rows, and the run that they are in."""

    # What the run began with.
    begun: NDArray | torch.Tensor
    # Where labels are looked for now: the centres that the rows were assigned to.
    used: torch.Tensor
    ending: LowEnding | Ending | None

    def _hold(self, X: torch.Tensor) -> None:
        super()._hold(X)
        self.n_distances = self.n_rechecked = self.lag = 0
        self.renewed = False
        # Iterations queued by the loop, those that the device was told of, and the last one that
        # the loop was told of.
        self.queued = self.launched = self.reported = 0
        self.fixed: tuple | None = None

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
            self.magnitudes()
            self._variance = None
            self._build(self.begun, settles)
            self.run.repeat(before)
        elif self.ranges:
            self.magnitudes()

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
            microseconds = 40.0 + n * d / 5e5 + n * k * d / 2.3e8
        return max(1, min(15, int(2500.0 / microseconds)))

    def _check_guess(self) -> None:
        """Begin a run again where the grid is not what it was taken to be."""
        guess, grid, run = self._fixed_point_grid, self.grid, self.run
        assert guess is not None
        if grid.n_limbs == guess.grid.n_limbs:
            self._fixed_point_grid = replace(guess, grid=grid)
            return
        self._fixed_point_grid = self._variance = None
        # No more iterations were launched than there are slots: the first still has the start.
        start, settles = run.before(1).cpu().numpy(), bool(run.settles)
        ends = run.ending is not None
        del run
        self._build(start, settles)
        if self.launched:
            self.run.launch(1, self.launched, ends)

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
            self.run.restart(self.begun)
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
        unknown = self._magnitudes is None and self.bounds is None
        return self.low and unknown and "run" not in self.__dict__

    def _guesses(self) -> bool:
        """Return whether the next run begins with storing the rows, for a grid that is guessed."""
        unknown = self._magnitudes is None and self.bounds is None and self.weights is None
        first = not self.low and unknown and self.fp16_rows is None
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
            self.magnitudes()
        self.forget_run()
        k = self.k
        self.lag = self.lag_of(k)
        launches_per_batch = self.lag + 1
        stops = self.limits or self.tolerance == 0.0
        if self.low and stops and self.n_samples > SMALL_FIT_ROWS:
            # The device stops by itself: it may go on while the host looks at what was.
            self.lag += launches_per_batch
        check_memory(self.needed(k), self.device)
        if self.low:
            fixed_point_grid = None if self.unchecked else self.fixed_point_grid
            n_slots = min(self.lag, self.max_iter) + 4
            self._build_low(fixed_point_grid, centers, n_slots, launches_per_batch, settles)
            return
        self._build_tensor(centers, settles)

    def _build_tensor(self, centers: NDArray | torch.Tensor, settles: bool) -> None:
        """Make a run over more features."""
        if self.fp16_rows is None:
            # The device stores them while the host goes on.
            self.halve(later=isinstance(centers, torch.Tensor))
        self.run = TensorRun(self, centers, self.lag, settles)
        self.used, self.ending = self.run.current, None

    def _build_low(
        self,
        fixed_point_grid: FixedPointGrid | None,
        centers: NDArray | torch.Tensor,
        n_slots: int,
        launches_per_batch: int,
        settles: bool,
    ) -> None:
        """Make a run over few features."""
        self.run = run = LowRun(self, fixed_point_grid, centers, n_slots, settles)
        run.launches_per_batch = launches_per_batch
        if self.limits:
            run.variance = self._mean_variance_of(run)
        self.used, self.ending = run.current, None

    def _fixed(self, k: int, settles: int) -> tuple:
        """Return what is part of a recording, beside addresses and the shape of the rows."""
        grid = self.grid
        return k, settles, self.limits, grid.bits, grid.n_limbs, grid.recover

    def renew(self, X: Any) -> bool:
        """Copy other rows on a GPU, of the same shape, over those that are here; none is weighted.

        The next run may use the memory of the last one and what it recorded: what
        :meth:`labels` and :meth:`centers` returned is overwritten then.
        """
        if not isinstance(X, torch.Tensor) or X.shape != self.X.shape:
            return False
        run = self.__dict__.get("run")
        if isinstance(run, TensorRun) and not self.renewed:
            self.fixed = self._fixed(self.k, run.settles)
        self.X.copy_(X)
        variance = self._variance
        self.forget_magnitudes()
        if self.low:
            self.forget_run()
            return True
        self.set_grid(self.magnitudes())
        if self._fixed_point_grid is not None:
            self._fixed_point_grid = self._fixed_point_grid.renewed(self, self.grid)
        if self.fp16_rows is not None:
            self.fp16_rows.renew(self)
        if variance is not None and variance.n_limbs == self.grid.n_limbs:
            # Where recordings look for it.
            variance.renew(self.fixed_point_grid)
            self._variance = variance
        elif variance is not None:
            # Recordings look for it elsewhere.
            self.fixed = None
        self.renewed = True
        return True

    @anywhere
    def forget_run(self) -> None:
        """Give back what the last run needed, but for what :meth:`labels` and others returned."""
        for name in ("run", "used", "ending"):
            self.__dict__.pop(name, None)

    @anywhere
    def needed(self, k: int) -> int:
        """Return the bytes that a run of k clusters takes, beside the rows."""
        d = self.n_features
        width = padded(d) if self.fp16_rows is None else 0
        spare = 12 * SPARE if self.low else 0
        return self.n_samples * row_bytes(d, width) + self.of_clusters(k) + spare

    @anywhere
    def of_clusters(self, k: int) -> int:
        """Return the bytes of them that belong to clusters."""
        n_limbs = LIMBS if self._magnitudes is None else self.grid.n_limbs
        center = (self.lag + 5) * self.dtype.itemsize
        if self.low:
            center += 8 * n_limbs * replicas(self.n_samples, k)
        else:
            center += 8 * n_limbs + 4 + self.dtype.itemsize
        return k * (self.n_features + 1) * center
