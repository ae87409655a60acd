"""The tables: rows of results, put into words, for a terminal and for a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Sheet", "best_peer", "by_case", "milliseconds", "missing", "ours", "remarks", "sheets"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Sheet:
    """A table of text, with the notes under it."""

    title: str
    heads: Sequence[str]
    lines: list[list[str]]
    notes: list[str] = field(default_factory=list)
    text: Sequence[str] = ()  # heads of the columns, besides the first, that are left-aligned

    def markdown(self) -> str:
        """Return it as a Markdown section."""
        first, *others = self.heads
        ends = ["---" if head in (first, *self.text) else "---:" for head in (first, *others)]
        table = [self.heads, ends, *self.lines]
        rows = ["| " + " | ".join(line) + " |" for line in table]
        notes = [f"- {note}" for note in self.notes]
        return "\n".join([f"## {self.title}", "", *rows, "", *notes]).rstrip() + "\n"


def by_case(rows: Iterable[Row], mode: str) -> dict[str, list[Row]]:
    """Return the rows of a mode by their cases; ours is the first of each."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["mode"] == mode:
            found.setdefault(row["case"], []).append(row)
    return found


def ours(rows: list[Row]) -> Row:
    """Return our row of a case."""
    return rows[0]


def best_peer(rows: list[Row]) -> Row | None:
    """Return the fastest other library without approximation."""
    timed = [row for row in rows[1:] if "ratio" in row and row["exact"]]
    return min(timed, key=lambda row: row["ms"], default=None)


def sheets(rows: list[Row]) -> list[Sheet]:
    """Return the tables of one run."""
    if rows and "device" in rows[0]:
        from lloydia.bench.device.sheets import device_sheets

        return device_sheets(rows)
    makers = {
        "iterations": (_iterations, _every_peer),
        "fits": (_fits, _every_peer),
        "seeding": (_seeding,),
        "auto": (_auto,),
    }
    return [
        make(found, mode)
        for mode, several in makers.items()
        if (found := by_case(rows, mode))
        for make in several
    ]


def _iterations(cases: dict[str, list[Row]], mode: str) -> Sheet:
    heads = ("case", "Lloydia, ms", "fastest exact", "its ms", "ratio", "quartiles")
    lines = []
    for name, rows in cases.items():
        own, best = ours(rows), best_peer(rows)
        gemm = next((row for row in rows if row["peer"] == "gemm" and "ms" in row), None)
        lines.append(
            [
                *(name, milliseconds(own), *_beside(best)),
                milliseconds(gemm),
                f"{gemm['ratio']:.2f}" if gemm else "",
                f"{own['floor_ms']:.3g}",
                f"{own['ms'] / own['floor_ms']:.1f}" if "ms" in own else "",
            ]
        )
    notes = [
        "Every library computes all distances.  An iteration is the time difference of two fits "
        "over the difference of their iterations.  A ratio is the other library's time over "
        "Lloydia's: above 1, Lloydia is faster.",
        "gemm is the product X C^T alone, by BLAS.  The floor is the larger of two times: that of "
        "the operations of gemm at its best rate, and that of reading X once.",
    ]
    more = ("gemm, ms", "gemm's ratio", "floor, ms", "Lloydia / floor")
    return Sheet("One iteration", (*heads, *more), lines, notes + remarks(cases))


def _fits(cases: dict[str, list[Row]], mode: str) -> Sheet:
    heads = (
        *("case", "iterations", "Lloydia, ms", "fastest exact", "its ms", "ratio", "quartiles"),
        *("fastest approximate", "its ms", "ratio", "its inertia"),
    )
    lines = []
    for name, rows in cases.items():
        own = ours(rows)
        loose = [row for row in rows[1:] if "ratio" in row and not row["exact"]]
        other = min(loose, key=lambda row: row["ms"], default=None)
        lines.append(
            [name, str(own.get("n_iter", "")), milliseconds(own), *_beside(best_peer(rows))]
        )
        lines[-1] += (
            [
                other["peer"],
                milliseconds(other),
                f"{other['ratio']:.2f}",
                f"{other['inertia_ratio']:.4f}",
            ]
            if other
            else [""] * 4
        )
    notes = [
        "All fits begin with the same start and end by the same stop rule (tol = 1e-4).  Libraries "
        "without that rule do as many iterations as Lloydia.",
        "An approximate library skips distances that probably do not matter, and draws a start "
        "of its own.  Its inertia is relative to Lloydia's.",
    ]
    return Sheet("Whole fits", heads, lines, notes + remarks(cases))


def _every_peer(cases: dict[str, list[Row]], mode: str) -> Sheet:
    peers = list(dict.fromkeys(row["peer"] for rows in cases.values() for row in rows[1:]))
    peers.sort()
    lines = []
    for name, rows in cases.items():
        cells = {row["peer"]: _cell(row) for row in rows}
        lines.append([name, *(cells.get(peer, "") for peer in peers)])
    what = "One iteration" if mode == "iterations" else "Whole fits"
    notes = [
        "A figure is the other library's time over Lloydia's.  A star marks a single round.  A "
        "dash means that the library is not installed, or cannot run this case."
    ]
    return Sheet(f"{what} of every library", ("case", *peers), lines, notes)


def _seeding(cases: dict[str, list[Row]], mode: str) -> Sheet:
    heads = ("case", "k-means++ of", "ms", "ratio", "quartiles", "potential")
    lines = [
        [row["case"], row["peer"], *_beside(row)[1:], f"{row['inertia_ratio']:.3f}"]
        for rows in cases.values()
        for row in rows
        if "ms" in row
    ]
    notes = [
        "The potential is the inertia of the chosen centres, relative to Lloydia's.  FAISS draws "
        "one candidate per centre, the others 2 + log(k)."
    ]
    return Sheet("Seeding", heads, lines, notes + remarks(cases))


def _auto(cases: dict[str, list[Row]], mode: str) -> Sheet:
    heads = ("case", "algorithm", "ms", "ratio", "quartiles", "distances", "bytes a row")
    lines = []
    for rows in cases.values():
        timed = [row for row in rows if "ms" in row]
        best = min((row["ms"] for row in timed), default=0.0)
        for row in timed:
            auto = row is timed[0]
            name = row["peer"].removeprefix("Lloydia ")
            name += f" ({timed[0]['ms'] / best - 1:+.0%} of the best)" if auto else ""
            memory = row["memory"] / row["n"]
            share = row["n_distances"] / (row["n"] * row["k"] * (row["n_iter"] + 1))
            lines.append([row["case"], name, *_beside(row)[1:], f"{share:.1%}", f"{memory:.1f}"])
    notes = [
        "The times are of whole fits.  A ratio is the algorithm's time over that of auto.  All "
        "results are the same to the last bit.",
        "Distances are those evaluated, as a share of n k (iterations + 1).  Bytes are the largest "
        "memory that a fit allocates in addition to X, within 20 iterations.",
    ]
    return Sheet("auto compared with every algorithm", heads, lines, notes + remarks(cases))


def _beside(row: Row | None) -> list[str]:
    if row is None:
        return [""] * 4
    low, high = row["ratio_quartiles"]
    name = row["peer"] + ("" if row["same_start"] else " (own start)")
    return [name, milliseconds(row), f"{row['ratio']:.2f}", f"{low:.2f}-{high:.2f}"]


def milliseconds(row: Row | None) -> str:
    """Return a row's time, or nothing where it has none."""
    if row is None or "ms" not in row:
        return ""
    return f"{row['ms']:,.3f}" if row["ms"] < 10 else f"{row['ms']:,.1f}"


def _cell(row: Row) -> str:
    if "ratio" in row:
        return f"{row['ratio']:.2f}" + ("*" if row["rounds"] == 1 else "")
    return "-" if row["status"] in ("unsupported", "not installed") else row["status"]


def missing(rows: Iterable[Row]) -> list[str]:
    """Name the libraries that are not installed, if there are any."""
    names = dict.fromkeys(row["peer"] for row in rows if row["status"] == "not installed")
    return [f"not installed: {', '.join(names)}."] if names else []


def remarks(cases: dict[str, list[Row]]) -> list[str]:
    """Name the libraries that are not installed, give another result or fail."""
    every = [row for rows in cases.values() for row in rows]
    remarks = missing(every)
    for name, rows in cases.items():
        found = [
            f"{row['peer']} {'' if row['status'] == 'ok' else row['status'] + ': '}{row['reason']}"
            for row in rows
            if row["reason"] and row["status"] != "unsupported"
        ]
        if found:
            remarks.append(f"{name}: {'; '.join(found)}.")
    return remarks
