"""A whole run: the machine's rates, then every case in every mode, as rows of results."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from lloydia.bench import cases, floors
from lloydia.bench.cases import Case
from lloydia.bench.contest import Contest, Entry, Patience
from lloydia.bench.machine import load
from lloydia.bench.peers import Peer
from lloydia.bench.worker import Worker

__all__ = ["Row", "run"]

Row = dict[str, Any]


def run(
    chosen: Sequence[Case],
    modes: Sequence[str],
    peers: dict[str, list[Peer]],
    *,
    threads: int,
    patience: Patience,
    step: Callable[[str], None],
) -> Iterator[list[Row]]:
    """Measure every case in every mode that it has.

    Parameters
    ----------
    chosen : sequence of Case
    modes : sequence of {"iterations", "fits", "seeding", "auto"}
    peers : dict
        The peers by module, see :func:`lloydia.bench.peers.choose`.
    threads : int
        Of every contender.
    patience : Patience
        How long each case may take.
    step : callable
        Gets what is being done, for people.

    Yields
    ------
    list of dict
        The rows of one case in one mode: one a peer, ours first.
    """
    facts = {
        "run": datetime.now(UTC).isoformat(timespec="seconds"),
        "threads": threads,
        "load": load(),
    }
    step("the machine's rates")
    rates = floors.rates(threads)
    with ExitStack() as stack:
        workers = {module: Worker(module, threads) for module in peers}
        for worker in workers.values():
            stack.callback(worker.close)
        for case in chosen:
            with tempfile.TemporaryDirectory(prefix="lloydia-bench-") as folder:
                step(f"{case.name}: making the data")
                X, start = _place(case, Path(folder))
                for mode in modes:
                    if mode not in case.modes and not (mode == "auto" and "fits" in case.modes):
                        continue
                    entries = [
                        Entry(peer, workers[module])
                        for module, several in peers.items()
                        for peer in several
                        if mode in peer.modes
                    ]
                    told = partial(_tell, step, case.name)
                    contest = Contest(case, mode, entries, X, start, Path(folder), patience, told)
                    contest.run()
                    yield [{**row, **facts, "rates": rates} for row in results(contest, rates)]


def _tell(step: Callable[[str], None], name: str, what: str) -> None:
    step(f"{name}: {what}")


def _place(case: Case, folder: Path) -> tuple[Any, Any]:
    """Make the rows and the start, and write them where the workers find them."""
    X = case.rows()
    start = cases.start(case, X)
    np.save(folder / "X.npy", X)
    if start is not None:
        np.save(folder / "start.npy", start)
    return X, start


def results(contest: Contest, rates: dict[str, float]) -> list[Row]:
    """Return a row for each entry."""
    case = contest.case
    shared = {
        "case": case.name,
        **{name: getattr(case, name) for name in ("n", "d", "k", "dtype", "kind")},
        "mode": contest.mode,
    }
    if contest.mode == "iterations":
        shared["floor_ms"] = 1e3 * floors.floor(case, rates)
    ours = contest.entries[0]
    return [shared | _result(entry, ours) for entry in contest.entries]


def _result(entry: Entry, ours: Entry) -> Row:
    row: Row = {
        "peer": entry.peer.name,
        "status": entry.status,
        "reason": entry.reason,
        "exact": entry.peer.exact,
        "same_start": entry.peer.takes_start,
        "inertia": entry.inertia,
        "inertia_ratio": _ratio(entry.inertia, ours.inertia),
        "checked": entry.checked,
    }
    # Others' times are compared with ours, which may have failed on the way.
    if not entry.turns or not ours.turns:
        return row
    seconds = entry.seconds()
    last = entry.turns[-1]
    paired = min(len(seconds), len(ours.turns))
    ratios = seconds[:paired] / ours.seconds()[:paired]
    row |= {
        "rounds": len(seconds),
        "n_iter": last["n_iter"],
        "ms": 1e3 * median(seconds),
        "ms_quartiles": (1e3 * np.quantile(seconds, [0.25, 0.75])).tolist(),
        "ms_whole": 1e3 * median(turn["seconds"] for turn in entry.turns),
        "ratio": median(ratios),
        "ratio_quartiles": np.quantile(ratios, [0.25, 0.75]).tolist(),
        "cores": median(turn["cores"] for turn in entry.turns),
        "memory": entry.memory,
        **(last["counts"] or {}),
    }
    return row


def _ratio(inertia: float | None, ours: float | None) -> float | None:
    return inertia / ours if inertia is not None and ours else None
