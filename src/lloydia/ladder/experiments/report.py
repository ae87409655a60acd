"""The page docs/ladder.md: its tables rewritten, its pictures drawn, from all measurements."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lloydia.bench.sheets import Sheet
from lloydia.data.outputs import Renames, check_output, writing
from lloydia.ladder.experiments import (
    EXPERIMENTS,
    comparison,
    experiment,
    findings,
    summits,
)
from lloydia.ladder.experiments.documents import LETTERS
from lloydia.ladder.experiments.measurement import Measurement, of_machines, pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["write"]

VERSIONS = ("lloydia", "numba", "numba-cuda", "scikit-learn", "triton")
MARKED = re.compile(r"(<!-- ladder: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def write(results: Path, page: Path, *, force: bool = True) -> list[Path]:
    """Rewrite what stands between the page's markers, and draw the pictures.

    Parameters
    ----------
    results : Path
        The folder with one folder a machine.
    page : Path
        Markdown with ``<!-- ladder: NAME -->`` and ``<!-- end -->``, where NAME is an experiment,
        "findings" or "summits"; one that is not there is made, with a place for each experiment
        that was measured.  Pictures go to the folder beside it that has its stem as name.
    force : bool
        Whether pictures are replaced that Lloydia did not write.

    Returns
    -------
    list of Path
        What was written: the page first.

    Raises
    ------
    ValueError
        If there is no measurement, or the page has no markers, or one with an unknown name; or a
        picture would be replaced.
    """
    there = page.exists()
    text = page.read_text(encoding="utf-8") if there else ""
    if there and not MARKED.search(text):
        raise ValueError(f"{page} has no place for tables: <!-- ladder: T --> ... <!-- end -->.")
    machines = of_machines(results)
    text = text if there else _outline(machines)
    figures: dict[str, Figure] = {}
    blocks = {name: _block(name, machines, page, figures) for _, name, *_ in MARKED.findall(text)}
    text = MARKED.sub(lambda found: found[1] + blocks[found[2]] + found[4], text)
    folder = page.parent / page.stem
    folder.mkdir(exist_ok=True)
    for name in figures:
        check_output(folder / name, (".png",), force=force)
    # The page has the user's own text around its tables, so it is always replaced.
    with Renames() as pages, Renames(force=force) as renames:
        with writing(page, pages) as to:
            to.write_text(text, encoding="utf-8")
        for name, figure in figures.items():
            with writing(folder / name, renames) as to:
                figure.savefig(to, format="png")
    return [page, *(folder / name for name in figures)]


def _outline(machines: dict[str, list[Measurement]]) -> str:
    """Return a page with a place for each experiment that was measured."""
    measured = {each.experiment for found in machines.values() for each in found}
    parts = ["# The ladder, measured\n"]
    for name in EXPERIMENTS:
        if name in measured:
            parts.append(f"## {experiment(name).TITLE}\n\n<!-- ladder: {name} -->\n<!-- end -->\n")
    return "\n".join(parts)


def _block(
    name: str, machines: dict[str, list[Measurement]], page: Path, figures: dict[str, Figure]
) -> str:
    """Return what belongs in a place of the page; add its figures."""
    if name in ("findings", "summits"):
        return _by_machine(findings.sheet if name == "findings" else summits.sheet, machines)
    module = experiment(name)
    parts = []
    own = {
        shelf: found
        for shelf, every in machines.items()
        if (found := [each for each in every if each.experiment == name])
    }
    if name in LETTERS and own:
        hosts = {_host(found): found for _, found in _by_host(own)}
        parts.append(markdown(comparison.sheet(name, hosts, _root(page))))
    for shelf, found in _by_host(own):
        parts.append(f"**{_where(found)}**\n")
        drawn = module.draw(found) if pick(found) else {}
        for short, figure in drawn.items():
            file = f"{shelf}-{name.lower()}-{short}.png"
            figures[file] = figure
            parts.append(f"![{figure.get_suptitle()}]({page.stem}/{file})\n")
        parts += [markdown(sheet) for sheet in module.sheets(found)]
    return "\n".join(parts)


def _root(page: Path) -> str | None:
    """Return how the page links to the repository's root, if that is the folder here."""
    inside = page.resolve().is_relative_to(Path.cwd())
    if not inside or not Path("src/lloydia/ladder").is_dir():
        return None
    return Path(os.path.relpath(Path.cwd(), page.parent)).as_posix()


def _by_machine(
    sheet: Callable[[Sequence[Measurement]], Sheet], machines: dict[str, list[Measurement]]
) -> str:
    """Return a table for each machine that has one."""
    tables = ((found, sheet(found)) for _, found in _by_host(machines))
    return "\n".join(
        f"**{_where(found)}**\n\n{markdown(table)}" for found, table in tables if table.lines
    )


def _by_host(machines: dict[str, list[Measurement]]) -> Iterator[tuple[str, list[Measurement]]]:
    """Yield what was measured on each machine, with a name for its files.

    A folder is one of a processor or of a GPU: the machines with that GPU may differ in the
    processor beside it, and then have a table each.
    """
    for shelf, every in machines.items():
        hosts: dict[str, list[Measurement]] = {}
        for each in every:
            hosts.setdefault(_host([each]), []).append(each)
        for found in hosts.values():
            cores = f"-{found[0].facts['cores']}-cores" if len(hosts) > 1 else ""
            yield shelf + cores, found


def _host(found: Sequence[Measurement]) -> str:
    """Return the machine of these: the GPU and the processor beside it, or the processor."""
    first = found[0]
    processor = f"{first.facts['cores']} cores of {first.facts['cpu']}"
    return f"{first.device}, beside {processor}" if first.device else processor


def _where(found: Sequence[Measurement]) -> str:
    """Return the machine of these, with the versions and the day of the newest."""
    facts = max(found, key=lambda each: str(each.facts.get("when", ""))).facts
    versions = ", ".join(f"{name} {facts[name]}" for name in VERSIONS if name in facts)
    return f"{_host(found)}; {versions}; {facts['when'][:10]}"


def markdown(sheet: Sheet) -> str:
    """Return a table under a heading of the fourth level."""
    return sheet.markdown().replace("## ", "#### ", 1)
