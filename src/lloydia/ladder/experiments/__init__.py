"""The five systems' experiments, each rerun by one command, with their figures beside ours.

An experiment is a module named as its system's letter, with ``TITLE`` and::

    run(lab) -> iterator of Measurement       what is measured, one at a time
    sheets(found) -> list of Sheet            its tables, of one machine's measurements
    draw(found) -> dict of str to Figure      its figures, by short names

``found`` are the newest measurements of the experiment on one machine, and may lack any part: a
GPU's folder has no threads, a processor's no blocks.  ``walk`` is a sixth: every rung on one
problem.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from lloydia.ladder.experiments.lab import Lab
from lloydia.ladder.experiments.measurement import Measurement, keep

__all__ = ["EXPERIMENTS", "experiment", "run"]

EXPERIMENTS = ("walk", "T", "A", "B", "C", "D")


def experiment(name: str) -> ModuleType:
    """Return the module of an experiment.

    Raises
    ------
    ValueError
        If there is none of this name.
    """
    known = {each.lower(): each for each in EXPERIMENTS}
    if name.lower() not in known:
        raise ValueError(f"There is no experiment {name!r}: there are {', '.join(EXPERIMENTS)}.")
    return importlib.import_module(f"{__name__}.{name.lower()}")


def run(names: Sequence[str], lab: Lab, results: Path) -> Iterator[tuple[Measurement, Path]]:
    """Run experiments, and keep every measurement as soon as it is made.

    Parameters
    ----------
    names : sequence of str
        Of `EXPERIMENTS`.
    lab : Lab
    results : Path
        The folder with one folder a machine.

    Yields
    ------
    measurement : Measurement
    path : Path
        The file of JSON lines that it was added to.
    """
    modules = [experiment(name) for name in names]
    lab.device  # says now, not after the first experiment, that there is no GPU  # noqa: B018
    for module in modules:
        for found in module.run(lab):
            yield found, keep(found, results)
