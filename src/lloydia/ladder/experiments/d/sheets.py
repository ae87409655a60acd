"""D's tables, with the document's figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.d.runs import (
    ARRAYS,
    ATOMICS,
    CENTRES,
    CLUSTERS,
    ITERATIONS,
    ONE,
    ORDER,
    SUMS,
    TEAM,
    TEAMED,
)
from lloydia.ladder.experiments.documents import document
from lloydia.ladder.experiments.figures import excuses, name, ordered, printed, seconds, speedup
from lloydia.ladder.experiments.lab import ENGINES, PEERS
from lloydia.ladder.experiments.measurement import Measurement, pick

__all__ = ["sheets", "their_gains", "whole"]

Found = Sequence[Measurement]


def sheets(found: Found) -> list[Sheet]:
    """Return the document's tables in its order, then those of what it says beside them."""
    tables = []
    if some := pick(found, part="clusters"):
        tables.append(_clusters(some))
    for k in sorted({each.k for each in found if each.part == "sizes"}):
        some = [each for each in found if (each.part, each.k) == ("sizes", k)]
        tables += [_times(k, some), _gains(k, some)]
    if some := pick(found, part="OpenMP"):
        tables.append(_team(some))
    if some := pick(found, part="centres"):
        tables.append(_centres(some))
    if some := pick(found, part="sums"):
        tables.append(_sums(some))
    return tables


def whole(each: Measurement, iterations: int) -> float:
    """Return the seconds of so many iterations; of a peer and of Lloydia, those of the fit."""
    if each.rung in ENGINES or each.rung in PEERS:
        return each.seconds or 0.0
    return each.per_iteration * iterations


def their_gains(place: str) -> dict[int, float]:
    """Return a table of the document's, a gain for each k."""
    entries = document("D").entries
    return {
        each.pick["k"]: float(each.theirs)
        for each in entries
        if each.place == place and each.show == "gain"
    }


def _told(each: Measurement | None, iterations: int) -> str:
    if each is None:
        return ""
    fitted = f" in {each.n_iter}" if each.rung in ENGINES or each.rung in PEERS else ""
    return seconds(whole(each, iterations)) + fitted


def _gain(base: Measurement | None, each: Measurement | None, iterations: int) -> str:
    if base is None or each is None:
        return ""
    return speedup(whole(base, iterations) / whole(each, iterations))


def _their_gain(place: str, each: Measurement | None) -> str:
    """Return the gain that a table of the document's prints for a measurement."""
    if each is None or each.theirs is None:
        return ""
    for entry in document("D").entries:
        alike = all(getattr(each, name) == value for name, value in entry.pick.items())
        if entry.place == place and entry.show == "gain" and alike:
            return printed(float(entry.theirs))
    return ""


def _notes(found: Found, iterations: int) -> list[str]:
    """Say whose times were taken from fewer iterations, and who has none."""
    short: dict[str, int] = {}
    for each in pick(found):
        fitted = each.rung in ENGINES or each.rung in PEERS
        if each.n_iter and each.n_iter < iterations and not fitted:
            short.setdefault(name(each), each.n_iter)
    notes = [
        f"{called}: in some lines {n} iterations were timed; the table shows {iterations} times "
        "one of them."
        for called, n in short.items()
    ]
    if off := [each.figures["error"] for each in pick(found, rung=ATOMICS) if each.figures]:
        notes.append(
            f"64 float sums: its centres are off by up to {max(off):.0e} of the largest value."
        )
    if any(each.rung in ENGINES for each in found):
        notes.append(
            "scikit-learn and Lloydia end when no label changes; their iterations stand behind."
        )
    return [*notes, *excuses(found)]


def _in_order(found: Found) -> list[Measurement]:
    """Return them in the order of the document, then of every figure."""
    known = sorted(pick(found, rung=ORDER), key=lambda each: ORDER.index(each.rung))
    return [*known, *ordered(each for each in pick(found) if each.rung not in ORDER)]


def _columns(found: Found) -> list[tuple[str, dict[int, Measurement]]]:
    """Return the contenders' names, each with its measurements by size."""
    timed = _in_order(found)
    names = dict.fromkeys(name(each) for each in timed)
    return [(own, {each.n: each for each in timed if name(each) == own}) for own in names]


def _times(k: int, found: Found) -> Sheet:
    """Return a line a size: the time of the document's 200 iterations."""
    columns = _columns(found)
    heads, lines = ["pixels"], [[f"{n:,}"] for n in sorted({each.n for each in pick(found)})]
    for called, own in columns:
        theirs = any(each.theirs for each in own.values())
        heads += [called, "theirs"] if theirs else [called]
        for n, line in zip(sorted({each.n for each in pick(found)}), lines):
            line.append(_told(own.get(n), ITERATIONS))
            if theirs:
                line.append(seconds(own[n].theirs) if n in own else "")
    title = f"k = {k}: {ITERATIONS} iterations, as in table {3 if k == 2 else 5}"
    return Sheet(title, heads, lines, _notes(found, ITERATIONS))


def _gains(k: int, found: Found) -> Sheet:
    """Return a line a size: the gain over one thread."""
    one = {each.n: each for each in pick(found, rung=ONE)}
    columns = [(called, own) for called, own in _columns(found) if called[:2] != ONE[1:3]]
    heads, lines = ["pixels"], [[f"{n:,}"] for n in sorted(one)]
    place = f"table {4 if k == 2 else 6}"
    for called, own in columns:
        theirs = any(each.theirs for each in own.values())
        heads += [called, "theirs"] if theirs else [called]
        for n, line in zip(sorted(one), lines):
            line.append(_gain(one[n], own.get(n), ITERATIONS))
            if theirs:
                line.append(_their_gain(place, own.get(n)))
    title = f"k = {k}: gain over one thread, as in {place}"
    return Sheet(title, heads, lines)


def _clusters(found: Found) -> Sheet:
    """Return a line for each k: everyone's time, and the gain over atomic additions."""
    _, _, iterations = CLUSTERS
    theirs = their_gains("table 2")
    columns = list(dict.fromkeys(name(each) for each in _in_order(found)))
    heads = ["k"]
    for called in columns:
        heads += [called] if called[:2] == ATOMICS[1:3] else [called, "gain"]
        heads += ["theirs"] if called[:2] == ARRAYS[1:3] else []
    lines = []
    for k in sorted({each.k for each in found}):
        own = {name(each): each for each in found if each.k == k}
        base = next((each for each in own.values() if each.rung == ATOMICS), None)
        line = [str(k)]
        for called in columns:
            each = own.get(called)
            line.append(_told(each, iterations))
            if called[:2] != ATOMICS[1:3]:
                line.append(_gain(base, each, iterations))
            if called[:2] == ARRAYS[1:3]:
                line.append(speedup(theirs.get(k)) if found[0].scale == 1 else "")
        lines.append(line)
    title = f"{found[0].n:,} pixels, {iterations} iterations: gain over atomics, as in table 2"
    return Sheet(title, heads, lines, _notes(found, iterations))


def _team(found: Found) -> Sheet:
    """Return a line for each k: one thread and OpenMP, the document's and ours."""
    _, _, iterations = TEAMED
    lines = []
    for k in sorted({each.k for each in found}):
        own = {each.rung: each for each in found if each.k == k}
        one, team, ours = own.get(ONE), own.get(TEAM), own.get("r30_engine_cpu")
        line = [str(k)]
        for each in (one, team):
            line += [_told(each, iterations), seconds(each.theirs) if each else ""]
        line += [_gain(one, team, iterations), _their_gain("table 8", team)]
        lines.append([*line, _told(ours, iterations)])
    called = next((name(each) for each in found if each.rung == TEAM), "")
    heads = ["k", "01 lloyd", "theirs", called, "theirs", "gain", "theirs", "Lloydia"]
    title = f"{found[0].n:,} pixels, {iterations} iterations, as in tables 7 and 8"
    return Sheet(title, heads, lines, _notes(found, iterations))


def _centres(found: Found) -> Sheet:
    """Return a line for each k: an assignment, and an iteration, with centres in either memory."""
    (far, near), (slow, fast) = CENTRES
    lines = []
    for k in sorted({each.k for each in found}):
        own = {each.rung: each for each in found if each.k == k}
        line = [str(k)]
        for pair, time in (((far, near), _assignment), ((slow, fast), _iteration)):
            times = [time(own[rung]) if rung in own else None for rung in pair]
            ratio = times[1] / times[0] if all(times) else None  # type: ignore[operator]
            line += [*map(seconds, times), speedup(ratio)]
        lines.append([*line, "0.50x"])
    heads = ["k", "13, global: assignment", "14, shared", "13 over 14"]
    heads += ["12, global: iteration", "15, shared", "12 over 15", "theirs, of the assignment"]
    return Sheet(f"{found[0].n:,} pixels: centres in global and shared memory", heads, lines)


def _assignment(each: Measurement) -> float | None:
    """Return the seconds of the kernel of an assignment."""
    return each.phases["kernels"] / each.n_iter if each.phases and each.n_iter else None


def _iteration(each: Measurement) -> float | None:
    return each.per_iteration


def _sums(found: Found) -> Sheet:
    """Return a line for each way of adding up on threads, and its gain over the document's."""
    own = {each.rung: each for each in found}
    base = own.get(TEAM)
    said = {TEAM: "kept", "r62_atomic_sums": "slower", "r63_critical_sums": "slower"}
    said["r04_threaded_lloyd"] = "the best way, not built"
    lines = [
        [
            name(own[rung]),
            seconds(own[rung].per_iteration),
            speedup(base.per_iteration / own[rung].per_iteration) if base else "",
            said.get(rung, ""),
        ]
        for rung in (ONE, *SUMS)
        if rung in own
    ]
    shape = f"{found[0].n:,} pixels, k = {found[0].k}"
    heads = ["", "an iteration", "over 60", "the document says"]
    return Sheet(f"{shape}: sums and schedules on threads", heads, lines, text=heads[-1:])
