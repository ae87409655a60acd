"""The state of one run over rows of few features on the device."""

from __future__ import annotations

from functools import partial
from weakref import proxy

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.all_reduce import queue_tell
from lloydia.backends.cuda.barrier import THREADS, resident
from lloydia.backends.cuda.extent import bounds_of
from lloydia.backends.cuda.fetching import Fetched
from lloydia.backends.cuda.flow import HALT, ITERATION
from lloydia.backends.cuda.launching import EXACT, INTERPRETED, ceil_div, launch_known, processors
from lloydia.backends.cuda.low_cells import sides_of
from lloydia.backends.cuda.low_cost import DONE, RESIDENT, cost_programs, end_kernel
from lloydia.backends.cuda.low_grid import measure_kernel
from lloydia.backends.cuda.low_kernel import low_kernel
from lloydia.backends.cuda.low_memory import LowMemory
from lloydia.backends.cuda.low_shape import LIMBS, ROWS, shape_of
from lloydia.backends.cuda.means import HEAD, queue_finish
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.plans import Layout, planned
from lloydia.backends.cuda.reports import Told, passed, told
from lloydia.backends.cuda.spread import TOTAL, Spread
from lloydia.backends.cuda.starting import queue_zeros
from lloydia.backends.cuda.sums import Lattice
from lloydia.backends.cuda.totals import join_cost
from lloydia.backends.engine import UNLIMITED
from lloydia.exact import sums as exact

__all__ = ["LIMBS", "SPARE", "LowEnding", "LowRun"]

# Centres that are tabulated together.
CENTERS = 128
# More than the entries of lists that stay unused.
SPARE = 1 << 19


class LowEnding:
    """The inertia that a run ends with, and which labels occur, when someone asks for them."""

    def __init__(self, run: LowRun) -> None:
        self.run, self.n = run, run.rows.n_samples

    def __float__(self) -> float:
        return join_cost(self.run.last_part(2)[:4].tolist(), self.n)

    def full(self) -> bool:
        """Return whether every cluster has a row."""
        return int(np.count_nonzero(self.run.last_part(3).view(np.int32))) == self.run.k


class LowRun(LowMemory):
    """Labels, sums and centres; what the kernel reads and writes, and what the host reads of it.

    Parameters
    ----------
    rows : Placed
    lattice : Lattice or None
        None: the run begins with finding it.
    centers : ndarray of shape (k, d), or a tensor on the device
        A tensor may hold what is not finite, if the run begins with finding the lattice, and stays
        as it is until that was waited for.
    n_slots : int
        Iterations whose centres and reports are kept.
    settles : bool
        Whether iterations end at one with empty clusters.

    Attributes
    ----------
    spread : Spread, optional
        By which the device ends the run.
    together : int
        Iterations that are launched together, while those before them are on their way.
    labels : int32 (n,)
        Not known before the first assignment.
    current : (k, d)
    """

    spread: Spread | None = None
    together = 1

    def __init__(
        self,
        rows: Placed,
        lattice: Lattice | None,
        centers: NDArray | torch.Tensor,
        n_slots: int,
        settles: bool,
    ) -> None:
        # The engine knows of its run: if both knew each other, their memory would stay a while.
        self.rows, self.lattice, self.settles = proxy(rows), lattice, int(settles)
        n, (k, d), device = rows.n_samples, centers.shape, rows.device
        self.k, self.n_slots = k, n_slots
        self.bits = exact.bits_a_limb(n) if lattice is None else lattice.grid.bits
        self.shape = shape_of(
            n, d, k, n_slots, LIMBS if lattice is None else lattice.grid.n_limbs, self.bits,
            rows.weights is not None, sides_of(n, d, k), rows.wide.itemsize, device,
        )  # fmt: skip
        if isinstance(centers, torch.Tensor):
            self.begun, self.current = centers, torch.empty_like(centers)
        else:
            # From memory that is not pinned, the host goes on when the driver has its own copy.
            self.begun = self.current = torch.from_numpy(centers).to(device, non_blocking=True)
        self.labels = torch.empty(n, dtype=torch.int32, device=device)
        self._take()
        if lattice is not None:  # Else the first launch writes them.
            self.zeros.zero_()
        # Whether what was launched last is to be fetched; nothing was.  The last iteration that was
        # launched, and that was read.
        self.stale: bool | None = None
        self.last = self.known_to = 0
        # What launches tell, on its way, and up to which iterations.
        self.sent: list[tuple[int, Fetched]] = []
        # What was read at last, and whether the device had halted then.
        self.found: NDArray[np.int64] | None = None
        self.halted = False
        # The iteration that was asked for last, since then, and what was told of it.
        self.asked, self.answered = 0, Told(0, 0, 0, 0, 0.0, 0.0)

    def launch(self, first: int, last: int, ends: bool) -> None:
        """Queue some iterations, and with `ends` what a run ends with if they are its last."""
        if self.stale:
            self.sent.append((self.last, self._fetch()))
        self.last = last
        self.queue(last - first + 1, assigns=ends, adds=True)

    def assign(self) -> None:
        """Queue an assignment."""
        self.queue(0, assigns=True, adds=False)

    def contribute(self, message: torch.Tensor) -> None:
        """Queue an iteration up to what is told of it to others."""
        self.queue(-1, assigns=False, adds=False)
        queue_tell(self.sums, self.flow, message)

    def end(self) -> LowEnding:
        """Queue an assignment and the inertia."""
        self.queue(0, assigns=True, adds=True)
        return LowEnding(self)

    def queue(self, n_iterations: int, assigns: bool, adds: bool) -> None:
        """Queue iterations, then an assignment, then the inertia if the run is at its end."""
        self.launched, device = (n_iterations, assigns, adds), self.rows.device
        coming = Fetched.written(self.shape.edges[-1], device) if adds else None
        host = None if coming is None else coming.memory
        planned(partial(self._queue, host), device, self._layout(host))
        if coming is not None:
            coming.note()
            self.sent.append((self.last, coming))
        self.stale = coming is None
        if self.spread is not None:
            self.spread.done()

    def repeat(self, other: LowRun) -> None:
        """Queue what another run has queued."""
        n_iterations, assigns, adds = other.launched
        self.last = other.last
        self.queue(self.last if n_iterations > 0 else n_iterations, assigns, adds)

    def _layout(self, host: torch.Tensor | None) -> Layout:
        """Return what the next launches depend on."""
        X, weights, lattice = self.rows.X, self.rows.weights, self.lattice
        key = (
            "low", self.shape, X.shape, X.dtype, X.data_ptr() % 16, self.begun.data_ptr() % 16,
            self.launched, self.stale, self.settles, self.begun is self.current,
            self.rows.most_bits, host is None,  # type: ignore[attr-defined]
        )  # fmt: skip
        parts = [X, self.piece, self.current, self.begun, self.labels]
        if lattice is not None:
            # Its numbers may be this run's own: found first, they are a part by themselves.
            key += lattice.grid.bits, lattice.grid.n_limbs, lattice.grid.recover, weights is None
            more = weights, lattice.weights
            parts = [self.numbers, *(part for part in more if part is not None), *parts]
        if self.spread is not None:
            key += "spread", self.spread.key
            parts = [*self.spread.pieces, *parts]
        return Layout(key, parts if host is None else [*parts, host])

    def _queue(self, host: torch.Tensor | None) -> None:
        """Queue what is to be launched; what is told goes to the host's memory, if there is any."""
        n_iterations, assigns, adds = self.launched
        rows, lattice = self.rows, self.lattice
        n, d = rows.X.shape
        kind = rows.X.dtype, rows.X.data_ptr() % 16, d
        if lattice is None and self.stale is None:
            queue_zeros(self.zeros)
            self._measure((*kind, self.begun.data_ptr() % 16))
        if self.spread is not None and not self.spread.queued:
            self.spread.queue(self.rows)
        self._iterate(kind, n_iterations, assigns)
        if adds:
            launch_known(
                end_kernel, (*kind, rows.weights is None, host is None),
                (cost_programs(n, rows.device), 1, 1),
                rows.X, n, self.k, self.labels, self.current, rows.weights, self.cost,
                exact.bits_a_limb(n), self.seen, self.report, self.n_slots, self.flow,
                self.arrivals, int(assigns), self.told, self.shape.edges[-1], host, d=d,
                **EXACT, **resident(RESIDENT),
            )  # fmt: skip

    def _measure(self, kind: tuple) -> None:
        """Queue the measurement of the rows, and of the start."""
        n, d = self.rows.X.shape
        programs = min(ceil_div(n, ROWS), 2 * RESIDENT * processors(self.rows.device))
        launch_known(
            measure_kernel, kind, (1 if INTERPRETED else programs, 1, 1),
            self.rows.X, n, self.bounds, exact.bits_a_limb(n), self.numbers, LIMBS, self.flow,
            self.begun, self.current, self.k, self.rows.most_bits, d=d, ROWS=ROWS, **EXACT,  # type: ignore[attr-defined]
        )  # fmt: skip

    def _iterate(self, kind: tuple, n_iterations: int, assigns: bool) -> None:
        """Queue iterations, and perhaps an assignment."""
        rows, lattice = self.rows, self.lattice
        n, d = rows.X.shape
        known = None if lattice is None else lattice.grid
        recover, weights = known is not None and known.recover, lattice and lattice.weights
        shape = self.shape
        digits, width, clusters = shape.digits
        launch_known(
            low_kernel,
            (*kind, weights is None, recover, shape.block, shape.n_replicas, shape.tile,
             shape.each, shape.group, shape.kept, digits, clusters,
             self.cells is None or self.cells.dtype, self.spread is None),
            (shape.programs, 1, 1),
            rows.X, n, self.k, weights, self.numbers, self.bounds, self.labels,
            self.all_sums, 0 if known is None else known.n_limbs, self.bits,
            self.current, self.history, self.n_slots, self.report, self.flow, self.settles,
            None if self.spread is None else self.spread.limit,
            *self.lists, shape.room, self.table, self.cells, shape.sides, self.arrivals,
            n_iterations, int(assigns), d=d, WEIGHTED=weights is not None, RECOVER=recover,
            EACH=shape.block // THREADS, COLUMNS=shape.columns, CENTERS=CENTERS,
            GROUP=shape.group, KEPT=shape.kept, REPLICAS=shape.n_replicas, BLOCK_K=shape.tile,
            DIGITS=digits, DIGIT_COLUMNS=width, CLUSTERS=clusters, **EXACT, **resident(shape.each),
        )  # fmt: skip

    def slot(self, iteration: int) -> int:
        """Return where the centres and the report of an iteration are."""
        return iteration % self.n_slots

    def before(self, iteration: int) -> torch.Tensor:
        """Return the centres that rows were assigned to in an iteration."""
        return self.history[self.slot(iteration - 1)]

    # -- what the host reads -----------------------------------------------------------------

    def read(self, iteration: int = UNLIMITED) -> None:
        """Wait for what was launched up to an iteration; by default, for all of it."""
        while self.sent:
            last, fetched = self.sent.pop(0)
            if iteration <= last or not (self.sent or self.stale):
                self._adopt(fetched, last)
                return
        if self.stale:
            self._adopt(self._fetch(), self.last)
            self.stale = False

    def _fetch(self) -> Fetched:
        """Queue the copy of what is told."""
        return Fetched(self.piece, 0, 8 * self.shape.edges[-1])

    def _adopt(self, fetched: Fetched, last: int) -> None:
        """Take what launches up to an iteration have told."""
        self.found = fetched.numpy().view(np.int64)
        self.halted = bool(self.part(4).view(np.int32)[HALT.value])
        self.known_to, self.asked = last, 0
        if self.spread is not None and self.spread.memory is self.spreading:
            self.spread.limbs = self.part(6)[:TOTAL].tolist()

    def _reports(self) -> NDArray[np.int64]:
        """Return the reports that were read at last: shape (n_slots, HEAD + k)."""
        size = HEAD.value + self.k
        return self.part(5)[: self.n_slots * size].reshape(self.n_slots, size)

    def passed(self, first: int, most: int, limit: float) -> tuple[int, int, bool]:
        """Wait for an iteration; return what :func:`reports.passed` does from there on.

        Of those that are known then, in slots that follow each other, and at most so many.
        """
        if first > self.known_to:
            self.read(first)
        slot = self.slot(first)
        last = min(slot + most, slot + self.known_to + 1 - first, self.n_slots)
        return passed(self._reports()[slot:last], self.settles, limit)

    def part(self, i: int) -> NDArray[np.int64]:
        """Return a part of what was told at last; waits for the first launch."""
        if self.found is None:
            self.read(1)
        assert self.found is not None
        edges = self.shape.edges
        return self.found[edges[i] : edges[i + 1]]

    def last_part(self, i: int) -> NDArray[np.int64]:
        """Return a part of what is told after all that was launched; waits for that.

        Where the device has halted, nothing has changed since.
        """
        if not self.halted:
            self.read()
        return self.part(i)

    def needs(self) -> int:
        """Return the limbs that the rows need, as found by the first launch; 0: not finite.

        Or the start is not.
        """
        return int(self.part(1)[2 * self.rows.n_features])

    def measured(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what :func:`lloydia.backends.cuda.extent.magnitudes` does; of the first launch."""
        d, double = self.rows.n_features, self.rows.X.dtype == torch.float64
        return bounds_of(self.part(1)[: 2 * d].reshape(2, d), double)

    def known(self, iteration: int) -> Told | None:
        """Return the report of an iteration that was launched, if it was read."""
        return None if iteration > self.known_to else self.answer(iteration)

    def answer(self, iteration: int) -> Told:
        """Wait for the report of an iteration."""
        if iteration > self.known_to:
            self.read(iteration)
        # The loop and the engine ask for the same one.
        if iteration != self.asked:
            self.asked, self.answered = iteration, told(self._reports()[self.slot(iteration)])
        return self.answered

    @property
    def ending(self) -> LowEnding | None:
        """What the run ends with, if what was launched came to its end; waits for that."""
        return LowEnding(self) if self.last_part(2)[DONE.value] else None

    # -- on the way --------------------------------------------------------------------------

    @property
    def sums(self) -> torch.Tensor:
        """The sums, once the grid is known: int64 (n_replicas, n_limbs, k, d + 1)."""
        k, d = self.current.shape
        n_limbs = self.rows.grid.n_limbs
        n_replicas = self.shape.n_replicas
        used = n_replicas * n_limbs * k * (d + 1)
        return self.all_sums[:used].view(n_replicas, n_limbs, k, d + 1)

    def finish(self, sums: torch.Tensor, iteration: int) -> None:
        """Queue the end of an iteration: centres from these sums, whatever is empty."""
        if self.lattice is None:
            self.lattice = Lattice.of(self.rows, self.rows.grid, None)
        queue_finish(sums, self.lattice, self, members=1)
        self.flow[HALT.value] = 0
        self.last, self.stale, self.halted = iteration, True, False

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current; labels and sums must be those of it.

        What the host has read of reports stays, and of the end is forgotten.
        """
        self.read()
        self.current.copy_(self.before(iteration + 1))
        self.told[self.shape.edges[2] : self.shape.edges[6]].zero_()
        self.flow[ITERATION.value] = iteration
        self.last = self.known_to = iteration
        self.part(2)[:] = 0
        self.halted = False
