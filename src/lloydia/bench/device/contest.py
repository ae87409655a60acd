"""One case in one mode on a device: whose result holds, and the rounds that the contenders take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import torch

from lloydia.bench.contest import MAX_ITER, TOL, Patience
from lloydia.bench.device import judge
from lloydia.bench.device.cases import DeviceCase
from lloydia.bench.device.clock import timed
from lloydia.bench.device.contenders import Contender, OursOnCPU
from lloydia.bench.judge import NEARBY, Refused, judge_same
from lloydia.bench.peers import Fitted, Task

__all__ = ["PATIENT", "QUICK", "Contest", "Entry"]

PATIENT = Patience(budget=10.0, most=11, turn=0.05)
QUICK = Patience(budget=2.0, most=3, turn=0.02)
ON_CPU = 1e12  # terms of D in ten iterations that the CPU engine does for comparison


@dataclass
class Entry:
    """A contender in a contest.

    Attributes
    ----------
    status : str
        "ok", "not installed", "unsupported", "failed" or "differs".
    reason : str
        What is behind it.
    X : tensor or None
        The rows as it computes with them.
    seconds : list of float
        A whole run's, one a round.
    wrong : int or None
        Labels that are not the nearest centre's, of all rows, at our final centres.
    """

    contender: Contender
    status: str = "ok"
    reason: str = ""
    X: Any = None
    seconds: list[float] = field(default_factory=list)
    n_iter: int = 0
    inertia: float | None = None
    wrong: int | None = None
    checked: str = ""
    counts: dict[str, Any] = field(default_factory=dict)


class Contest:
    """The entries of one case in one mode; the first is ours."""

    def __init__(
        self,
        case: DeviceCase,
        mode: str,
        contenders: list[Contender],
        X: torch.Tensor,
        start: torch.Tensor,
        patience: Patience,
        step: Callable[[str], None],
    ) -> None:
        self.case, self.mode, self.X, self.start = case, mode, X, start
        self.patience, self.step = patience, step
        self.entries = [Entry(contender) for contender in contenders if mode in contender.modes]
        self.tol = TOL if mode == "fits" else 0.0
        self.n_iter = MAX_ITER if mode == "fits" else case.iterations[1]

    def run(self) -> None:
        """Judge ours, then the others, and take rounds."""
        ours, *others = self.entries
        self._try(ours, self._judge_ours)
        if ours.status != "ok":
            return
        for entry in others:
            if not entry.contender.version():
                entry.status = "not installed"
            elif why := self._refuses(entry.contender):
                entry.status, entry.reason = "unsupported", why
            else:
                self._try(entry, self._judge)
        self._rounds()

    def _try(self, entry: Entry, function: Callable[[Entry], None]) -> None:
        self.step(f"{entry.contender.name}: is it right?")
        try:
            entry.X = entry.contender.place(self.X)
            function(entry)
        except Refused as why:
            entry.status, entry.reason = "differs", str(why)
        except Exception as error:  # whatever a library raises
            entry.status, entry.reason = "failed", f"{type(error).__name__}: {error}"
        if entry.status != "ok":
            entry.X = None

    def _refuses(self, contender: Contender) -> str:
        if isinstance(contender, OursOnCPU) and self._terms() > contender.affordable:
            return "takes too long"
        return contender.refuses(self.case, self.mode)

    def _terms(self) -> float:
        case = self.case
        return float(case.batch) * case.n * case.d * case.k * self.n_iter

    # -- results -----------------------------------------------------------------------------

    def _task(self, contender: Contender) -> Task:
        """Return what is asked: our stop rule, or as many iterations as we took."""
        case = self.case
        if not contender.stops:
            return Task(case.k, self.start, self.n_iter, 0.0, 0)
        limit = MAX_ITER if self.mode == "fits" else case.iterations[1]
        return Task(case.k, self.start, limit, self.tol, 0)

    def _fit(self, entry: Entry) -> Fitted:
        return entry.contender.fit(entry.X, self._task(entry.contender))

    def _judge_ours(self, ours: Entry) -> None:
        found = self.found = self._fit(ours)
        first = judge.kept(found)
        self.n_iter = ours.n_iter = int(found.n_iter)
        ours.counts = dict(found.counts or {})
        self.centers = torch.as_tensor(found.centers).to(self.X.device)
        labels = torch.as_tensor(found.labels).to(self.X.device)
        for x, c, own in self._members(self.X, self.centers, labels):
            judge.judge_labels(x, c, own)
        ours.inertia, ours.wrong, ours.checked = found.inertia, 0, "all labels"
        if self.case.batch == 1:
            judge.judge_inertia(self.X, self.centers, labels, found.inertia or 0.0)
            ours.checked += ", inertia"
        if self.n_iter > 1:
            self._judge_update(ours)
        # The second fit like another is launched another way than the first, and all that follow
        # it, which have the rounds, a third way: each with kernels that it may be the first to use.
        for _ in range(2):
            judge_same(judge.kept(self._fit(ours)), first, "its first fit's")
        if self.mode != "fits" and self._terms() <= ON_CPU:
            cpu = OursOnCPU()
            same = cpu.fit(cpu.place(self.X), self._task(cpu))
            judge_same(judge.kept(found), judge.kept(same), "the CPU engine's")
            ours.checked += ", every bit of the CPU engine's"

    def _judge_update(self, ours: Entry) -> None:
        task = Task(self.case.k, self.start, self.n_iter - 1, 0.0, 0)
        before = torch.as_tensor(ours.contender.fit(ours.X, task).labels).to(self.X.device)
        members = self._members(self.X, self.centers, before)
        if all(judge.judge_update(x, own, c) for x, c, own in members):
            ours.checked += ", last update"

    def _judge(self, entry: Entry) -> None:
        if isinstance(entry.contender, OursOnCPU):
            same = self._fit(entry)
            judge_same(judge.kept(same), judge.kept(self.found), "ours")
            entry.n_iter, entry.inertia = int(same.n_iter), same.inertia
            entry.checked = "every bit is ours"
            return
        ours = self.entries[0]
        found = self._fit(entry)
        entry.n_iter = int(found.n_iter)
        given = self.centers.to(entry.X.dtype)
        labels = entry.contender.labels(entry.X, given).long()
        entry.wrong = sum(
            judge.wrong_labels(x, c, own) for x, c, own in self._members(entry.X, given, labels)
        )
        entry.inertia = sum(
            judge.inertia_of(x, c.to(x.dtype)) for x, c in self._members(self.X, found.centers)
        )
        entry.checked = "labels counted, inertia"
        ratio = entry.inertia / (ours.inertia or 1.0)
        if not abs(ratio - 1) <= NEARBY:
            raise Refused(f"its inertia is {ratio:.4f} times Lloydia's")

    def _members(self, *arrays: Any) -> zip[tuple[Any, ...]]:
        return zip(*(array if self.case.batch > 1 else array[None] for array in arrays))

    # -- rounds ------------------------------------------------------------------------------

    def _rounds(self) -> None:
        active = [entry for entry in self.entries if entry.status == "ok"]
        share = self.patience.budget / len(active)
        for number in range(self.patience.rounds or self.patience.most):
            turn = number % len(active)
            for entry in active[turn:] + active[:turn]:
                if self.patience.rounds or not number or self._room(entry, share):
                    self.step(f"{entry.contender.name}: round {number + 1}")
                    entry.seconds.append(self._turn(entry))

    def _room(self, entry: Entry, share: float) -> bool:
        spent = sum(max(seconds, self.patience.turn) for seconds in entry.seconds)
        return spent + entry.seconds[-1] < share

    def _turn(self, entry: Entry) -> float:
        """Repeat short runs, and leave the first of them out."""
        taken: list[float] = []
        while not taken or sum(taken) < self.patience.turn:
            taken.append(timed(lambda: self._fit(entry), str(self.X.device))[0])
        return median(taken[1:] or taken)

    def figures(self, entry: Entry) -> np.ndarray:
        """Return each round's figure: an iteration's time, or a whole fit's."""
        per = self.n_iter if self.mode == "iterations" else 1
        return np.array(entry.seconds) / per
