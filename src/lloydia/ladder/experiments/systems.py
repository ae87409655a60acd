"""Every part of the five systems, listed in systems.toml: what does it, and a figure for it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments import findings
from lloydia.ladder.experiments.figures import name, seconds, speedup
from lloydia.ladder.experiments.lab import ENGINES, PEERS
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.seedings import BETTER

__all__ = ["Part", "parts", "sheet"]

TABLE = Path(__file__).with_name("systems.toml")
Found = Sequence[Measurement]


@dataclass(frozen=True)
class Part:
    """A part of a system.

    Attributes
    ----------
    system : str
        Its letter.
    what : str
    files : list of str
        From the repository's root.
    wanted : dict
        The measurements that tell of it, as :func:`pick` takes them; empty if none does.
    tell : str
        Which function of `TELLERS` puts them into words.
    """

    system: str
    what: str
    files: list[str]
    wanted: dict[str, Any] = field(default_factory=dict)
    tell: str = "fastest"


def parts() -> list[Part]:
    """Return all parts, system by system."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return [Part(system, **row) for system, rows in table.items() for row in rows]


def sheet(found: Iterable[Measurement]) -> Sheet:
    """Return a table with a line for each part, its figures of all machines."""
    every = list(found)
    lines = [
        [f"{part.system}: {part.what}", _links(part.files), "; ".join(_figures(part, every))]
        for part in parts()
    ]
    return Sheet("Every part of the five systems", ["part", "files", "measured"], lines)


def _links(files: Sequence[str]) -> str:
    return " ".join(f"[{Path(file).stem}](../{file})" for file in files)


def _figures(part: Part, found: Found) -> list[str]:
    if not part.wanted:
        return ["tested"] if any(file.startswith("tests/") for file in part.files) else []
    wanted = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in part.wanted.items()
    }
    some = pick(found, **wanted)
    devices = dict.fromkeys(each.device for each in some)
    told = {device: TELLERS[part.tell](_largest(pick(some, device=device))) for device in devices}
    return [f"{each} ({device})" if device else each for device, each in told.items() if each]


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


TELLERS: dict[str, Callable[[Found], str]] = {
    each.__name__: each
    for each in (fastest, rungs, blocks, precision, iterations, scores, gains, verdicts, phases)
}
