"""The state of one run over rows of few features on the device."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from weakref import proxy

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.all_reduce import queue_tell
from lloydia.backends.cuda.barrier import THREADS, resident
from lloydia.backends.cuda.extent import bounds_of
from lloydia.backends.cuda.flow import HALT, ITERATION
from lloydia.backends.cuda.launching import (
    EXACT,
    INTERPRETED,
    ceil_div,
    launch_known,
    next_power,
    processors,
)
from lloydia.backends.cuda.low_cells import cell_type, sides_of
from lloydia.backends.cuda.low_cost import DONE, RESIDENT, cost_programs, end_kernel
from lloydia.backends.cuda.low_grid import measure_kernel
from lloydia.backends.cuda.low_kernel import low_kernel
from lloydia.backends.cuda.low_scores import group_of, kept_of
from lloydia.backends.cuda.low_sums import digit_shape
from lloydia.backends.cuda.low_told import LowTold
from lloydia.backends.cuda.means import HEAD, queue_finish
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.plans import Layout, planned
from lloydia.backends.cuda.reports import Told, read
from lloydia.backends.cuda.sums import Lattice, replicas
from lloydia.backends.cuda.totals import join_cost
from lloydia.exact import sums as exact

__all__ = ["LIMBS", "SPARE", "LowEnding", "LowRun"]

# Programs that a multiprocessor holds.
PROGRAMS = 2
# Rows that a program looks at together, and the products of clusters and columns whose means it
# computes together.
LEAST_ROWS, ROWS, MEANS = 128, 512, 256
# Replicas of sums that every program adds to once.
FEW_REPLICAS = 64
# Centres that are tabulated together.
CENTERS = 128
# More than the entries of lists that stay unused.
SPARE = 1 << 19
# Limbs that there is room for where the grid is not known yet.
LIMBS = 3


class LowEnding:
    """The inertia that a run ends with, and which labels occur, when someone asks for them."""

    def __init__(self, run: LowRun) -> None:
        self.run, self.n = run, run.rows.n_samples

    def __float__(self) -> float:
        return join_cost(self.run.read()[2][:4].tolist(), self.n)

    def full(self) -> bool:
        """Return whether every cluster has a row."""
        return int(np.count_nonzero(self.run.read()[3].view(np.int32))) == self.run.k


class LowRun(LowTold):
    """Labels, sums and centres; what the kernel reads and writes, and what the host reads of it.

    Parameters
    ----------
    rows : Placed
    lattice : Lattice or None
        None: the run begins with finding it.
    centers : ndarray of shape (k, d)
    n_slots : int
        Iterations whose centres and reports are kept.
    settles : bool
        Whether iterations end at one with empty clusters.

    Attributes
    ----------
    labels : int32 (n,)
        Not known before the first assignment.
    table : float32 ((k + 7) PITCH,)
        See :func:`lloydia.backends.cuda.low_scores.tabulate`.
    sides : int
        Cells along each feature; 0: there are none.
    cells : int32 or int64 (sides**d,) or None
        See :mod:`lloydia.backends.cuda.low_cells`.
    current : (k, d)
    history : (n_slots, k, d)
        The centres after iteration i in slot i modulo n_slots.
    """

    def __init__(
        self, rows: Placed, lattice: Lattice | None, centers: NDArray, n_slots: int, settles: bool
    ) -> None:
        # The engine knows of its run: if both knew each other, their memory would stay a while.
        self.rows, self.lattice, self.settles = proxy(rows), lattice, int(settles)
        n, (k, d) = rows.n_samples, centers.shape
        self.k, self.n_slots = k, n_slots
        self.bits = exact.bits_a_limb(n) if lattice is None else lattice.grid.bits
        self.n_limbs = LIMBS if lattice is None else lattice.grid.n_limbs
        new: dict[str, Any] = {"device": rows.device}
        self._cut()
        self.digits = digit_shape(n, d, k, self.bits) if rows.weights is None else (0, 0, 0)
        self.n_replicas = FEW_REPLICAS if any(self.digits) else replicas(n, k)
        # From memory that is not pinned, the host goes on when the driver has its own copy.
        self.current = torch.from_numpy(centers).to(rows.device, non_blocking=True)
        self.labels = torch.empty(n, dtype=torch.int32, **new)
        lists = torch.empty((3, self.programs * self.room), dtype=torch.int32, **new)
        self.changed_rows, self.changed_old, self.doubts = lists.unbind()
        self.table = torch.empty((k + 7) * next_power(d + 1), dtype=torch.float32, **new)
        self.sides = sides_of(n, d, k) if k <= self.room else 0
        self.cells = None
        if self.sides:
            self.cells = torch.empty(self.sides**d, dtype=cell_type(k), **new)
        self.history = torch.empty((n_slots, k, d), dtype=rows.wide, **new)
        self._begin_with_zeros(d, self.n_replicas * self.n_limbs * k * (d + 1))
        # Whether what was launched is to be read again; nothing was.
        self.stale: bool | None = None

    def _cut(self) -> None:
        """Choose how many rows a program looks at together, and how many programs there are."""
        n, most = self.rows.n_samples, PROGRAMS * processors(self.rows.device)
        # One program, which waits for nobody, if it can look at all rows together.
        share = n if n <= ROWS else ceil_div(n, most)
        self.block = min(max(next_power(share), LEAST_ROWS), ROWS)
        blocks = ceil_div(n, self.block)
        self.programs = 1 if INTERPRETED else min(most, blocks)
        self.room = ceil_div(blocks, self.programs) * self.block

    def launch(self, first: int, last: int, ends: bool) -> None:
        """Queue some iterations, and with `ends` what a run ends with if they are its last."""
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
        self.launched = n_iterations, assigns, adds
        planned(self._queue, self.rows.device, self._layout())
        self.stale = True

    def _layout(self) -> Layout:
        """Return what the next launches depend on."""
        X, weights, lattice = self.rows.X, self.rows.weights, self.lattice
        if lattice is None:
            return Layout.of("low", X, self)
        # Its numbers may be this run's own: found first, they are a part by themselves.
        more = lattice.grid.bits, lattice.grid.n_limbs, lattice.grid.recover, weights is None
        layout = Layout.of("low", X, lattice, self, more=more)
        parts = [self.numbers, *([] if weights is None else [weights]), *layout.parts]
        return layout._replace(parts=parts)

    def _queue(self) -> None:
        """Queue what is to be launched."""
        n_iterations, assigns, adds = self.launched
        rows, lattice = self.rows, self.lattice
        n, d = rows.X.shape
        kind = rows.X.dtype, rows.X.data_ptr() % 16, d
        if lattice is None and self.stale is None:
            self._measure(kind)
        self._iterate(kind, n_iterations, assigns)
        if adds:
            launch_known(
                end_kernel, (*kind, rows.weights is None), (cost_programs(n, rows.device), 1, 1),
                rows.X, n, self.k, self.labels, self.current, rows.weights, self.cost,
                exact.bits_a_limb(n), self.seen, self.report, self.n_slots, self.flow,
                self.arrivals, int(assigns), d=d, **EXACT, **resident(RESIDENT),
            )  # fmt: skip

    def _measure(self, kind: tuple) -> None:
        """Queue the measurement of the rows."""
        n, d = self.rows.X.shape
        programs = min(ceil_div(n, ROWS), 2 * RESIDENT * processors(self.rows.device))
        launch_known(
            measure_kernel, kind, (1 if INTERPRETED else programs, 1, 1),
            self.rows.X, n, self.bounds, exact.bits_a_limb(n), self.numbers, LIMBS, self.flow,
            d=d, ROWS=ROWS, **EXACT,
        )  # fmt: skip

    def _iterate(self, kind: tuple, n_iterations: int, assigns: bool) -> None:
        """Queue iterations, and perhaps an assignment."""
        rows, lattice = self.rows, self.lattice
        n, d = rows.X.shape
        known = None if lattice is None else lattice.grid
        recover, weights = known is not None and known.recover, lattice and lattice.weights
        columns, group, kept = next_power(d + 1), group_of(self.k), kept_of(self.k, d)
        digits, width, clusters = self.digits
        tile = min(max(1, MEANS // (columns * self.n_replicas)), next_power(self.k))
        launch_known(
            low_kernel,
            (*kind, weights is None, recover, self.block, self.n_replicas, tile, group, kept,
             digits, clusters, self.cells is None or self.cells.dtype),
            (self.programs, 1, 1),
            rows.X, n, self.k, weights, self.numbers, self.bounds, self.labels,
            self.all_sums, 0 if known is None else known.n_limbs, self.bits,
            self.current, self.history, self.n_slots, self.report, self.flow, self.settles,
            self.changed_rows, self.changed_old, self.doubts, self.room,
            self.table, self.cells, self.sides, self.arrivals, n_iterations, int(assigns),
            d=d, WEIGHTED=weights is not None, RECOVER=recover,
            EACH=self.block // THREADS, COLUMNS=columns, CENTERS=CENTERS, GROUP=group, KEPT=kept,
            REPLICAS=self.n_replicas, BLOCK_K=tile,
            DIGITS=digits, DIGIT_COLUMNS=width, CLUSTERS=clusters, **EXACT, **resident(PROGRAMS),
        )  # fmt: skip

    def slot(self, iteration: int) -> int:
        """Return where the centres and the report of an iteration are."""
        return iteration % self.n_slots

    def before(self, iteration: int) -> torch.Tensor:
        """Return the centres that rows were assigned to in an iteration."""
        return self.history[self.slot(iteration - 1)]

    # -- what the host reads -----------------------------------------------------------------

    def read(self) -> list[NDArray[np.int64]]:
        """Wait for all that was launched; return the parts of `told`."""
        if self.stale:
            # A copy also where the device is the host.
            found = self.told.cpu().numpy().copy()
            self.found = [found[first:last] for first, last in pairwise(self.edges)]
            size = self.n_slots * (HEAD.value + self.k)
            self.reports = read(self.found[5][:size].reshape(self.n_slots, -1))
            self.stale = False
        return self.found

    def needs(self) -> int:
        """Return the limbs that the rows need, as found by the first launch; 0: not finite."""
        return int(self.read()[1][2 * self.rows.n_features])

    def measured(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return what :func:`lloydia.backends.cuda.extent.magnitudes` does; of the first launch."""
        numbers, bounds, *_ = self.read()
        d, double = self.rows.n_features, self.rows.X.dtype == torch.float64
        largest, smallest = bounds_of(bounds[: 2 * d].reshape(2, d), double)
        return largest, smallest, numbers.view(np.float64)[3 * (d + 1) :][:d]

    def known(self, iteration: int) -> Told | None:
        """Return the report of an iteration that was launched, if it was read."""
        return None if self.stale else self.reports[iteration % self.n_slots]

    def answer(self, iteration: int) -> Told:
        """Wait for the report of an iteration."""
        self.read()
        return self.reports[self.slot(iteration)]

    @property
    def ending(self) -> LowEnding | None:
        """What the run ends with, if what was launched came to its end; waits for that."""
        return LowEnding(self) if self.read()[2][DONE.value] else None

    # -- on the way --------------------------------------------------------------------------

    @property
    def sums(self) -> torch.Tensor:
        """The sums, once the grid is known: int64 (n_replicas, n_limbs, k, d + 1)."""
        k, d = self.current.shape
        n_limbs = self.rows.grid.n_limbs
        used = self.n_replicas * n_limbs * k * (d + 1)
        return self.all_sums[:used].view(self.n_replicas, n_limbs, k, d + 1)

    def finish(self, sums: torch.Tensor, iteration: int) -> None:
        """Queue the end of an iteration: centres from these sums, whatever is empty."""
        if self.lattice is None:
            self.lattice = Lattice.of(self.rows, self.rows.grid, None)
        queue_finish(sums, self.lattice, self, members=1)
        self.flow[HALT.value] = 0
        self.stale = True

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current; labels and sums must be those of it.

        What the host has read of reports stays, and of the end is forgotten.
        """
        self.read()
        self.current.copy_(self.before(iteration + 1))
        self.told[self.edges[2] :].zero_()
        self.flow[ITERATION.value] = iteration
        self.found[2][:] = 0
