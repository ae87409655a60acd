"""A run as a Markdown report with pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lloydia.bench.machine import PACKAGES
from lloydia.bench.sheets import Row, best_peer, by_case, sheets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["newest", "write"]

TITLES = {
    "iterations": "One brute-force iteration",
    "fits": "A whole fit, same start and stop rule",
}
# Paul Tol's "bright" scheme, and a shape each: distinct under all common colour blindness.
LOOKS = {
    "scikit-learn-intelex": ("#66CCEE", "s"),
    "scikit-learn": ("#4477AA", "o"),
    "FAISS": ("#EE6677", "D"),
    "SuperKMeans": ("#AA3377", "P"),
    "mlpack": ("#CCBB44", "^"),
    "SciPy": ("#888888", "v"),
    "flash-kmeans": ("#EE6677", "D"),
    "PyTorch": ("#4477AA", "o"),
    "Lloydia CPU": ("#CCBB44", "^"),
}
FASTER, SLOWER = "#228833", "#BB5566"
LEAST_ROW = 0.42  # inches


def newest(path: Path) -> list[Row]:
    """Return the rows of the newest run in a file of JSON lines.

    Runs on a GPU are often of some cases or modes only: each has its newest run, in the order in
    which they were first run.

    Raises
    ------
    ValueError
        If there is none.
    """
    rows = []
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"{path} is not text: name a file of JSON lines that --save wrote."
        ) from None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            raise ValueError(f"{path}, line {number} is not JSON.") from None
    rows = [row for row in rows if isinstance(row, dict) and {"run", "mode"} <= row.keys()]
    if not rows:
        raise ValueError(f"{path} has no run of lloydia bench.")
    last: dict[object, str] = {}
    for row in rows:
        last[_part(row)] = max(row["run"], last.get(_part(row), ""))
    place = {part: i for i, part in enumerate(last)}
    found = [row for row in rows if row["run"] == last[_part(row)]]
    return sorted(found, key=lambda row: place[_part(row)])


def _part(row: Row) -> object:
    """Return what of a run is as new as any other part."""
    return (row["case"], row["mode"]) if "device" in row else None


def write(path: Path, folder: Path | None = None, *, force: bool = True) -> list[Path]:
    """Write the newest run of a file as Markdown, and a picture for each mode with peers.

    Parameters
    ----------
    path : Path
        JSON lines.
    folder : Path or None
        None: where `path` is.
    force : bool
        Whether files are replaced that Lloydia did not write.

    Returns
    -------
    list of Path
        What was written: the Markdown first.

    Raises
    ------
    DataError
        A file cannot be written, or would be replaced.
    """
    from lloydia.data.outputs import Renames, check_output, writing

    rows = newest(path)
    folder = path.parent if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    if rows[0]["mode"] == "images":
        from lloydia.bench.images.report import write_images

        return write_images(rows, folder / path.stem, force=force)
    pictures = {mode: folder / f"{path.stem}-{mode}.png" for mode in TITLES if by_case(rows, mode)}
    text = [f"# {_where(rows[0])}", "", _machine(rows), ""]
    text += [f"![{_title(mode, rows[0])}]({picture.name})\n" for mode, picture in pictures.items()]
    text += [sheet.markdown() for sheet in sheets(rows)]
    markdown = folder / f"{path.stem}.md"
    for file in (markdown, *pictures.values()):
        check_output(file, (".md", ".png"), others=[path], force=force)
    with Renames(force=force) as renames:
        with writing(markdown, renames) as to:
            to.write_text("\n".join(text), encoding="utf-8")
        for mode, picture in pictures.items():
            with writing(picture, renames) as to:
                draw(by_case(rows, mode), _title(mode, rows[0]), rows[0], to)
    return [markdown, *pictures.values()]


def _title(mode: str, row: Mapping[str, Any]) -> str:
    return "One iteration" if "device" in row and mode == "iterations" else TITLES[mode]


def _where(row: Mapping[str, Any]) -> str:
    return row.get("device") or row["cpu"]


def _machine(rows: list[Row]) -> str:
    row = max(rows, key=lambda row: row["run"])
    rates = row["rates"]
    versions = ", ".join(f"{name} {row[name]}" for name in PACKAGES if name in row)
    if "device" in row:
        runs = dict.fromkeys(sorted(row["run"] for row in rows))
        return (
            f"{', '.join(runs)}, with {row['cores']} cores of {row['cpu']}, {row['system']}.  "
            f"Copy {rates['copy_gbs']:,.0f} GB/s; products of order 8,192: "
            f"{rates['gemm_float16_tflops']:.0f} TFLOP/s in float16, "
            f"{rates['gemm_float32_tflops']:.0f} in float32, "
            f"{rates['gemm_float64_tflops']:.0f} in float64.  Python {row['python']}, {versions}."
        )
    return (
        f"{row['threads']} threads of {row['cores']} cores, {row['system']}, {row['run']}, load by "
        f"other programs {row['load']}.  Copy {rates['copy_gbs']:.0f} GB/s, read "
        f"{rates['read_gbs']:.0f} "
        f"GB/s, gemm {rates['gemm_float32_gflops']:.0f} GFLOP/s in float32, "
        f"{rates['gemm_float64_gflops']:.0f} in float64.  Python "
        f"{row['python']}, {versions}."
    )


def draw(cases: dict[str, list[Row]], title: str, facts: Mapping[str, Any], path: Path) -> None:
    """Draw each case's ratios: a bar to the fastest other exact library, a mark for every other."""
    from lloydia import plots  # says how to get matplotlib where it is missing

    compared = {name: rows for name, rows in cases.items() if any("ratio" in r for r in rows[1:])}
    # Without any peer the cases are listed all the same.
    cases = compared or cases
    figure = plots.Figure(
        figsize=(8.4, 1.9 + LEAST_ROW * len(cases)), dpi=150, layout="constrained"
    )
    ax = figure.add_subplot()
    for place, rows in enumerate(cases.values()):
        _draw_case(ax, place, rows)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, 0.7), max(high * 1.15, 3))
    every = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    ticks = [x for x in every if low <= x <= high * 1.15]
    ax.set_xticks(ticks, [f"{x:g}×" for x in ticks], minor=False)
    ax.minorticks_off()
    ax.axvline(1, color="black", linewidth=1)
    ax.set_yticks(range(len(cases)), [_label(rows[0]) for rows in cases.values()])
    ax.set_ylim(len(cases) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_xlabel("the other library's time over Lloydia's: right of 1×, Lloydia is faster")
    ax.set_title(title, loc="left", fontweight="bold", pad=22)
    note = f"{_where(facts)}, {_how(facts)}"
    ax.text(0, 1, note, transform=ax.transAxes, va="bottom", fontsize="small", color="0.4")
    _legend(figure, [row["peer"] for rows in cases.values() for row in rows if "ratio" in row])
    figure.savefig(path, format="png")


def _how(facts: Mapping[str, Any]) -> str:
    if "device" in facts:
        return "X on the device; bar: the fastest other library in X's type, hollow: float16"
    threads = "1 thread" if facts["threads"] == 1 else f"{facts['threads']} threads"
    return f"{threads}; bar: the fastest other exact library, hollow: approximate"


def _draw_case(ax: Axes, place: int, rows: list[Row]) -> None:
    best = best_peer(rows)
    if best is not None:
        ratio, hue = best["ratio"], FASTER if best["ratio"] >= 1 else SLOWER
        ax.barh(place, ratio - 1, left=1, height=0.62, color=hue, alpha=0.22, linewidth=0)
        ax.annotate(
            f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}",
            (ratio, place - 0.31),
            fontsize="small",
            fontweight="bold",
            color=hue,
            ha="center",
            va="bottom",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )
    for row in rows[1:]:
        if "ratio" not in row:
            continue
        if row["peer"] == "gemm":
            ax.plot(row["ratio"], place, "|", color="black", markersize=15, markeredgewidth=1.6)
            continue
        color, marker = LOOKS.get(_family(row["peer"]), ("black", "x"))
        size = 8 if row is best else 5.5
        (mark,) = ax.plot(row["ratio"], place, marker, color=color, markersize=size, zorder=3)
        mark.set_markerfacecolor(color if row["exact"] else "white")


def _family(peer: str) -> str:
    return next((name for name in LOOKS if peer == name or peer.startswith(f"{name} ")), "")


def _label(row: Row) -> str:
    batch = f"{row['batch']} × " if row.get("batch", 1) > 1 else ""
    shape = f"{batch}{_short(row['n'])} × {row['d']}, k = {row['k']}"
    kind = "" if row["kind"] == "mixture" else f"{row['kind']}: "
    return f"{kind}{shape}" + (", f64" if row["dtype"] == "float64" else "")


def _short(n: int) -> str:
    if n % 100_000 == 0 and n >= 1_000_000:
        return f"{n / 1e6:g}M"
    return f"{n / 1e3:.0f}k" if n >= 10_000 else f"{n:,}"


def _legend(figure: Figure, peers: list[str]) -> None:
    from matplotlib.lines import Line2D

    families = {_family(peer) for peer in peers}
    handles = [
        Line2D([], [], color=color, marker=marker, linestyle="", label=name)
        for name, (color, marker) in LOOKS.items()
        if name in families
    ]
    if "gemm" in peers:
        handles.append(
            Line2D([], [], color="black", marker="|", linestyle="", markersize=12, label="gemm")
        )
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=max(1, len(handles)),
        frameon=False,
        fontsize="small",
        handletextpad=0.2,
        columnspacing=1.1,
    )
