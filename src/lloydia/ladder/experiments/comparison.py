"""The documents' figures beside ours: a line for everything that one describes, prints or finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments import findings
from lloydia.ladder.experiments.documents import Entry, document
from lloydia.ladder.experiments.figures import name, seconds, speedup
from lloydia.ladder.experiments.lab import ENGINES, PEERS
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.seedings import BETTER

__all__ = ["SHOWN", "sheet"]

Found = Sequence[Measurement]
TEXT = ("file", "command", "same program?")


def sheet(letter: str, machines: Mapping[str, Found]) -> Sheet:
    """Return a table with a line for each entry of a document, and a column for each machine.

    The notes below it say in what our program differs, where it does.

    Parameters
    ----------
    letter : str
    machines : mapping of str to sequence of Measurement
        What was measured, by the machines' names.
    """
    of = document(letter)
    notes = list(dict.fromkeys(entry.differs for entry in of.entries if entry.differs))
    lines = [
        [
            _what(entry),
            _links(entry.files),
            f"`{entry.command}`" if entry.command else "",
            _theirs(entry),
            *(_ours(entry, pick(found, experiment=letter)) for found in machines.values()),
            f"note {notes.index(entry.differs) + 1}" if entry.differs else "yes" * entry.same,
        ]
        for entry in of.entries
    ]
    heads = ["", "file", "command", "theirs", *(f"ours, {name}" for name in machines)]
    title = f"Everything in document {letter}, and ours"
    numbered = [f"Note {number}: {note}" for number, note in enumerate(notes, 1)]
    return Sheet(title, [*heads, "same program?"], lines, numbered, text=TEXT)


def _what(entry: Entry) -> str:
    return f"{entry.what} ({entry.place})" if entry.place else entry.what


def _links(files: Sequence[str]) -> str:
    return " ".join(f"[{Path(file).stem}](../{file})" for file in files)


def _theirs(entry: Entry) -> str:
    """Return the document's figure with its unit."""
    value = entry.theirs
    if isinstance(value, str):
        return value
    if entry.unit in ("s", "x"):
        return seconds(value) if entry.unit == "s" else speedup(value)
    return f"{value:,g}{'' if entry.unit == '%' else ' '}{entry.unit}"


def _ours(entry: Entry, found: Found) -> str:
    """Return our figure of an entry on one machine; empty if there is none."""
    if not entry.pick:
        return "tested" if any(file.startswith("tests/") for file in entry.files) else ""
    some = pick(found, **_wanted(entry.pick))
    if not some:
        return ""
    if entry.show == "gain":
        return gain(some, pick(found, **_wanted({**entry.pick, **entry.over})))
    if entry.show == "share":
        return share(some, entry.phase)
    return SHOWN[entry.show](_largest(some))


def _wanted(attributes: Mapping[str, object]) -> dict[str, object]:
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in attributes.items()
    }


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


def iteration(found: Found) -> str:
    """Return the best time of an iteration."""
    return seconds(min(each.per_iteration for each in found))


def count(found: Found) -> str:
    """Return the number of iterations of the longest run."""
    return str(max(each.n_iter or 0 for each in found))


def gain(found: Found, base: Found) -> str:
    """Return how many times as fast an iteration is as one of the base."""
    if not base:
        return ""
    least, slower = (min(each.per_iteration for each in some) for some in (found, base))
    return speedup(slower / least)


def share(found: Found, phase: str) -> str:
    """Return the share of a phase in the time of all."""
    of = _best(found).phases
    whole = sum(of.values())
    return f"{of.get(phase, 0) / whole:.0%}" if whole else ""


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


SHOWN: dict[str, Callable[..., str]] = {
    each.__name__: each
    for each in (
        *(time, iteration, count, gain, share),
        *(fastest, rungs, blocks, precision, iterations, scores, gains, verdicts, phases),
    )
}
