"""One case in one mode: who may take part, whose result holds, and the rounds that they take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.bench import judge
from lloydia.bench.cases import Case
from lloydia.bench.judge import Kept, Refused
from lloydia.bench.peers import Peer, Task
from lloydia.bench.worker import Data, Failed, TooSlow, Worker

__all__ = ["MAX_ITER", "QUICK", "Contest", "Entry", "Patience"]

MAX_ITER, TOL = 300, 1e-4
PROBE = 2  # iterations of a warm-up, from which a peer's whole time is projected
HOPELESS = 3.0  # times the best peer's time: more than that is measured once, or not at all
LATER = {True: 0.15, False: 0.8}  # what a later iteration takes of the first, pruned or not
EARLY = 5  # iterations within which rounding has not yet led anywhere else
TRACED = 20  # iterations within which the memory is measured
LONGEST = 600.0  # seconds of a fit
TRIES = 3  # of two fits, the longer of which took less: others were at work
REST = 0.03  # seconds in which the threads of the one before fall asleep


@dataclass(frozen=True)
class Patience:
    """How long a contest may take.

    Attributes
    ----------
    rounds : int or None
        Rounds to take; None: as many as `budget` has room for, from 1 to `most`.
    budget : float
        Seconds for the rounds.
    most : int
    turn : float
        Seconds for which short fits are repeated in one turn.
    probe : float
        Seconds after which a warm-up is given up.
    """

    rounds: int | None = None
    budget: float = 60.0
    most: int = 15
    turn: float = 0.1
    probe: float = 20.0


QUICK = Patience(budget=4.0, most=5, turn=0.05, probe=5.0)


@dataclass
class Entry:
    """A peer in a contest.

    Attributes
    ----------
    status : str
        "ok", "not installed", "unsupported", "slow", "failed" or "differs".
    reason : str
        What is behind it.
    turns : list of dict
        One a round, as :meth:`Worker.fit` replies; iterations have the shorter fit's as "base".
    """

    peer: Peer
    worker: Worker
    status: str = "ok"
    reason: str = ""
    projected: float = 0.0
    turns: list[dict[str, Any]] = field(default_factory=list)
    inertia: float | None = None
    checked: str = ""
    memory: int | None = None

    def seconds(self) -> NDArray[np.float64]:
        """Return each round's figure: an iteration's time, or a whole fit's."""
        return np.array([_figure(turn) for turn in self.turns])


def _figure(turn: dict[str, Any]) -> float:
    base = turn.get("base")
    if base is None:
        return turn["seconds"]
    return (turn["seconds"] - base["seconds"]) / (turn["n_iter"] - base["n_iter"])


class Contest:
    """The entries of one case in one mode; the first is ours."""

    def __init__(
        self,
        case: Case,
        mode: str,
        entries: list[Entry],
        X: NDArray,
        start: NDArray | None,
        folder: Path,
        patience: Patience,
        step: Callable[[str], None],
    ) -> None:
        self.case, self.mode, self.entries = case, mode, entries
        self.X, self.start, self.folder = X, start, folder
        self.patience, self.step = patience, step
        given = folder / "start.npy"
        self.data = Data(str(folder / "X.npy"), None if start is None else str(given), case.k)
        self.tol = 0.0 if mode == "iterations" else TOL
        self.n_iter = MAX_ITER
        self.result: Kept = {}

    def run(self) -> None:
        """Judge ours, warm the others up, and take rounds."""
        ours = self.entries[0]
        self._admit()
        try:
            self.step(f"{ours.peer.name}: against the oracle")
            self._judge_ours(ours)
        except Refused as why:
            self._out(ours, "differs", why)
        except (Failed, TooSlow) as why:
            self._out(ours, "failed", why)
        if ours.status != "ok":
            return
        for entry in self._active()[1:]:
            self.step(f"{entry.peer.name}: warming up")
            self._warm_up(entry)
        self._skip_hopeless()
        self._rounds()

    # -- who takes part ----------------------------------------------------------------------

    def _admit(self) -> None:
        for entry in self.entries:
            if not entry.peer.version():
                entry.status = "not installed"
            elif why := entry.peer.refuses(self.case, self.mode):
                self._out(entry, "unsupported", why)

    def _warm_up(self, entry: Entry) -> None:
        if self.mode == "seeding":
            return
        try:
            for count in (1, PROBE):  # the first imports and compiles
                reply = entry.worker.fit(
                    entry.peer, self.data, iterations=count, tol=0.0, limit=self.patience.probe
                )
        except TooSlow as why:
            return self._out(entry, "slow", f"warming up took {why}")
        except Failed as why:
            return self._out(entry, "failed", why)
        entry.projected = reply["seconds"] / PROBE * self.n_iter * LATER[entry.peer.prunes]

    def _skip_hopeless(self) -> None:
        """Leave out of whole fits who would take far longer than the best peer."""
        # The projections of those that prune are guesses, so they come last.
        self.entries[1:] = sorted(self.entries[1:], key=lambda e: (e.peer.prunes, e.projected))
        others = self._active()[1:]
        if self.mode != "fits" or all(entry.peer.prunes for entry in others):
            return
        best = min(entry.projected for entry in others if not entry.peer.prunes)
        for entry in others:
            if entry.projected > max(HOPELESS * best, self.patience.probe / 4):
                why = f"about {entry.projected:.0f} s, projected from {PROBE} iterations"
                self._out(entry, "slow", why)

    # -- results -----------------------------------------------------------------------------

    def _judge_ours(self, ours: Entry) -> None:
        if self.mode == "seeding":
            judge.judge_picks(self.X, self.case.k)
            ours.checked = "picks at a reduced size"
            ours.inertia = judge.inertia_of(self.X, self._kept(ours, 1)["cluster_centers_"])
            return
        limit = self.case.iterations[1] if self.mode == "iterations" else MAX_ITER
        self.result = after = self._kept(ours, limit)
        self.n_iter, ours.inertia = int(after["n_iter_"]), float(after["inertia_"])
        if self.mode == "iterations" and self.n_iter <= self.case.iterations[0]:
            raise Refused(f"it has converged after {self.n_iter} iterations")
        task = Task(self.case.k, self.start, limit, self.tol, ours.worker.threads)
        if judge.judge_whole(self.X, task, after):
            ours.checked = "whole fit"
            return
        judge.judge_labels(self.X, after)
        ours.checked = "sample of labels, inertia"
        if self.n_iter > 1:
            before = self._kept(ours, self.n_iter - 1, tol=0.0)
            if judge.judge_update(self.X, before, after):
                ours.checked += ", last update"

    def _judge(self, entry: Entry, kept: Kept) -> None:
        ours = self.entries[0]
        if self.mode == "auto":
            judge.judge_same(kept, self.result, "auto's")
            entry.checked = "every bit is auto's"
        elif "cluster_centers_" in kept:
            assert ours.inertia is not None
            entry.inertia = judge.inertia_of(self.X, kept["cluster_centers_"])
            entry.checked = "inertia"
            judge.judge_objective(entry.turns[0]["objective"], entry.inertia)
            ratio = entry.inertia / ours.inertia
            entry.reason = judge.compare(entry.peer, ratio, lambda: self._early(entry))

    def _early(self, entry: Entry) -> float:
        """Return the inertia of an entry over ours after a few iterations."""
        peer, own = (
            judge.inertia_of(self.X, self._kept(some, EARLY, tol=0.0)["cluster_centers_"])
            for some in (entry, self.entries[0])
        )
        return peer / own

    def _kept(self, entry: Entry, iterations: int, tol: float | None = None) -> Kept:
        entry.worker.fit(
            entry.peer,
            self.data,
            iterations=iterations,
            tol=self.tol if tol is None else tol,
            keep=self._file(entry),
        )
        return self._read(entry)

    def _file(self, entry: Entry) -> Path:
        return self.folder / f"{self.entries.index(entry)}.npz"

    def _read(self, entry: Entry) -> Kept:
        with np.load(self._file(entry)) as kept:
            return dict(kept)

    # -- rounds ------------------------------------------------------------------------------

    def _rounds(self) -> None:
        begin, number = time.perf_counter(), 0
        while self.entries[0].status == "ok" and self._goes_on(number, time.perf_counter() - begin):
            active = self._active() if number == 0 else self._near()
            turn = number % len(active)
            for entry in active[turn:] + active[:turn]:
                self.step(f"{entry.peer.name}: round {number + 1}")
                self._turn(entry, number == 0)
            number += 1

    def _goes_on(self, number: int, spent: float) -> bool:
        wanted, patience = self.patience.rounds, self.patience
        if wanted is not None or number == 0:
            return number < (wanted or 1)
        return number < patience.most and spent * (number + 1) / number < patience.budget

    def _near(self) -> list[Entry]:
        """Return the entries whose time is worth measuring again."""
        limit = HOPELESS * self._best()
        ours, *others = self._active()
        return [ours, *(entry for entry in others if entry.turns[0]["seconds"] <= limit)]

    def _best(self) -> float:
        """Return the time of the best peer's first turn."""
        return min(
            (e.turns[0]["seconds"] for e in self._active()[1:] if e.turns and e.peer.exact),
            default=np.inf,
        )

    def _turn(self, entry: Entry, first: bool) -> None:
        keep = self._file(entry) if first and entry is not self.entries[0] else None
        try:
            entry.turns.append(self._timed(entry, keep))
            if keep:
                self._judge(entry, self._read(entry))
        except Refused as why:
            self._out(entry, "differs", why)
        except TooSlow as why:
            self._out(entry, "slow", why)
        except Failed as why:
            self._out(entry, "failed", why)

    def _timed(self, entry: Entry, keep: Path | None) -> dict[str, Any]:
        def fit(iterations: int, keep: Path | None = None) -> dict[str, Any]:
            time.sleep(REST)
            return entry.worker.fit(
                entry.peer,
                self.data,
                iterations=iterations,
                tol=self.tol if entry.peer.stops else 0.0,
                seconds=self.patience.turn,
                keep=keep,
                limit=self._limit(entry),
            )

        if self.mode == "iterations":
            few, many = self.case.iterations
            for _ in range(TRIES):
                base, whole = fit(few), fit(many, keep)
                if whole["seconds"] > base["seconds"]:
                    return {"base": base, **whole}
            raise Failed(f"in {TRIES} attempts, {many} iterations took no longer than {few}")
        if self.mode == "auto" and not entry.turns:
            reply = entry.worker.fit(
                entry.peer, self.data, iterations=TRACED, tol=self.tol, trace=True
            )
            entry.memory = reply["memory"]
        return fit(MAX_ITER if entry.peer.stops else self.n_iter, keep)

    def _limit(self, entry: Entry) -> float:
        """Return the seconds that a fit may take: long enough to show that it is not the best."""
        if entry is self.entries[0] or self.mode == "auto":
            return LONGEST
        return min(LONGEST, max(self.patience.probe, HOPELESS * self._best()))

    def _active(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.status == "ok"]

    def _out(self, entry: Entry, status: str, why: object) -> None:
        entry.status, entry.reason = status, str(why)
        entry.turns.clear()
