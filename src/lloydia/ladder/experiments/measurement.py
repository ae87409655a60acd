"""A measurement: one rung on one problem, as a line of results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import median
from typing import Any, Literal

from lloydia.bench import machine

__all__ = ["Measurement", "keep", "of_machines", "pick"]

FOLDER = "ladder"  # in a machine's folder of results


@dataclass(frozen=True)
class Measurement:
    """One contender on one problem.

    Attributes
    ----------
    experiment : str
        The letter of the written-up system whose experiment it is, or "walk".
    part : str
        Which part of the experiment.
    rung : str
        A rung's name, or "scikit-learn lloyd" and the like.
    where : {"cpu", "cuda"}
        What it ran on; `device` is the GPU of the machine, whatever it ran on.
    n, d, k : int
    dtype : str
    case : str
        What else tells this problem from others: a seeding, a photograph.
    threads, block : int or None
        Where they make a difference.
    max_iter : int
    status : {"ok", "differs", "skipped"}
        "differs": the result is not the oracle's, so there is no time; "skipped": it cannot run.
    reason : str
        Why it is not "ok".
    n_iter : int or None
    seconds : float or None
        The median of the repetitions, or their mean where the source has means.
    repetitions : tuple of float
        The seconds of each.
    phases : mapping of str to float
        As in :class:`lloydia.ladder.rung.Outcome`, of the last repetition.
    figures : mapping of str to float
        Other numbers: scores, how far the result is from the oracle's.
    theirs : float or None
        The source's own seconds.
    scale : float
        What the sizes were multiplied by.
    device : str or None
    facts : mapping
        The machine, as :func:`lloydia.bench.machine.facts` tells it; of those read from a file.
    """

    experiment: str
    part: str
    rung: str
    where: Literal["cpu", "cuda"]
    n: int
    d: int
    k: int
    dtype: str
    case: str = ""
    threads: int | None = None
    block: int | None = None
    max_iter: int = 0
    status: Literal["ok", "differs", "skipped"] = "ok"
    reason: str = ""
    n_iter: int | None = None
    seconds: float | None = None
    repetitions: tuple[float, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    theirs: float | None = None
    scale: float = 1.0
    device: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> tuple[object, ...]:
        """What it is a measurement of: of two with one key the later one counts."""
        return (
            *(
                self.experiment,
                self.part,
                self.rung,
                self.where,
                self.n,
                self.d,
                self.k,
                self.dtype,
            ),
            *(self.case, self.threads, self.block, self.device),
        )

    @property
    def per_iteration(self) -> float:
        """Seconds an iteration; of a measurement that has a time."""
        assert self.seconds is not None
        assert self.n_iter
        return self.seconds / self.n_iter

    @property
    def machine(self) -> str:
        """The GPU, or the processor where there is none."""
        return self.device or str(self.facts.get("cpu", ""))

    def row(self) -> dict[str, Any]:
        """Return it as a JSON object, without what says nothing."""
        row = {name: value for name, value in asdict(self).items() if name != "facts"}
        return {name: value for name, value in row.items() if value not in (None, "", {}, ())}


def keep(found: Measurement, results: Path) -> Path:
    """Append a measurement to its letter's file of its machine, and return the path."""
    return machine.keep(f"{FOLDER}/{found.experiment}", [found.row()], results)


def of_machines(results: Path) -> dict[str, list[Measurement]]:
    """Return the newest measurement of everything, by the machines' folders.

    Raises
    ------
    ValueError
        If there is none.
    """
    found: dict[str, list[Measurement]] = {}
    for path in sorted(results.glob(f"*/{FOLDER}/*.jsonl")):
        found.setdefault(path.parent.parent.name, []).extend(_newest(path))
    if not found:
        raise ValueError(
            f"{results} has no measurement of the ladder: make some with lloydia ladder run."
        )
    return found


def _newest(path: Path) -> Iterable[Measurement]:
    names = {field.name for field in fields(Measurement)} - {"facts"}
    last: dict[object, Measurement] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            known = {name: row.pop(name) for name in names & row.keys()}
            found = Measurement(**known, facts=row)
        except (json.JSONDecodeError, AttributeError, TypeError):
            raise ValueError(f"{path}, line {number} is not a measurement of the ladder.") from None
        last[found.key] = found
    return last.values()


def pick(found: Iterable[Measurement], **wanted: Any) -> list[Measurement]:
    """Return those with a time whose attributes are as wanted; a tuple lists several values."""
    return [
        each
        for each in found
        if each.seconds is not None
        and all(
            getattr(each, name) in value
            if isinstance(value, tuple)
            else getattr(each, name) == value
            for name, value in wanted.items()
        )
    ]


def typical(seconds: Iterable[float], *, mean: bool) -> float:
    """Return the median of the repetitions, or their mean."""
    every = list(seconds)
    return sum(every) / len(every) if mean else median(every)
