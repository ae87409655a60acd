"""The page docs/ladder.md: its tables rewritten, its pictures drawn, from all measurements."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from lloydia.bench.sheets import Sheet
from lloydia.data.outputs import writing
from lloydia.ladder.experiments import EXPERIMENTS, experiment
from lloydia.ladder.experiments.measurement import Measurement, of_machines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["write"]

MARKED = re.compile(r"(<!-- ladder: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def write(results: Path, page: Path) -> list[Path]:
    """Rewrite what stands between the page's markers, and draw the pictures.

    Parameters
    ----------
    results : Path
        The folder with one folder a machine.
    page : Path
        Markdown with ``<!-- ladder: NAME -->`` and ``<!-- end -->``, where NAME is an experiment,
        "findings" or "systems".  Pictures go to the folder beside it with its stem as name.

    Returns
    -------
    list of Path
        What was written: the page first.

    Raises
    ------
    ValueError
        If there is no measurement, or the page has no markers.
    """
    text = page.read_text(encoding="utf-8")
    if not MARKED.search(text):
        raise ValueError(f"{page} has no place for tables: <!-- ladder: T --> ... <!-- end -->.")
    machines = of_machines(results)
    figures: dict[str, Figure] = {}
    blocks = {name: _experiment(name, machines, page.stem, figures) for name in EXPERIMENTS}
    text = MARKED.sub(lambda found: found[1] + blocks.get(found[2], found[3]) + found[4], text)
    folder = page.parent / page.stem
    folder.mkdir(exist_ok=True)
    with ExitStack() as renames:
        with writing(page, renames) as to:
            to.write_text(text, encoding="utf-8")
        for name, figure in figures.items():
            with writing(folder / name, renames) as to:
                figure.savefig(to, format="png")
    return [page, *(folder / name for name in figures)]


def _experiment(
    name: str, machines: dict[str, list[Measurement]], folder: str, figures: dict[str, Figure]
) -> str:
    """Return what an experiment has to show, one machine after the other; add its figures."""
    module = experiment(name)
    parts = []
    for shelf, every in machines.items():
        found = [each for each in every if each.experiment == name]
        if not found:
            continue
        parts.append(f"**{found[-1].machine}**\n")
        for short, figure in module.draw(found).items():
            file = f"{shelf}-{name.lower()}-{short}.png"
            figures[file] = figure
            parts.append(f"![{figure.get_suptitle()}]({folder}/{file})\n")
        parts += [markdown(sheet) for sheet in module.sheets(found)]
    return "\n".join(parts)


def markdown(sheet: Sheet) -> str:
    """Return a table under a heading of the fourth level."""
    return sheet.markdown().replace("## ", "#### ", 1)
