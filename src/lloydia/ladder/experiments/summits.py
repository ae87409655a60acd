"""Each system's largest problems: scikit-learn, the slowest rung on a GPU, the best, Lloydia."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.figures import name, seconds, speedup
from lloydia.ladder.experiments.lab import ENGINES, PEERS
from lloydia.ladder.experiments.measurement import Measurement, pick

__all__ = ["sheet"]

NOTES = [
    "Each with its best block. In brackets: a rung's gain over scikit-learn, and Lloydia's over the"
    " best rung.",
    "A's and D's rungs do all of a fixed number of iterations, as their sources did; scikit-learn"
    " and Lloydia end when nothing changes.",
]
PARTS = ("series", "300 iterations", "256 MB", "convergence", "sizes")


def sheet(found: Sequence[Measurement]) -> Sheet:
    """Return a table with a line for each system's largest problems on one machine."""
    lines = [_line(some) for some in _largest(found)]
    heads = ["", "scikit-learn", "slowest rung on the GPU", "best rung", "Lloydia"]
    return Sheet("The largest problems: time / iterations", heads, lines, NOTES)


def _largest(found: Sequence[Measurement]) -> Iterator[list[Measurement]]:
    """Yield what was measured of each largest problem, all of it in runs of the same length."""
    for letter in dict.fromkeys(each.experiment for each in found):
        some = pick(found, experiment=letter, part=PARTS)
        most = max((each.n * each.d for each in some), default=0)
        large = [each for each in some if each.n * each.d == most]
        for n, d, k, dtype in dict.fromkeys((each.n, each.d, each.k, each.dtype) for each in large):
            alike = pick(large, n=n, d=d, k=k, dtype=dtype)
            yield pick(alike, max_iter=max(each.max_iter for each in alike))


def _line(found: Sequence[Measurement]) -> list[str]:
    peer = min(pick(found, rung=PEERS), key=_seconds, default=None)
    ours = min(pick(found, rung=tuple(ENGINES)), key=_seconds, default=None)
    others = [each for each in found if each.rung not in (*PEERS, *ENGINES)]
    best = [
        min(pick(others, rung=rung), key=_seconds)
        for rung in dict.fromkeys(each.rung for each in others)
    ]
    slowest = max(pick(best, where="cuda"), key=_seconds, default=None)
    fastest = min(best, key=_seconds, default=None)
    first = found[0]
    return [
        f"{first.experiment}: {first.n:,} x {first.d}, k = {first.k}, {first.dtype}",
        _time(peer) if peer else "",
        _told(slowest, peer),
        _told(fastest, peer),
        _told(ours, fastest, named=False),
    ]


def _told(each: Measurement | None, base: Measurement | None, *, named: bool = True) -> str:
    """Return a contender's name and time, and its gain over another."""
    if each is None:
        return ""
    gain = f" ({speedup(_seconds(base) / _seconds(each))})" if base else ""
    return f"{f'{name(each)}: ' if named else ''}{_time(each)}{gain}"


def _time(each: Measurement) -> str:
    return f"{seconds(each.seconds)} / {each.n_iter}"


def _seconds(each: Measurement) -> float:
    return each.seconds or 0.0
