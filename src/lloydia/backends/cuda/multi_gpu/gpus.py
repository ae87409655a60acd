"""Several GPUs of one host: each has some of the rows, and all compute the same centres.

One thread queues an iteration on every GPU.  Each GPU assigns its rows and writes its sums.  The
first GPU adds them up and sends the total to the others (two direct copies for each GPU).  Then
each computes the same centres from the same integers, so that its labels, history and run state are
those of a single engine.  No GPU waits for the host, which may be iterations ahead.  Seeding and
measuring call all parts, in one thread for each GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.run_state import ITERATION
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.multi_gpu.part import CUDAPart
from lloydia.backends.cuda.rows.memory import needed_bytes
from lloydia.backends.cuda.rows.placed import MAX_ROWS
from lloydia.backends.cuda.runtime.devices import check_memory
from lloydia.backends.cuda.runtime.launching import INTERPRETED, place
from lloydia.backends.cuda.runtime.own_device import current
from lloydia.backends.cuda.update.reports import Reports
from lloydia.backends.engine import UNLIMITED, Report
from lloydia.backends.parts import Parts
from lloydia.spelling import option

__all__ = ["GPUs", "Threads", "distribute_rows"]


class Threads:
    """Parts on GPUs, each called by its own thread; see :class:`lloydia.backends.group.Group`.

    Parameters
    ----------
    X : torch.Tensor on a GPU, or ndarray: shape (n, d)
        Cut evenly.  Rows that are not on a part's GPU are copied there: from the host through
        pinned buffers, from another GPU directly.
    weights : ndarray of shape (n,), float64, or None
    names : sequence of str
        The GPUs, one for each part.
    """

    def __init__(self, X: Any, weights: NDArray | None, names: Sequence[str]) -> None:
        devices = [place(name) for name in names]
        # Triton's interpreter runs one kernel at a time.
        self.pool = ThreadPoolExecutor(1 if INTERPRETED else len(names))
        self.home = X.device if isinstance(X, torch.Tensor) else None
        edges = np.linspace(0, len(X), len(names) + 1).astype(np.int64).tolist()

        def part(a: int, b: int, name: str) -> CUDAPart:
            own = None if weights is None else weights[a:b]
            try:
                return CUDAPart(_brought(X[a:b], place(name)), own, name)
            except MemoryError as error:
                raise MemoryError(
                    f"{error} Several GPUs have to hold all rows; one, {option('device', name)}, "
                    "takes rows "
                    "on the host in blocks."
                ) from None

        jobs = [
            self._submit(device, part, a, b, name)
            for device, (a, b), name in zip(devices, pairwise(edges), names)
        ]
        self.parts: list[CUDAPart] = _results(jobs)
        self.lengths = [part.n_samples for part in self.parts]
        first = self.parts[0]
        self.dtype, self.n_features = first.dtype, first.n_features
        self.name = "cuda:" + ",".join(name.removeprefix("cuda:") for name in names)

    def _submit(self, device: torch.device, function: Callable, *arguments: Any) -> Future:
        """Run a function in a thread, in the stream of a device that is the caller's.

        It also runs in the caller's stream of the rows' home, since that is part of a copy from it.
        """
        # The stream that is entered last makes its device the current one.
        places = [on for on in (self.home, device) if on is not None]
        streams = [torch.cuda.current_stream(on) for on in places if on.type == "cuda"]

        def task() -> Any:
            with ExitStack() as stack:
                for stream in streams:
                    stack.enter_context(torch.cuda.stream(stream))
                return function(*arguments)

        return self.pool.submit(task)

    def each(self, method: str, *arguments: Any) -> list[Any]:
        own = dict.fromkeys(range(len(self.parts)), arguments)
        return list(self.some(method, own).values())

    def total(self, method: str, *arguments: Any) -> Any:
        return reduce(add, self.each(method, *arguments))

    def some(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        jobs = [
            self._submit(self.parts[p].device, getattr(self.parts[p], method), *own)
            for p, own in arguments.items()
        ]
        return dict(zip(arguments, _results(jobs)))

    def labels(self) -> Any:
        """Return the labels of all rows, on the GPU that the rows came from or on the host."""
        if self.home is None:
            return np.concatenate(self.each("labels"))
        return torch.cat([part.run.labels.to(self.home) for part in self.parts])

    def distances(self, centers: NDArray) -> Any:
        """Return the distances of all rows to all centres, where :meth:`labels` are."""
        if self.home is None:
            return np.vstack(self.each("distances", centers))
        return torch.vstack([CUDA.distances(part, centers).to(self.home) for part in self.parts])


def _results(jobs: Sequence[Future]) -> list[Any]:
    """Wait for all jobs, so that none goes on after another has failed; return their results."""
    wait(jobs)
    return [job.result() for job in jobs]


def _brought(X: Any, device: torch.device) -> Any:
    """Copy rows from any GPU to this one; rows on the host stay there."""
    if not isinstance(X, torch.Tensor) or X.device == device:
        return X
    n, d = X.shape
    check_memory(needed_bytes(n, d, X.dtype.itemsize, copied=True), device)
    return X.to(device)


@dataclass(frozen=True)
class Coming:
    """The report of an iteration that was queued."""

    engine: GPUs
    iteration: int
    inertia: float | None

    def begin(self) -> None:
        """Do nothing: the devices have it queued."""

    def result(self) -> Report:
        """Wait for the report."""
        return self.engine.report(self.iteration, self.inertia)


class GPUs(Parts):
    """The engine for rows on several GPUs; see :class:`lloydia.backends.engine.Engine`.

    Parameters
    ----------
    group : Threads
    """

    group: Threads

    def __init__(self, group: Threads) -> None:
        super().__init__(group)
        self.parts = group.parts
        self.first = self.parts[0]

    def start(
        self, centers: NDArray, algorithm: str, settles: bool = True, max_iter: int = UNLIMITED
    ) -> None:
        self.group.each("start", np.asarray(centers), algorithm, settles, max_iter)
        first = self.first
        self.lag, self.reports, self.queued = first.lag, Reports(first.run.report), 0
        self.inbox = first.message.new_empty((len(self.parts), len(first.message)))
        first.message = self.inbox[0]

    def iterate(self, inertia: bool) -> Coming:
        self.queued += 1
        for part in self.parts:
            part.contribute()
        self._reduce()
        for part in self.parts:
            part.finish()
        self._ask()
        return Coming(self, self.queued, self._inertia_before() if inertia else None)

    def _reduce(self) -> None:
        """Queue the addition of all messages; a copy is in order with the work of both GPUs."""
        others = self.parts[1:]
        for part, place_of_message in zip(others, self.inbox[1:]):
            place_of_message.copy_(part.message, non_blocking=True)
        with current(self.first.device):
            torch.sum(self.inbox, dim=0, out=self.first.total)
        for part in others:
            part.total.copy_(self.first.total, non_blocking=True)

    def _ask(self) -> None:
        with current(self.first.device):
            self.reports.ask(self.queued, self.queued)

    def _inertia_before(self) -> float | None:
        """Wait for the iteration queued last; return its inertia, or None if there was none.

        If the devices stopped before it, its centres were never written.
        """
        with current(self.first.device):
            done = int(self.first.run.run_state[ITERATION.value])
        if done < self.queued:
            return None
        self._look_back(self.queued)
        return self.inertia()

    def _look_back(self, iteration: int) -> None:
        self.latest = self.largest_cost = None
        for part in self.parts:
            part.look_back(iteration)

    def report(self, iteration: int, inertia: float | None) -> Report:
        """Return the report of an iteration that was queued."""
        status = self.reports.status(iteration)
        for part in self.parts:
            part.n_distances += part.n_samples * len(part.run.current)
        self.first.n_rechecked += status.rechecked
        return Report(
            iteration,
            self.n_samples,
            status.changed,
            status.empty,
            status.shift,
            status.move,
            inertia,
        )

    def rewind(self, iteration: int) -> None:
        status = self.reports.status(iteration)
        if status.empty or iteration < self.queued:
            self.queued = iteration
            # The devices stopped because nothing changed: this run has no further iterations.
            if status.changed or status.empty:
                for part in self.parts:
                    part.return_to(iteration)
        self._look_back(iteration)

    def empty_clusters(self) -> NDArray[np.int64]:
        weights = self.first.total_sums()[0, :, :, -1]
        return np.flatnonzero((weights == 0).all(dim=0).cpu().numpy())

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        status = self.reports.status(self.queued)
        moved = self._moved(rows, clusters, len(self.first.run.current))
        for part in self.parts:
            part.finish_corrected(self.queued, moved)
        self._ask()
        corrected = self.reports.status(self.queued)
        return Report(
            self.queued,
            self.n_samples,
            status.changed,
            corrected.empty,
            corrected.shift,
            corrected.move,
        )

    def assign(self) -> None:
        self.latest = self.largest_cost = None
        self.group.each("assign")

    def centers(self) -> Any:
        return self.first.run.current


def distribute_rows(X: Any, weights: NDArray | None, names: Sequence[str]) -> GPUs:
    """Distribute rows among several GPUs, and return their engine.

    Raises
    ------
    ValueError
        There are more rows than the engine can count.
    MemoryError
        A part does not fit on its GPU.
    """
    n = len(X)
    if n > MAX_ROWS:
        raise ValueError(f"X has {n:,} rows, and GPUs take at most {MAX_ROWS:,} together.")
    return GPUs(Threads(X, weights, names[:n]))
