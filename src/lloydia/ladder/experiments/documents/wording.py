"""How measurements become our figure of an entry of a document, in words.

Each function is named in the entries' `show`; :data:`SHOWN` says what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from lloydia.ladder.experiments import findings
from lloydia.ladder.experiments.documents import Entry
from lloydia.ladder.experiments.figures import name, seconds, speedup
from lloydia.ladder.experiments.lab import ENGINES, PEERS
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.seedings import BETTER
from lloydia.ladder.experiments.t import equal_to_the_end

__all__ = ["SHOWN"]

Found = Sequence[Measurement]
# Gets an entry, the measurements that it picks (at least one), and those that a gain is over.
Show = Callable[[Entry, Found, Found], str]


def _largest(found: Found) -> list[Measurement]:
    """Return those of the largest problem, by the numbers that an iteration has to do with."""
    most = max(each.n * each.d * each.k for each in found)
    return [each for each in found if each.n * each.d * each.k == most]


def _best(found: Found) -> Measurement:
    return min(found, key=lambda each: each.seconds or 0.0)


def _shape(found: Measurement) -> str:
    return f"{found.n:,} x {found.d}, k = {found.k}"


def _time(found: Measurement) -> str:
    after = f" in {found.n_iter} iterations" if found.n_iter else ""
    return seconds(found.seconds) + after


def time(found: Found) -> str:
    """Return the best time of a whole run."""
    return seconds(_best(found).seconds)


def run(found: Found, iterations: int) -> str:
    """Return the best time of a run of so many iterations, of which fewer may have been timed."""
    best = min(found, key=lambda each: each.per_iteration)
    told = seconds(best.per_iteration * iterations)
    several = "s" * (best.n_iter != 1)
    if best.n_iter == iterations:
        return told
    return f"{told} ({best.n_iter} iteration{several} timed)"


def iteration(found: Found) -> str:
    """Return the best time of an iteration."""
    return seconds(min(each.per_iteration for each in found))


def count(found: Found) -> str:
    """Return the number of iterations of the longest run."""
    return str(max(each.n_iter or 0 for each in found))


def gain(found: Found, base: Found, called: str = "") -> str:
    """Return how many times as fast an iteration is as one of the base, or a phase of it."""
    return speedup(_ratio(found, base, called))


def _ratio(found: Found, base: Found, called: str = "") -> float | None:
    times = [[_part(each, called) for each in some] for some in (found, base)]
    if not all(some and all(some) for some in times):
        return None
    least, slower = map(min, times)
    return slower / least


def _part(each: Measurement, called: str) -> float:
    """Return the seconds of a phase of an iteration, or of all of it."""
    if called:
        return each.phases.get(called, 0.0) / (each.n_iter or 1)
    return each.per_iteration


def spread(found: Found, base: Found) -> str:
    """Return the gains at all sizes, by size."""
    return ", ".join(map(speedup, _by_size(found, base)))


def _by_size(found: Found, base: Found) -> list[float]:
    sizes = sorted({(each.n, each.k) for each in found})
    gains = (_ratio(pick(found, n=n, k=k), pick(base, n=n, k=k)) for n, k in sizes)
    return [each for each in gains if each]


def wins(found: Found, base: Found) -> str:
    """Return whether an iteration is faster than one of the base at all sizes, and the gains."""
    gains = _by_size(found, base)
    held = findings.verdict(sum(each > 1 for each in gains), len(gains))
    return f"{held}: {spread(found, base)}" if gains else ""


def unordered(found: Found, base: Found) -> str:
    """Return whether the gains neither rise nor fall with the size, and the gains.

    It holds partly where they turn in one step alone.
    """
    gains = _by_size(found, base)
    if len(gains) < 3:
        return ""
    rises = sum(before < after for before, after in pairwise(gains))
    turns = min(rises, len(gains) - 1 - rises)
    held = ("no", "partly", "yes")[min(turns, 2)]
    return f"{held}: {spread(found, base)}"


def whole(found: Found) -> str:
    """Return the best time of a whole run, and its iterations."""
    return _time(_best(found))


def order(found: Found) -> str:
    """Return the rungs from the fastest to the slowest, with their times, if there are several."""
    rungs = dict.fromkeys(each.rung for each in found)
    if len(rungs) < 2:
        return ""
    best = sorted(
        (_best(pick(found, rung=rung)) for rung in rungs), key=lambda each: each.seconds or 0.0
    )
    return " < ".join(f"{name(each, options=False)} {seconds(each.seconds)}" for each in best)


def kernels(found: Found) -> str:
    """Return the time of each kernel of an iteration, for each rung."""
    said = []
    for each in found:
        parts = [
            f"{kernel} {seconds(spent / (each.n_iter or 1))}"
            for kernel, spent in each.phases.items()
        ]
        said.append(f"{name(each, options=False)}: {', '.join(parts)}")
    return "; ".join(said)


def share(found: Found, phase: str) -> str:
    """Return the share of a phase in the time of all."""
    of = _best(found).phases
    whole = sum(of.values())
    return f"{of.get(phase, 0) / whole:.0%}" if whole else ""


def span(found: Found, base: Found, called: str = "") -> str:
    """Return the least and the largest gain of an iteration, or a phase, over the base's best."""
    slower = min(_part(each, called) for each in base)
    gains = sorted(slower / _part(each, called) for each in found if _part(each, called))
    return " to ".join(dict.fromkeys(speedup(gains[at]) for at in (0, -1) if gains))


def crossing(found: Found, base: Found, called: str = "") -> str:
    """Return up to which k an iteration is faster than one of the base."""
    slower = {each.k: _part(each, called) for each in base}
    held = {each.k: _part(each, called) < slower[each.k] for each in found if each.k in slower}
    first = next((k for k in sorted(held) if not held[k]), None)
    if first is None:
        return f"faster up to k = {max(held)}" if held else ""
    before = [k for k in held if k < first]
    return f"between k = {max(before)} and {first}" if before else f"slower from k = {first}"


def ends(found: Found) -> str:
    """Return the time of an iteration with the fewest clusters and with the most."""
    some = sorted(found, key=lambda each: each.k)
    told = {each.k: f"k = {each.k}: {seconds(each.per_iteration)}" for each in (some[0], some[-1])}
    return ", ".join(told.values())


def phase(found: Found, called: str) -> str:
    """Return the time of a phase in a whole run, of the fastest."""
    return seconds(_best(found).phases.get(called))


def number(found: Found, called: str, unit: str) -> str:
    """Return one of the figures of the fastest."""
    value = _best(found).figures.get(called)
    if value is None or unit == "s":
        return seconds(value)
    return f"{value:,.0f} {unit}"


def fastest(found: Found) -> str:
    """Tell the fastest."""
    best = _best(found)
    return f"{_shape(best)}: {_time(best)}"


def rungs(found: Found) -> str:
    """Tell the best time of each rung, in the wider type where there are two."""
    widest = pick(found, dtype=max(each.dtype for each in found))
    names = dict.fromkeys(each.rung for each in widest)
    best = [_best(pick(widest, rung=rung)) for rung in names]
    told = ", ".join(f"{name(each)} {_time(each)}" for each in best)
    return f"{_shape(best[0])}: {told}"


def blocks(found: Found) -> str:
    """Tell how many rungs are fastest with each block size."""
    gridded = [each for each in found if each.block]
    kinds = dict.fromkeys((each.rung, each.dtype) for each in gridded)
    best = [_best(pick(gridded, rung=rung, dtype=dtype)).block for rung, dtype in kinds]
    return "best: " + ", ".join(f"{size} for {best.count(size)}" for size in dict.fromkeys(best))


def precision(found: Found) -> str:
    """Tell how far centres are from the means of their points, at most, in each type."""
    worst: dict[str, float] = {}
    for each in found:
        worst[each.dtype] = max(worst.get(each.dtype, 0.0), each.figures.get("error", 0.0))
    return ", ".join(f"{dtype}: {error:.0e} at most" for dtype, error in worst.items())


def iterations(found: Found) -> str:
    """Tell how many iterations it took, where all that were wanted were allowed."""
    most = max(each.max_iter for each in found)
    counts = sorted({each.n_iter for each in found if each.n_iter and each.max_iter == most})
    return f"{_shape(found[0])}: {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}"


def scores(found: Found) -> str:
    """Tell which seeding has the better score."""
    told = []
    for score, better in BETTER.items():
        by_seeding = {each.figures[score]: each.case for each in found}
        told.append(f"{score}: {by_seeding[better(by_seeding)]}")
    return f"{_shape(found[0])}: {', '.join(told)}"


def gains(found: Found) -> str:
    """Tell what the best rung and Lloydia gain over one thread, in whole runs if all are long."""
    rungs = [each for each in found if each.rung not in (*PEERS, *ENGINES, "r01_lloyd")]
    one, ours = pick(found, rung="r01_lloyd"), pick(found, rung=tuple(ENGINES))
    if not (one and rungs and ours):
        return ""
    alike = len({each.max_iter for each in (*one, *rungs, *ours)}) == 1
    told = []
    for each in map(_best, (rungs, ours)):
        times = [(of.seconds or 0.0) if alike else of.per_iteration for of in (_best(one), each)]
        told.append(f"{name(each)} {speedup(times[0] / times[1])}")
    return f"{_shape(found[0])}: {', '.join(told)} over one thread"


def finding(found: Found, told: str) -> str:
    """Tell whether one of T's findings holds, and what is so here."""
    lines = {line[0]: line[1:] for line in findings.sheet(found).lines}
    here, holds = lines.get(told, ("", ""))
    return f"{holds}: {here}" if holds else here


def equality(found: Found) -> str:
    """Tell how many whole runs equal the exact one, and how many part from it at a tie."""
    runs = [each for each in found if "apart" in each.figures]
    equal = sum(equal_to_the_end(each) for each in runs)
    parted = sum("parted" in each.figures and not equal_to_the_end(each) for each in runs)
    ties = f", {parted} part at a tie" if parted else ""
    return f"{equal} of {len(runs)}{ties}"


def verdicts(found: Found) -> str:
    """Tell how many of T's findings hold."""
    held = [holds for *_, holds in findings.sheet(found).lines]
    told = ", ".join(f"{held.count(each)} {each}" for each in dict.fromkeys(held))
    return f"{_shape(found[0])}: {told}" if held else ""


def phases(found: Found) -> str:
    """Tell the shares of the phases."""
    best = _best(found)
    whole = sum(best.phases.values())
    told = ", ".join(f"{phase} {part / whole:.0%}" for phase, part in best.phases.items() if whole)
    return f"{_shape(best)}: {told}" if told else ""


def _of_largest(function: Callable[[Found], str]) -> Show:
    """Show what a function says of the largest problem."""
    return lambda entry, found, base: function(_largest(found))


def _time_of_run(entry: Entry, found: Found, base: Found) -> str:
    some = _largest(found)
    return run(some, entry.iterations) if entry.iterations else time(some)


SHOWN: dict[str, Show] = {
    **{
        each.__name__: _of_largest(each)
        for each in (
            *(whole, iteration, count, order, kernels),
            *(fastest, rungs, blocks, precision, iterations, scores, gains, verdicts, phases),
        )
    },
    "time": _time_of_run,
    "ends": lambda entry, found, base: ends(found),
    "equality": lambda entry, found, base: equality(found),
    "gain": lambda entry, found, base: gain(found, base, entry.phase) if base else "",
    "span": lambda entry, found, base: span(found, base, entry.phase) if base else "",
    "crossing": lambda entry, found, base: crossing(found, base, entry.phase) if base else "",
    "spread": lambda entry, found, base: spread(found, base),
    "wins": lambda entry, found, base: wins(found, base),
    "unordered": lambda entry, found, base: unordered(found, base),
    "share": lambda entry, found, base: share(found, entry.phase),
    "phase": lambda entry, found, base: phase(found, entry.phase),
    "number": lambda entry, found, base: number(found, entry.figure, entry.unit),
    "finding": lambda entry, found, base: finding(found, entry.what),
}
