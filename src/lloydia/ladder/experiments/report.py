"""The page docs/ladder.md: its tables rewritten, its pictures drawn, from all measurements."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from lloydia.bench.sheets import Sheet
from lloydia.data.outputs import writing
from lloydia.ladder.experiments import experiment, findings, summits, systems
from lloydia.ladder.experiments.measurement import Measurement, of_machines, pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["write"]

VERSIONS = ("lloydia", "numba", "numba-cuda", "scikit-learn", "triton")
MARKED = re.compile(r"(<!-- ladder: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def write(results: Path, page: Path) -> list[Path]:
    """Rewrite what stands between the page's markers, and draw the pictures.

    Parameters
    ----------
    results : Path
        The folder with one folder a machine.
    page : Path
        Markdown with ``<!-- ladder: NAME -->`` and ``<!-- end -->``, where NAME is an experiment,
        "findings", "summits" or "systems".  Pictures go to the folder beside it that has its stem
        as name.

    Returns
    -------
    list of Path
        What was written: the page first.

    Raises
    ------
    ValueError
        If there is no measurement, or the page has no markers, or one with an unknown name.
    """
    text = page.read_text(encoding="utf-8")
    if not MARKED.search(text):
        raise ValueError(f"{page} has no place for tables: <!-- ladder: T --> ... <!-- end -->.")
    machines = of_machines(results)
    figures: dict[str, Figure] = {}
    blocks = {
        name: _block(name, machines, page.stem, figures) for _, name, *_ in MARKED.findall(text)
    }
    text = MARKED.sub(lambda found: found[1] + blocks[found[2]] + found[4], text)
    folder = page.parent / page.stem
    folder.mkdir(exist_ok=True)
    with ExitStack() as renames:
        with writing(page, renames) as to:
            to.write_text(text, encoding="utf-8")
        for name, figure in figures.items():
            with writing(folder / name, renames) as to:
                figure.savefig(to, format="png")
    return [page, *(folder / name for name in figures)]


def _block(
    name: str, machines: dict[str, list[Measurement]], folder: str, figures: dict[str, Figure]
) -> str:
    """Return what belongs in a place of the page; add its figures."""
    if name == "systems":
        return markdown(systems.sheet(each for some in machines.values() for each in some))
    if name in ("findings", "summits"):
        return _by_machine(findings.sheet if name == "findings" else summits.sheet, machines)
    module = experiment(name)
    parts = []
    for shelf, every in machines.items():
        found = [each for each in every if each.experiment == name]
        if not found:
            continue
        parts.append(f"**{_where(found)}**\n")
        drawn = module.draw(found) if pick(found) else {}
        for short, figure in drawn.items():
            file = f"{shelf}-{name.lower()}-{short}.png"
            figures[file] = figure
            parts.append(f"![{figure.get_suptitle()}]({folder}/{file})\n")
        parts += [markdown(sheet) for sheet in module.sheets(found)]
    return "\n".join(parts)


def _by_machine(
    sheet: Callable[[Sequence[Measurement]], Sheet], machines: dict[str, list[Measurement]]
) -> str:
    """Return a table for each machine that has one."""
    tables = ((found, sheet(found)) for found in machines.values())
    return "\n".join(
        f"**{_where(found)}**\n\n{markdown(table)}" for found, table in tables if table.lines
    )


def _where(found: Sequence[Measurement]) -> str:
    """Return which machine and versions these are of, from the newest."""
    newest = max(found, key=lambda each: str(each.facts.get("when", "")))
    facts = newest.facts
    beside = f"{newest.device}, beside " if newest.device else ""
    versions = ", ".join(f"{name} {facts[name]}" for name in VERSIONS if name in facts)
    return f"{beside}{facts['cores']} cores of {facts['cpu']}; {versions}; {facts['when'][:10]}"


def markdown(sheet: Sheet) -> str:
    """Return a table under a heading of the fourth level."""
    return sheet.markdown().replace("## ", "#### ", 1)
