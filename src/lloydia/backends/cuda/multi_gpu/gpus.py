"""A run over several GPUs of one host: each has some of the rows, all compute the same centres.

An iteration is queued on every GPU from one thread.  Each assigns its rows and writes its sums; the
first adds them up, and sends the total to the others (two copies a GPU, from memory to memory);
then each computes the same centres from the same integers, so that its labels, its history and its
flags are those of a single engine.  The GPUs do not wait for the host, which may be iterations
ahead.  Seeding and measuring are questions to all parts, one thread a GPU (:mod:`threads`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.run_state import ITERATION
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.multi_gpu.own_run import OwnRun
from lloydia.backends.cuda.multi_gpu.part import CUDAPart
from lloydia.backends.cuda.multi_gpu.threads import Threads
from lloydia.backends.cuda.rehearsal import (
    REHEARSED_SEEDS,
    AbsentRows,
    KnownAtStart,
    forms_of,
    make_run,
)
from lloydia.backends.cuda.run_kinds import MAX_ROWS
from lloydia.backends.cuda.runtime.forms import compile_together
from lloydia.backends.cuda.runtime.launching import INTERPRETED
from lloydia.backends.cuda.runtime.own_device import current
from lloydia.backends.cuda.update.reports import Reports
from lloydia.backends.engine import Engine, ExpectedRun
from lloydia.backends.group import Here
from lloydia.backends.parted_rows import PartedRows
from lloydia.backends.parts import Parts
from lloydia.backends.reports import Report
from lloydia.backends.run_settings import RunSettings
from lloydia.spelling import option

__all__ = ["GPURun", "distribute_rows"]


@dataclass(frozen=True)
class QueuedReport:
    """The report of an iteration that was queued."""

    run: GPURun
    iteration: int
    cost: float | None

    def begin(self) -> None:
        """Do nothing: it is queued on the devices."""

    def result(self) -> Report:
        """Wait for it."""
        return self.run.report(self.iteration, self.cost)


class GPURun:
    """The state of a run on several GPUs; see :class:`lloydia.backends.parted_run.PartedRun`.

    Parameters
    ----------
    rows : PartedRows
    group : Threads
        Of these rows.

    Attributes
    ----------
    runs : list of OwnRun
        Those of the parts; `first` is that of the first GPU.
    queued : int
        Iterations that were queued.
    inbox : int64 tensor of shape (parts, n_limbs k (d + 1) + COUNTS,)
        The messages of all parts, on the first GPU.
    latest : float or None
        The inertia of the last assignment, once it was measured.
    """

    def __init__(self, rows: PartedRows, group: Threads) -> None:
        self.rows, self.group = rows, group
        self.runs = [part.own_run for part in group.parts]
        self.first = self.runs[0]
        self.lag = self.queued = 0
        self.latest: float | None = None

    def expecting(self, run: ExpectedRun) -> AbstractContextManager[None]:
        return nullcontext() if INTERPRETED else self.group.compiling(rehearse(self.group, run))

    def start(self, settings: RunSettings) -> None:
        self.group.each("start", settings._replace(centers=np.asarray(settings.centers)))
        first = self.first
        self.lag, self.reports, self.queued = first.lag, Reports(first.run.memory.report), 0
        self.inbox = first.message.new_empty((len(self.runs), len(first.message)))
        first.message = self.inbox[0]

    def iterate(self, inertia: bool) -> QueuedReport:
        self.queued += 1
        for run in self.runs:
            run.contribute()
        self._reduce()
        for run in self.runs:
            run.finish()
        self._ask()
        return QueuedReport(self, self.queued, self._inertia_before() if inertia else None)

    def _reduce(self) -> None:
        """Queue the addition of all messages; a copy is ordered with the work of both its GPUs."""
        others = self.runs[1:]
        for run, place_of_message in zip(others, self.inbox[1:]):
            place_of_message.copy_(run.message, non_blocking=True)
        with current(self.first.device):
            torch.sum(self.inbox, dim=0, out=self.first.total)
        for run in others:
            run.total.copy_(self.first.total, non_blocking=True)

    def _ask(self) -> None:
        with current(self.first.device):
            self.reports.ask(self.queued, self.queued)

    def _inertia_before(self) -> float | None:
        """Wait for the iteration queued last; return its inertia, or None if there was none.

        Where the devices stopped before it, the centres that it would have used were never written.
        """
        with current(self.first.device):
            done = int(self.first.run.memory.run_state[ITERATION.value])
        if done < self.queued:
            return None
        self._look_back(self.queued)
        return self.inertia()

    def _look_back(self, iteration: int) -> None:
        self.forget_inertia()
        for run in self.runs:
            run.look_back(iteration)

    def report(self, iteration: int, cost: float | None) -> Report:
        """Return the report of an iteration that was queued."""
        status = self.reports.status(iteration)
        for run in self.runs:
            run.n_distances += run.data.n_samples * len(run.used)
        self.first.n_rechecked += status.rechecked
        return Report(
            iteration, self.rows.n_samples, status.changed, status.empty, status.shift, status.move,
            cost,
        )  # fmt: skip

    def rewind(self, iteration: int) -> None:
        status = self.reports.status(iteration)
        if status.empty or iteration < self.queued:
            self.queued = iteration
            # Where no row changed the devices have stopped, and the run is not continued.
            if status.changed or status.empty:
                for run in self.runs:
                    run.go_back(iteration)
        self._look_back(iteration)

    def empty_clusters(self) -> NDArray[np.int64]:
        weights = self.first.total_sums()[0, :, :, -1]
        return np.flatnonzero((weights == 0).all(dim=0).cpu().numpy())

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        status = self.reports.status(self.queued)
        moved = self.rows.moved(rows, clusters, len(self.first.run.memory.current))
        for run in self.runs:
            run.finish_corrected(self.queued, moved)
        self._ask()
        corrected = self.reports.status(self.queued)
        return Report(
            self.queued, self.rows.n_samples, status.changed, corrected.empty, corrected.shift,
            corrected.move,
        )  # fmt: skip

    def assign(self) -> None:
        self.forget_inertia()
        for run in self.runs:
            run.assign()

    def inertia(self) -> float:
        if self.latest is None:
            self.latest = self.rows.cost(max(self.group.each("measure")))
        return self.latest

    def centers(self) -> Any:
        return self.first.run.memory.current

    def forget_inertia(self) -> None:
        self.latest = None

    def all_sums(self) -> None:
        """Return nothing: sums stay on the devices."""


# What parts answer once enough seeds were rehearsed: all D are 0, which ends a seeding.
NO_MORE: dict[str, Any] = {"seed_total": 0, "seed_top": (-1, 0.0)}


class AbsentParts(Here):
    """Parts without numbers, like those of a group, one after the other; see :mod:`rehearsal`."""

    parts: Sequence[CUDAPart[OwnRun]]

    def __init__(self, group: Threads, at_start: Sequence[KnownAtStart]) -> None:
        rows = [AbsentRows(part.data, each) for part, each in zip(group.parts, at_start)]
        super().__init__([CUDAPart(absent, OwnRun(absent)) for absent in rows])
        self.few_rows_device, self.n_draws = group.few_rows_device, 0

    def each(self, method: str, *arguments: Any) -> list[Any]:
        found = super().each(method, *arguments)
        if method not in NO_MORE:
            return found
        self.n_draws += 1
        return found if self.n_draws <= REHEARSED_SEEDS else [NO_MORE[method]] * len(found)

    def some(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        found = super().some(method, arguments)
        if method != "seed_choose":
            return found
        # A round of k-means|| draws as many rows as it does on average.
        _key, factor, *_rest = arguments[0]
        each = round(factor / len(self.parts))
        return {p: np.arange(min(each, self.lengths[p])) for p in found}


class AbsentEngine(Parts):
    """The engine of parts without numbers; a few of their rows have none either."""

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> Engine:
        shape, dtype = (len(rows), self.n_features), getattr(torch, self.dtype.name)
        few = torch.empty(shape, dtype=dtype, device="meta")
        return CUDA(few, weights, self.group.few_rows_device)


def make_parted_run(
    group: Threads, at_start: Sequence[KnownAtStart], expected: ExpectedRun
) -> None:
    """Make a run of parts like those of a group as they were at its start."""
    absent = AbsentParts(group, at_start)
    rows = PartedRows(absent)
    make_run(AbsentEngine(absent, rows, GPURun(rows, cast(Threads, absent))), expected)


def rehearse(group: Threads, expected: ExpectedRun) -> Callable[[], None]:
    """Return what compiles the kernels of a run that begins now, for all GPUs.

    It does so when a thread asks for it first.
    """
    numbers, lock, rehearsed = [part.device.index for part in group.parts], Lock(), []
    at_start = [KnownAtStart.of(part.data) for part in group.parts]

    def begin() -> None:
        with lock:
            if rehearsed:
                return
            rehearsed.append(True)
            # If it fails, each launch compiles the kernel that it needs.
            with suppress(Exception):
                forms = forms_of(lambda: make_parted_run(group, at_start, expected))
                compile_together(forms, numbers)

    return begin


def distribute_rows(X: Any, weights: NDArray | None, names: Sequence[str]) -> Parts:
    """Put rows on several GPUs, some on each, and return their engine.

    Raises
    ------
    ValueError
        For more rows than can be counted.
    MemoryError
        If a share does not fit on its GPU.
    """
    n = len(X)
    if n > MAX_ROWS:
        raise ValueError(
            f"X has {n:,} rows, and GPUs take at most {MAX_ROWS:,} together: use "
            f"{option('device', 'cpu')}."
        )
    group = Threads(X, weights, names[:n])
    rows = PartedRows(group)
    return Parts(group, rows, GPURun(rows, group))
