"""Write every kept measurement as Markdown and pictures: a page for each machine.

python benchmarks/pages.py FOLDER    (``make docs`` does it for the site)

Each table has the newest measurement of each of its lines, and the machine that it was made on.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lloydia.bench.machine import PACKAGES
from lloydia.bench.report import newest, write
from lloydia.bench.sheets import Sheet, sheets

RESULTS = Path(__file__).resolve().parent / "results"

Row = dict[str, Any]

HEADING = re.compile("^##(?= )", re.MULTILINE)
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\+00:00")


@dataclass(frozen=True)
class Script:
    """The table of what a script of this folder measures."""

    title: str
    command: str
    # What tells lines apart: the newest of each counts.
    key: tuple[str, ...]
    # Heads, and what of a line stands below each: a key, or a format of the line.
    columns: dict[str, str]


SEEDINGS = {"k-means++, s": "plusplus_s", "k-means||, s": "parallel_s"}
SCRIPTS = {
    "startup": Script(
        "First fits in fresh processes",
        "python benchmarks/startup.py --save",
        ("what",),
        {"what": "what", "seconds": "seconds", "load by other programs": "load"},
    ),
    "threads": Script(
        "A second thread, compared with a second process",
        "python benchmarks/threads.py --save",
        ("what",),
        {
            "what": "what",
            "one": "one",
            "two": "two",
            "factor": "factor",
            "load by other programs": "load",
        },
    ),
    "minibatch": Script(
        "MiniBatchKMeans, one epoch",
        "python benchmarks/minibatch.py --save",
        ("case",),
        {
            "rows, features, clusters": "case",
            "Lloydia, ms": "lloydia ms",
            "scikit-learn, ms": "scikit-learn ms",
            "ratio": "ratio",
            "Lloydia's inertia": "lloydia inertia",
            "scikit-learn's inertia": "scikit-learn inertia",
        },
    ),
    "stream": Script(
        "Rows read in blocks from a file",
        "python benchmarks/streaming.py --save",
        ("case", "peer"),
        {
            "how": "peer",
            "rows,features,clusters": "case",
            "iterations": "iterations",
            "seconds": "seconds",
            "compared with in memory": "ratio",
            "relative inertia": "inertia",
        },
    ),
    "cluster": Script(
        "A Dask cluster on one machine",
        "python benchmarks/cluster.py --save",
        ("n", "d", "k", "contender"),
        {
            "how": "contender",
            "rows": "n",
            "features": "d",
            "clusters": "k",
            "iterations": "iterations",
            "seconds": "seconds",
        },
    ),
    "segmenting": Script(
        "Segments of a photograph of ten megapixels",
        "python benchmarks/segmenting.py --save",
        ("contender", "k"),
        {
            "library": "contender",
            "clusters": "k",
            "threads": "threads",
            "iterations": "n_iter",
            "seconds": "seconds",
            "ratio": "ratio",
            "relative inertia": "relative_inertia",
            "load by other programs": "load",
        },
    ),
    "scaling": Script(
        "Several GPUs of one machine",
        "python benchmarks/scaling.py --save",
        ("n", "d", "k", "gpus"),
        {
            "rows": "n",
            "features": "d",
            "clusters": "k",
            "GPUs": "gpus",
            "ms an iteration": "ms",
            "times one GPU": "ratio",
            **SEEDINGS,
        },
    ),
    "out_of_core": Script(
        "Rows on the CPU that do not fit on the GPU",
        "python benchmarks/out_of_core.py --save",
        ("n", "d", "k", "narrow", "kept"),
        {
            "rows": "n",
            "features": "d",
            "clusters": "k",
            "rows exact in half precision": "narrow",
            "what stays on the GPU": "kept",
            "bytes of GPU memory": "cap",
            "ms an iteration": "ms",
            "bytes sent": "sent",
            "ms at the bus's speed": "floor",
            "seeds": "seeds",
            **SEEDINGS,
        },
    ),
    "switches": Script(
        "The effect of each mechanism of the GPU engine on the time",
        "python benchmarks/switches.py --save",
        ("n", "d", "k", "without"),
        {
            "rows": "n",
            "features": "d",
            "clusters": "k",
            "iterations": "iterations",
            "without": "without",
            "ms": "ms",
            "times the fit with everything": "ratio",
        },
    ),
    "seeding_costs": Script(
        "What a start costs",
        "python benchmarks/seeding.py --save",
        ("n", "d", "k", "what"),
        {
            "rows": "n",
            "features": "d",
            "clusters": "k",
            "what": "what",
            "seconds": "s",
            "iterations": "iterations",
            "inertia": "inertia",
        },
    ),
    "seeding_cpu": Script(
        "What a start costs in processor time of one thread",
        "python benchmarks/seeding_cpu.py --save",
        ("n", "d", "k", "rank", "what"),
        {
            "rows": "n",
            "features": "d",
            "clusters": "k",
            "rank": "rank",
            "what": "what",
            "processor seconds": "processor_s",
            "times the first": "ratio",
        },
    ),
    "foundation": Script(
        "An early version, compared with scikit-learn",
        "",
        ("name",),
        {
            "case": "name",
            "whole fit": "whole",
            "Lloydia, ms": "ms",
            "scikit-learn, ms": "sklearn_ms",
            "ratio": "ratio",
        },
    ),
}
# What `lloydia bench` keeps.
CONTESTS = {
    "peers": "Compared with other libraries",
    "fits": "Whole fits of later runs",
    "seeding": "k-means++ compared with other libraries",
    "auto": "`auto` compared with every algorithm",
    "images": "Palettes of photographs",
}


def main(folder: Path) -> list[Path]:
    """Write the pages into a folder; return them."""
    folder.mkdir(parents=True, exist_ok=True)
    return [page(machine, folder) for machine in sorted(RESULTS.iterdir()) if machine.is_dir()]


def page(machine: Path, folder: Path) -> Path:
    """Write one machine's page, and its pictures into the folder of its name."""
    found = {path.stem: path for path in machine.glob("*.jsonl")}
    unknown = sorted(found.keys() - {*CONTESTS, *SCRIPTS})
    if unknown:
        raise ValueError(f"{machine}: no table is defined for {', '.join(unknown)}.")
    parts = [contest(found[name], folder) for name in CONTESTS if name in found]
    parts += [script(found[name], SCRIPTS[name]) for name in SCRIPTS if name in found]
    if (machine / "ladder").is_dir():
        parts.append(
            "## The ladder\n\nThe tables of the ladder's experiments are on "
            "[its page](../../ladder.md).\n"
        )
    to = folder / f"{machine.name}.md"
    to.write_text(f"# {title(found.values())}\n\n" + "\n".join(parts), encoding="utf-8")
    return to


def title(paths: Any) -> str:
    """Return the machine's name as its measurements give it."""
    first = [json.loads(path.read_text(encoding="utf-8").split("\n", 1)[0]) for path in paths]
    names = sorted({row.get("device") or row["cpu"] for row in first})
    return ", ".join(names)


def contest(path: Path, folder: Path) -> str:
    """Return the tables of a file that `lloydia bench` keeps, and draw its pictures."""
    rows = newest(path)
    if path.stem in ("peers", "images"):
        markdown, *pictures = write(path, folder / path.parent.name)
        text = markdown.read_text(encoding="utf-8").partition("\n")[2]
        markdown.unlink()
        for picture in pictures:
            text = text.replace(f"]({picture.name})", f"]({path.parent.name}/{picture.name})")
    else:
        text = "\n".join([facts(rows), "", *(sheet.markdown() for sheet in sheets(rows))])
    text = MOMENT.sub(r"\1 \2 UTC", HEADING.sub("###", text.strip()))
    return f"## {CONTESTS[path.stem]}\n\n{text}\n"


def script(path: Path, what: Script) -> str:
    """Return the table of a file that a script keeps."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    last: dict[tuple, Row] = {}
    for row in sorted(rows, key=lambda row: row["when"]):
        last[tuple(row[key] for key in what.key)] = row
    lines = [[cell(row.get(key)) for key in what.columns.values()] for row in last.values()]
    notes = [f"`{what.command}` measures this on your machine."] if what.command else []
    sheet = Sheet(what.title, list(what.columns), lines, [facts(list(last.values())), *notes])
    return sheet.markdown()


def cell(value: Any) -> str:
    """Return a value as a cell of a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def facts(rows: Sequence[Row]) -> str:
    """Return the machine, the time and the versions of measurements, in words."""
    row = rows[-1]
    days = sorted({row.get("run", row.get("when"))[:10] for row in rows})
    place = f"{row['cores']} cores of {row['cpu']}"
    if row.get("device"):
        place = f"{row['device']}, with {place}"
    versions = ", ".join(f"{name} {row[name]}" for name in PACKAGES if name in row)
    return f"{place}, {row['system']}, {', '.join(days)}. Python {row['python']}, {versions}."


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python benchmarks/pages.py FOLDER")
    print(*main(Path(sys.argv[1])), sep="\n")
