"""The engine: what the loop asks, queued as kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, SupportsFloat

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda import donors
from lloydia.backends.cuda.devices import check_memory, row_bytes
from lloydia.backends.cuda.distances import distances, own_distances
from lloydia.backends.cuda.ending import Ending
from lloydia.backends.cuda.flow import MOST_FEATURES
from lloydia.backends.cuda.found_grid import limbs_before, remember_limbs
from lloydia.backends.cuda.half_rows import padded
from lloydia.backends.cuda.low_cost import low_cost
from lloydia.backends.cuda.low_run import LIMBS, SPARE, LowEnding, LowRun
from lloydia.backends.cuda.own_device import anywhere, on_own_device
from lloydia.backends.cuda.picks import Picks
from lloydia.backends.cuda.reports import Told
from lloydia.backends.cuda.sums import Lattice, gather, replicas
from lloydia.backends.cuda.tensor_run import TensorRun
from lloydia.backends.cuda.totals import Cost, cost_limbs, largest_term
from lloydia.backends.engine import UNLIMITED, Report
from lloydia.data.device_rows import refuse_non_finite
from lloydia.exact import sums as exact
from lloydia.exact.means import means
from lloydia.seeding.given import checked

__all__ = ["CUDA"]


class Queued:
    """The report of an iteration that was queued."""

    __slots__ = "engine", "inertia", "iteration"

    # The end of the run, once it is queued.
    ending: LowEnding | Ending | None

    def __init__(self, engine: CUDA, iteration: int, inertia: SupportsFloat | None) -> None:
        self.engine, self.iteration, self.inertia = engine, iteration, inertia

    def begin(self) -> None:
        """Queue it on the device, with all that was queued here."""
        engine = self.engine
        engine.launch(self.iteration, ends=engine.queued == engine.max_iter)

    def result(self) -> Report:
        """Wait for it."""
        return self.engine.report(self.iteration, self.inertia)


@on_own_device
class CUDA(Picks):
    """The engine for rows on a GPU; see :class:`lloydia.backends.engine.Engine`.

    Parameters
    ----------
    X : torch.Tensor or ndarray of shape (n, d)
    weights : ndarray of shape (n,), float64, or None
    device : str
    """

    algorithm = "lloyd"
    # What the run began with.
    begun: NDArray | torch.Tensor

    def __init__(self, X: Any, weights: NDArray | None, device: str) -> None:
        super().__init__(X, weights, device)
        # What the data hold is asked at once, unless a run or the storing of halves finds it.
        if self.low and weights is not None:
            self.ask()

    def _hold(self, X: torch.Tensor) -> None:
        super()._hold(X)
        self.n_distances = self.n_rechecked = 0
        self.low = self.n_features <= MOST_FEATURES
        self.lag = 0
        self._lattice: Lattice | None = None
        self.renewed = self.unchecked = False
        self.fixed: tuple | None = None

    def extent(self) -> exact.Extent:
        run = self.__dict__.get("run")
        if self._extent is None and isinstance(run, LowRun) and run.stale is not None:
            largest, smallest, self.ordinary = run.measured()
            if not np.isfinite(largest).all():
                refuse_non_finite(self.X)
            self._extent = exact.Extent(self.n_samples, largest, smallest)
        return super().extent()

    def _check(self) -> None:
        """Refuse what the first run has found not to be finite.

        Where it had no room for their grid, or guessed another one, it begins again.  Waits for
        what was launched.
        """
        self.unchecked = False
        if isinstance(self.run, TensorRun):
            self._check_guess()
        elif not 0 < self.run.needs() <= LIMBS:
            before, settles = self.run, bool(self.run.settles)
            self.begun = self._begin(checked(self.begun, self.X, self.k))
            self.extent()
            self._build(self.begun, settles)
            self.run.repeat(before)

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
        self._lattice = None
        # No more iterations were launched than there are slots: the first still has the start.
        start, settles, ends = (
            run.before(1).cpu().numpy(),
            bool(run.settles),
            run.ending is not None,
        )
        del run
        self._build(start, settles)
        self.run.launch(1, self.launched, ends)

    @property
    def expected(self) -> int | None:
        """How many limbs the sums will probably have, if that is all that is known of the grid."""
        if self._extent is not None or self.weights is not None or self.measured is None:
            return None
        return limbs_before(self.X)

    @property
    def lattice(self) -> Lattice:
        """The grid on the device; of a run that nobody waits for yet, as far as it is known."""
        if self._lattice is None and self.expected:
            assert self.halves is not None
            self._lattice, self.unchecked = self.halves.lattice(self.expected), True
        if not self.unchecked and (self._lattice is None or self._lattice.grid is not self.grid):
            self._lattice = Lattice.of(self, self.grid, self.weights)
            remember_limbs(self.X, self.grid.n_limbs)
        assert self._lattice is not None
        return self._lattice

    def spread(self) -> float:
        grid = exact.Grid.choose(self.extent().unweighted(), self.dtype)
        totals = gather(self.X, Lattice.of(self, grid, None))[0].cpu().numpy()
        mean = torch.from_numpy(means(totals, grid, self.dtype)).to(self.device)
        none = torch.zeros(self.n_samples, dtype=torch.int32, device=self.device)
        return float(self.total_cost(none, mean, None)) / (self.n_samples * self.n_features)

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
            self.used = self.run.current
            self.ending = None
        else:
            self._build(self.begun, settles)
        self.renewed = False
        # Iterations queued by the loop, and those that the device was told of.
        self.queued = self.launched = 0

    def _begin(self, centers: NDArray | torch.Tensor) -> NDArray | torch.Tensor:
        """Return what a run begins with.

        Centres on the device stay there if that run finds whether they are finite.
        """
        if isinstance(centers, torch.Tensor):
            return centers if self._measures() else checked(centers, self.X, self.k)
        # Its own, whatever becomes of the caller's, if it may be needed again.
        own = np.array if self.low else np.asarray
        return own(centers, dtype=self.dtype, order="C")

    def _measures(self) -> bool:
        """Return whether the next run begins with measuring."""
        unknown = self._extent is None and self.bounds is None
        return self.low and unknown and "run" not in self.__dict__

    def _build(self, centers: NDArray | torch.Tensor, settles: bool) -> None:
        """Make what a run needs."""
        self.unchecked = self._measures()
        if self.low and not self.unchecked:
            self.extent()
        self.forget_run()
        k = self.k
        self.lag = self.lag_of(k)
        check_memory(self.needed(k), self.device)
        self.run: LowRun | TensorRun
        if self.low:
            lattice = None if self.unchecked else self.lattice
            self.run = LowRun(self, lattice, centers, self.lag + 4, settles)
        else:
            assert isinstance(centers, np.ndarray)
            if self.halves is None:
                # The device stores them while the host goes on.
                self.halve()
            self.run = TensorRun(self, centers, self.lag, settles)
        self.used = self.run.current
        self.ending = None

    def _fixed(self, k: int, settles: int) -> tuple:
        """Return what is part of a recording, beside addresses and the shape of the rows."""
        return k, settles, self.grid.bits, self.grid.n_limbs, self.grid.recover

    def renew(self, X: torch.Tensor) -> None:
        """Copy other rows, of the same shape and type, over those that are here; none is weighted.

        The next run may use the memory of the last one and what it recorded: what
        :meth:`labels` and :meth:`centers` returned is overwritten then.
        """
        run = self.__dict__.get("run")
        if isinstance(run, TensorRun) and not self.renewed:
            self.fixed = self._fixed(self.k, run.settles)
        self.X.copy_(X)
        self.forget_extent()
        if self.low:
            self.forget_run()
            return
        self.set_grid(self.extent())
        if self._lattice is not None:
            self._lattice = self._lattice.renewed(self, self.grid)
        if self.halves is not None:
            self.halves.renew(self)
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

    @anywhere
    def iterate(self, inertia: bool) -> Queued:
        self.queued += 1
        cost = self.watch() if inertia else None
        if not inertia and isinstance(self.run, TensorRun):
            # The first at once, then several together, which takes the host less time.
            many, last = (
                self.queued - self.launched >= self.run.together,
                self.queued == self.max_iter,
            )
            if self.queued == 1 or many or last:
                self.launch(self.queued, ends=last)
        return Queued(self, self.queued, cost)

    def watch(self) -> Cost:
        """Return the inertia of the iteration that was queued last, which is launched with it."""
        self.launch(self.queued, ends=False)
        if self.unchecked:  # Where the run had no room there are no labels.
            self._check()
        return self.total_cost(self.run.labels, self.run.before(self.queued), self.weights)

    def launch(self, iteration: int, ends: bool) -> None:
        """Queue on the device what the loop has queued here, unless it has this iteration.

        With `ends`, the end of the run as well: if the loop queues no more, it is mostly there.
        """
        if iteration > self.launched:
            first, self.launched = self.launched + 1, self.queued
            self.run.launch(first, self.queued, ends)

    def wait(self, iteration: int) -> Told:
        """Return what is told of an iteration, launched if need be."""
        if iteration > self.launched:
            self.launch(iteration, ends=self.queued == self.max_iter)
        if self.unchecked:
            self._check()
        return self.run.answer(iteration)

    @anywhere
    def report(self, iteration: int, inertia: SupportsFloat | None) -> Report:
        """Return the report of an iteration."""
        launched = iteration <= self.launched and not self.unchecked
        told = (self.run.known(iteration) if launched else None) or self.wait(iteration)
        self.n_distances += self.n_samples * self.k
        self.n_rechecked += told.rechecked
        cost = None if inertia is None else float(inertia)
        return Report(
            iteration, self.n_samples, told.changed, told.empty, told.shift, told.move, cost
        )

    @anywhere
    def rewind(self, iteration: int) -> None:
        told = self.run.answer(iteration)
        if told.empty or not self.launched == iteration == self.queued:
            self.queued = self.launched = iteration
            # Where nothing changed the device stopped, and no more is asked of this run.
            if told.changed or told.empty:
                self.go_back(iteration)
        self.ending = self.run.ending
        # A run that came to its end asks for no centres of before.
        if self.ending is None:
            self.used = self.run.before(iteration)

    def go_back(self, iteration: int) -> None:
        """Have the device return to the state after an iteration."""
        self.run.go_back(iteration)

    def empty_clusters(self) -> NDArray[np.int64]:
        weights = self.run.sums.sum(dim=0)[:, :, -1]
        return np.flatnonzero((weights == 0).all(dim=0).cpu().numpy())

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        run, iteration = self.run, self.launched
        changed = run.answer(iteration).changed
        totals = run.sums.sum(dim=0, keepdim=True)
        weights = None if self.weights is None else self.weights.cpu().numpy()[rows]
        limbs = torch.from_numpy(exact.limbs(self.rows(rows), weights, self.grid)).to(self.device)
        old = run.labels[torch.from_numpy(rows).to(self.device)].tolist()
        for i, cluster in enumerate(clusters.tolist()):
            totals[0, :, cluster] += limbs[:, i]
            totals[0, :, old[i]] -= limbs[:, i]
        run.go_back(iteration - 1)
        run.finish(totals, iteration)
        report = self.report(iteration, None)
        return report._replace(n_changed=changed)

    @anywhere
    def assign(self) -> None:
        self.used = self.run.current
        if self.ending is None:
            self.end()
        self.n_distances += self.n_samples * self.k

    def end(self) -> None:
        """Queue what the run ends with."""
        self.ending = self.run.end()

    @anywhere
    def inertia(self) -> SupportsFloat:
        if self.ending is not None:
            return self.ending
        return self.total_cost(self.run.labels, self.used, self.weights)

    @property
    def full(self) -> bool:
        """Whether every cluster is known to have a row since :meth:`assign`."""
        return self.ending is not None and self.ending.full()

    def total_cost(
        self, labels: torch.Tensor, centers: torch.Tensor, weights: torch.Tensor | None
    ) -> Cost:
        """Return the weighted sum of D to the centres of these labels."""
        if self.low:
            return low_cost(self, labels, centers, weights)
        D = own_distances(self, labels, centers)
        return Cost(cost_limbs(D, weights, largest_term(D, weights)), self.n_samples)

    @anywhere
    def labels(self) -> torch.Tensor:
        return self.run.labels

    @anywhere
    def centers(self) -> torch.Tensor:
        return self.run.current

    def counts(self) -> NDArray[np.int64]:
        return donors.counts(self.run.labels, self.weights, self.k)

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        D = own_distances(self, self.run.labels, self.used)
        return donors.farthest(D, self.run.labels, self.weights, count)

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        self.start(np.asarray(centers), "lloyd")
        self.run.assign()
        if self.unchecked:
            self._check()
        self.extent()  # refuses NaN
        self.n_distances += self.n_samples * self.k

    def distances(self, centers: NDArray) -> torch.Tensor:
        self.extent()  # refuses NaN
        return distances(self, torch.from_numpy(centers.astype(self.dtype)).to(self.device))
