"""The tables and the figure of a run: what each contender takes, and how near it comes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, median
from typing import Any

from lloydia.bench.sheets import Sheet, missing

__all__ = ["draw", "image_sheets", "write_images"]

Row = dict[str, Any]

# Paul Tol's "bright" and "muted" schemes, and a shape each.
LOOKS = {
    "Lloydia": ("#228833", "o"),
    "Lloydia, Oklab": ("#228833", "s"),
    "Pillow median cut": ("#CCBB44", "^"),
    "Pillow octree": ("#CCBB44", "v"),
    "Pillow k-means": ("#CCBB44", "D"),
    "scikit-learn example": ("#4477AA", "P"),
    "OpenCV kmeans": ("#EE6677", "X"),
    "libimagequant": ("#AA3377", "*"),
}


def image_sheets(rows: Iterable[Row]) -> list[Sheet]:
    """Return a table over all photographs, and one of each photograph."""
    every = list(rows)
    rows = _installed(every)
    sizes = sorted({row["k"] for row in rows})
    cases = list(dict.fromkeys(row["case"] for row in rows))
    heads = ["", *(f"k = {k}" for k in sizes)]
    peers = list(dict.fromkeys(row["peer"] for row in rows))
    whole = [[peer, *(_mean(_of(rows, peer=peer, k=k)) for k in sizes)] for peer in peers]
    first = rows[0]
    notes = [
        "PSNR in dB and SSIM are means over the photographs; times are medians.",
        f"All libraries use {first['threads']} thread{'s' * (first['threads'] > 1)} and no "
        "dithering.  The pixels are in memory.",
        *sorted({f"{r['case']}: {r['peer']}: {r['reason']}." for r in rows if r["reason"]}),
        *missing(every),
    ]
    found = [
        Sheet(
            f"{len(cases)} photograph{'s' * (len(cases) > 1)}: PSNR, SSIM, time",
            heads,
            whole,
            notes,
        )
    ]
    for case in cases:
        some = _of(rows, case=case)
        title = "{case}: {width} x {height}, {n_colors:,} colours".format(**some[0])
        lines = [[peer, *(_mean(_of(some, peer=peer, k=k)) for k in sizes)] for peer in peers]
        found.append(Sheet(title, heads, lines))
    return found


def _installed(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of contenders that are installed."""
    return [row for row in rows if row["status"] != "not installed"]


def _of(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _mean(rows: list[Row]) -> str:
    """Return means of what has a result; a contender without any has none."""
    sound = [row for row in rows if row["status"] == "ok"]
    if not sound:
        return "differs" if rows else ""
    decibels, likeness = fmean(r["psnr"] for r in sound), fmean(r["ssim"] for r in sound)
    return f"{decibels:.2f}, {likeness:.3f}, {_ms(median(r['ms'] for r in sound))}"


def _ms(value: float) -> str:
    return f"{value:.1f} ms" if value < 100 else f"{value:,.0f} ms"


def write_images(rows: list[Row], stem: Path, *, force: bool = True) -> list[Path]:
    """Write a run as Markdown with a figure; return their paths.

    Parameters
    ----------
    rows : list of dict
    stem : Path
        Both names without their extensions.
    force : bool
        Whether files are replaced that Lloydia did not write.

    Raises
    ------
    DataError
        A file cannot be written, or would be replaced.
    """
    from lloydia.data.outputs import Renames, check_output, writing

    markdown, picture = stem.with_suffix(".md"), stem.with_suffix(".png")
    for file in (markdown, picture):
        check_output(file, (".md", ".png"), force=force)
    first = rows[0]
    there = _installed(rows)
    versions = ", ".join(dict.fromkeys(f"{_library(row)} {row['version']}" for row in there))
    text = [
        f"# Colour quantisation: {first['cpu']}",
        "",
        f"{first['run']}, load by other programs {first['load']}.  "
        f"Python {first['python']}, {versions}.",
        "",
        f"![Time and PSNR]({picture.name})",
        "",
        *(sheet.markdown() for sheet in image_sheets(rows)),
    ]
    with Renames(force=force) as renames:
        with writing(markdown, renames) as to:
            to.write_text("\n".join(text), encoding="utf-8")
        with writing(picture, renames) as to:
            draw(rows, to)
    return [markdown, picture]


def _library(row: Row) -> str:
    return row["peer"].split(",")[0].split(" ")[0]


def draw(rows: Iterable[Row], path: Path) -> None:
    """Draw time against PSNR, a panel for each k; a mark is a contender over all photographs."""
    from lloydia import plots  # says how to get matplotlib where it is missing

    rows = [row for row in rows if row["status"] == "ok"]
    sizes = sorted({row["k"] for row in rows})
    figure = plots.Figure(figsize=(2.7 * len(sizes) + 0.4, 3.9), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(sizes), squeeze=False)[0]
    marks = {}
    for ax, k in zip(panels, sizes):
        for peer, (color, marker) in LOOKS.items():
            if some := _of(rows, k=k, peer=peer):
                at = median(row["ms"] for row in some), fmean(row["psnr"] for row in some)
                face = "white" if "," in peer else color
                (marks[peer],) = ax.plot(
                    *at, marker, color=color, markersize=9, markerfacecolor=face, linestyle=""
                )
        ax.set_xscale("log")
        ax.set_title(f"k = {k}", loc="left", fontweight="bold")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.set_xlabel("ms")
    panels[0].set_ylabel("PSNR, dB")
    figure.legend(
        handles=list(marks.values()),
        labels=list(marks),
        loc="outside lower center",
        ncols=min(2 * len(sizes), len(marks)),
        frameon=False,
        fontsize="small",
    )
    figure.savefig(path, format="png")
