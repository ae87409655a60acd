"""T: Lloyd, Elkan and Hamerly on one thread, on threads, in global and in shared memory.

Time against n in both precisions, from random points of 32 overlapping blobs in the plane until no
point changes its cluster, beside scikit-learn from the same start.  What the thesis concludes from
its own is compared in :mod:`findings`; its study of seedings is in :mod:`seedings`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments import seedings
from lloydia.ladder.experiments.figures import blank, excuses, lines, name, ordered, seconds
from lloydia.ladder.experiments.lab import ENGINES, PEERS, Lab, blobs
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import Trial
from lloydia.stopping import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BLOCKS", "SERIES", "TITLE", "draw", "run", "sheets"]

TITLE = "T: bounds, threads, trees, shared chunks"
SERIES, K, MOST = (1_000, 10_000, 100_000, 1_000_000), 32, 100_000
BLOCKS = (64, 256, 1024)
SOLVERS = ("lloyd", "elkan", "hamerly")
SEQUENTIAL = ("r01_lloyd", "r02_elkan", "r03_hamerly")
THREADED = ("r04_threaded_lloyd", "r05_threaded_elkan", "r06_threaded_hamerly")
GLOBAL = ("r16_tree_lloyd", "r17_tree_elkan", "r18_tree_hamerly")
SHARED = ("r19_chunked_lloyd", "r20_chunked_elkan", "r21_chunked_hamerly")


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure the series in both precisions, then the scores of both seedings."""
    contenders = lab.contenders(
        cpu=(*SEQUENTIAL, *THREADED, "r30_engine_cpu"),
        cuda=(*GLOBAL, *SHARED, "r31_engine_cuda"),
        hosts=PEERS,
        blocks=BLOCKS,
    )
    for source in SERIES:
        n, k = lab.size(source, K)
        rows = np.random.default_rng(1).choice(n, k, replace=False)
        for dtype in ("float64", "float32"):
            X = blobs(n, k, dtype)
            trial = Trial("T", "series", X, X[rows], Labels(), lab.iterations(MOST))
            yield from lab.measure(trial, contenders)
    if lab.cpu:
        yield from seedings.run(lab)


def sheets(found: Sequence[Measurement]) -> list[Sheet]:
    """Return a table of times for each precision, and one of scores."""
    tables = []
    for dtype in ("float64", "float32"):
        every = [each for each in found if (each.part, each.dtype) == ("series", dtype)]
        if every:
            tables.append(_times(dtype, every))
    if scores := pick(found, part="scores"):
        tables.append(seedings.sheet(scores))
    return tables


def _times(dtype: str, found: Sequence[Measurement]) -> Sheet:
    """Return a line a contender, a column an n."""
    sizes = sorted({each.n for each in found})
    rows: dict[str, dict[int, Measurement]] = {}
    for each in ordered(pick(found)):
        rows.setdefault(name(each), {})[each.n] = each
    table = [
        [called, *(seconds(row[n].seconds) if n in row else "" for n in sizes)]
        for called, row in rows.items()
    ]
    title = f"{dtype}, to convergence"
    return Sheet(title, ["", *(f"n = {n:,}" for n in sizes)], table, excuses(found))


def draw(found: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw time against n, for each precision, and the scores."""
    figures = {}
    for dtype in ("float64", "float32"):
        series = pick(found, part="series", dtype=dtype)
        if pick(series, rung=SEQUENTIAL):
            figures[f"threads-{dtype}"] = _threads(dtype, series)
        if pick(series, rung=GLOBAL):
            figures[f"blocks-{dtype}"] = _blocks(dtype, series)
    if scores := pick(found, part="scores"):
        figures["scores"] = seedings.draw(scores)
    return figures


def _threads(dtype: str, series: Sequence[Measurement]) -> Figure:
    teams = sorted({each.threads or 1 for each in pick(series, rung=THREADED)})
    figure, axes = blank(f"Time to convergence, {dtype}", f"k = {K}", columns=1 + len(teams))
    _draw_kinds(axes[0], series, {SEQUENTIAL: {}})
    axes[0].set_title("one thread", loc="left")
    for ax, team in zip(axes[1:], teams):
        _draw_kinds(ax, series, {THREADED: {"threads": team}})
        ax.set_title(f"{team} thread{'s' * (team > 1)}, OpenMP", loc="left")
    return _legended(figure, axes)


def _blocks(dtype: str, series: Sequence[Measurement]) -> Figure:
    sizes = sorted({each.block or 0 for each in pick(series, rung=GLOBAL)})
    note = f"k = {K}; solid: global memory, dashed: shared"
    figure, axes = blank(f"Time to convergence, {dtype}", note, columns=len(sizes))
    for ax, block in zip(axes, sizes):
        _draw_kinds(ax, series, {GLOBAL: {"block": block}, SHARED: {"block": block}})
        ax.set_title(f"blocks of {block}", loc="left")
    return _legended(figure, axes)


def _draw_kinds(
    ax: Axes, series: Sequence[Measurement], kinds: dict[tuple[str, ...], dict]
) -> None:
    """Draw a line a solver and kind, and scikit-learn and Lloydia beside."""
    from lloydia.plots import BRIGHT

    several, looks = {}, {}
    for kind, wanted in kinds.items():
        for solver, rung, hue in zip(SOLVERS, kind, BRIGHT):
            label = f"{solver}, shared" if kind is SHARED else solver
            several[label] = pick(series, rung=rung, **wanted)
            looks[label] = {"color": hue, "marker": "o", "markersize": 4}
            looks[label]["linestyle"] = "--" if kind is SHARED else "-"
    for peer, style in zip(PEERS, (":", "-.")):
        several[peer] = pick(series, rung=peer)
        looks[peer] = {"color": "0.45", "linestyle": style}
    several["Lloydia"] = pick(series, rung=tuple(ENGINES))
    looks["Lloydia"] = {"color": "black", "linewidth": 2.2}
    lines(ax, {label: some for label, some in several.items() if some}, looks)


def _legended(figure: Figure, axes: Sequence[Axes]) -> Figure:
    low = min(ax.get_ylim()[0] for ax in axes)
    high = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, high)
    handles, labels = axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    return figure
