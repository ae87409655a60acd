"""Write the tables of guides that are made of kept measurements.

python benchmarks/guide_tables.py

A page marks the place of each table with a comment, ``<!-- table: NAME -->``.  What follows it, up
to the next empty line, is written anew: the newest measurement of each case, from the JSON lines of
one machine.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
GUIDES = HERE.parent / "docs" / "guides"
MARK = re.compile(r"(?<=<!-- table: )([a-z ]+)( -->\n)(.*?)(?=\n\n)", re.DOTALL)

Row = dict[str, Any]


@dataclass(frozen=True)
class GuideTable:
    """A table of a guide: a line for each case, a column for each thing that was timed.

    Attributes
    ----------
    kept : str
        The file of JSON lines below ``results/``.
    case : tuple of str
        The keys of a line that name its case.
    counts : callable
        Whether a line belongs to the table.
    heads : dict
        What begins a line: a head, and a format of the case.
    columns : dict
        A head, what was timed (the key ``"what"`` of a line), and the key of the value.
    read : callable
        Returns a line from what is kept of it.
    """

    kept: str
    case: tuple[str, ...]
    counts: Callable[[Row], bool]
    heads: dict[str, str]
    columns: dict[str, tuple[str, str]]
    read: Callable[[str], Row] = json.loads

    def markdown(self) -> str:
        """Return it as Markdown.

        Raises
        ------
        ValueError
            A case lacks a measurement.
        """
        rows = map(self.read, (RESULTS / self.kept).read_text(encoding="utf-8").splitlines())
        cases: dict[tuple, dict[str, Row]] = {}
        for row in sorted(rows, key=lambda row: row["when"]):
            if self.counts(row):
                cases.setdefault(tuple(row[key] for key in self.case), {})[row["what"]] = row
        lines = [[*self.heads, *self.columns], ["---"] * len({**self.heads, **self.columns})]
        for case, found in cases.items():
            lacking = {what for what, _ in self.columns.values()} - found.keys()
            if lacking:
                raise ValueError(f"{self.kept} has no {', '.join(sorted(lacking))} of {case}.")
            first = next(iter(found.values()))
            named = [text.format(**first) for text in self.heads.values()]
            lines.append(named + [number(found[what][key]) for what, key in self.columns.values()])
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value: float) -> str:
    """Return a number with two digits, or all of an integral part that has more."""
    if isinstance(value, int) or value >= 10:
        return f"{value:.0f}"
    # What hardly takes any time is a difference of two times, and may be negative.
    return f"{value:#.2g}" if value >= 0.005 else "< 0.01"


def parted(line: str) -> Row:
    """Return a line of ``startup.py``, whose `what` ends with a shape in brackets, with both."""
    row = json.loads(line)
    what, _, shape = row["what"].removesuffix(")").partition(" (")
    if "any k of a sweep" in what:
        what = "more for a sweep"
    return {**row, "what": what, "shape": shape}


def fit_of(name: str, what: str) -> dict[str, tuple[str, str]]:
    """Return the columns of a library's fit: its seconds and its inertia."""
    return {f"{name}, s": (what, "s"), f"{name}, inertia": (what, "inertia_percent")}


def first_fit(what: str) -> tuple[str, str]:
    """Return the column of the seconds of a first fit."""
    return f"first fit, {what}", "seconds"


FIRST_FITS = "nvidia-h200/startup.jsonl"
SEEDING_GPU = "nvidia-h200/seeding_costs.jsonl"
SEEDING_CPU = "amd-epyc/seeding_cpu.jsonl"
SIZES = {"rows, features, clusters": "{n:,}, {d}, {k}"}
TABLES = {
    "first fits on a gpu": GuideTable(
        FIRST_FITS,
        ("shape",),
        lambda row: row.get("device") is not None and not row["what"].startswith("flash"),
        {"rows x features, type, clusters": "{shape}"},
        {
            "kernels": ("first fit, empty cache", "kernels"),
            "first fit, empty cache": first_fit("empty cache"),
            "warm cache": first_fit("warm cache"),
        },
        parted,
    ),
    "later fits on a gpu": GuideTable(
        FIRST_FITS,
        ("shape",),
        lambda row: row.get("device") is not None and row["what"].startswith("more"),
        {"rows x features, type, clusters": "{shape}"},
        {
            "the same": ("more for the same again", "seconds"),
            "`tol=0`": ("more for tol=0", "seconds"),
            '`init="random"`': ("more for init='random'", "seconds"),
            "weights": ("more for weights", "seconds"),
            "fewer rows": ("more for fewer rows", "seconds"),
            "k + 3": ("more for k + 3", "seconds"),
            "sweep, slowest k": ("more for a sweep", "seconds"),
            "sweep, kernels": ("more for a sweep", "kernels"),
        },
        parted,
    ),
    "seeding on a gpu": GuideTable(
        SEEDING_GPU,
        ("n", "d", "k"),
        lambda row: True,
        SIZES,
        {
            '`"k-means++"`': ("k-means++", "s"),
            r'`"k-means\|\|"`': ("k-means||", "s"),
            'iterations after `"k-means++"`': ("fit from the k-means++ start", "s"),
            "number of iterations": ("fit from the k-means++ start", "iterations"),
        },
    ),
    "fits by other libraries on a gpu": GuideTable(
        SEEDING_GPU,
        ("n", "d", "k"),
        lambda row: row["k"] <= 4096,
        SIZES,
        {
            **fit_of("`KMeans`", "fit, k-means++"),
            **fit_of(r'`init="k-means\|\|"`', "fit, k-means||"),
            **fit_of("flash-kmeans, random rows", "flash-kmeans from random rows"),
            **fit_of(r"cuVS, k-means\|\|", "cuVS from k-means||"),
        },
    ),
    "seeding on a processor": GuideTable(
        SEEDING_CPU,
        ("n", "d", "k", "rank"),
        lambda row: row["rank"] is not None,
        SIZES | {"rank": "{rank}"},
        {
            "an iteration": ("an iteration", "processor_s"),
            '`"k-means++"`': ("k-means++", "processor_s"),
            '`"k-means++"`, iterations': ("k-means++", "ratio"),
            r'`"k-means\|\|"`': ("k-means||", "processor_s"),
            r'`"k-means\|\|"`, iterations': ("k-means||", "ratio"),
        },
    ),
    "seeding by other libraries": GuideTable(
        SEEDING_CPU,
        ("n", "d", "k"),
        lambda row: row["rank"] is None,
        SIZES,
        {
            "Lloydia": ("Lloydia", "processor_s"),
            "scikit-learn": ("scikit-learn", "processor_s"),
            "FAISS": ("FAISS, one draw a centre", "processor_s"),
        },
    ),
}


def written(text: str) -> str:
    """Return the text of a page with its tables made anew of the kept measurements.

    A table of which nothing is kept yet stays as it is.
    """

    def table(mark: re.Match) -> str:
        made = TABLES[mark[1]]
        return mark[1] + mark[2] + (made.markdown() if (RESULTS / made.kept).exists() else mark[3])

    return MARK.sub(table, text)


def main() -> list[Path]:
    """Write the tables of all guides; return the pages that have one."""
    pages = []
    for page in sorted(GUIDES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if MARK.search(text):
            page.write_text(written(text), encoding="utf-8")
            pages.append(page)
    return pages


if __name__ == "__main__":
    if len(sys.argv) != 1:
        sys.exit("python benchmarks/guide_tables.py")
    print(*main(), sep="\n")
