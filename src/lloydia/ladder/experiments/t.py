"""T: Lloyd, Elkan and Hamerly on one thread, on threads, in global and in shared memory.

Time against n in both precisions, from farthest-first centres in 1,200 overlapping blobs of the
plane until no point changes its cluster, beside scikit-learn from the same start; every result must
equal the oracle's to the end.  The thesis names neither n nor k: 1,200 centres are at least two
chunks in every block size, and its launches take 65,535 points at most.  What it concludes from its
times is compared in :mod:`findings`; its study of seedings is in :mod:`seedings`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lloydia.backends.cpu.runtime.pool import available_threads
from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments import seedings
from lloydia.ladder.experiments.figures import blank, excuses, lines, name, ordered, seconds
from lloydia.ladder.experiments.lab import ENGINES, PEERS, Lab, blobs
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import TOLERANCE, Trial
from lloydia.ladder.farthest import farthest_first
from lloydia.stopping import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BLOCKS", "SERIES", "TITLE", "draw", "equal_to_the_end", "run", "sheets"]

TITLE = "T: bounds, threads, trees, shared chunks"
SERIES, K, MOST = (3_000, 10_000, 20_000, 40_000), 1_200, 100_000
BLOCKS = (64, 256, 1024)
TEAMS = (4, 8, 12)  # the thesis's numbers of threads
SOLVERS = ("lloyd", "elkan", "hamerly")
SEQUENTIAL = ("r53_scanning_means", "r41_scanning_elkan", "r42_scanning_hamerly")
THREADED = (
    "r43_threaded_scanning_lloyd",
    "r44_threaded_scanning_elkan",
    "r45_threaded_scanning_hamerly",
)
# The same with means in one pass over the points.
ONE_PASS = ("r01_lloyd", "r02_elkan", "r03_hamerly")
THREADED_ONE_PASS = ("r04_threaded_lloyd", "r05_threaded_elkan", "r06_threaded_hamerly")
GLOBAL = ("r16_tree_lloyd", "r17_tree_elkan", "r18_tree_hamerly")
SHARED = ("r19_chunked_lloyd", "r20_chunked_elkan", "r21_chunked_hamerly")
Kinds = dict[tuple[str, ...], dict[str, int]]  # three rungs, and which of their measurements
ENDS = [
    "The exact run is Lloydia's. A run that rounds differently parts from it where a point is as"
    " near to two centres as its rounding errors. A run that was traced has all labels of the exact"
    " one before that iteration, and in it only those of such points differ. Longer runs in float32"
    " are not traced; their inertia is within 2 % too.",
]


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure the series in both precisions, then the scores of both seedings."""
    contenders = lab.contenders(
        cpu=(*SEQUENTIAL, *THREADED, "r30_engine_cpu"),
        cuda=(*GLOBAL, *SHARED, "r31_engine_cuda"),
        hosts=PEERS,
        blocks=BLOCKS,
    )
    contenders += lab.contenders(
        cpu=(*ONE_PASS, *THREADED_ONE_PASS), threads=(available_threads(),)
    )
    for n, k in dict.fromkeys(lab.size(n, K) for n in SERIES):
        for dtype in ("float64", "float32"):
            X = blobs(n, k, dtype)
            start = X[farthest_first(X, 0, k)]
            most = lab.iterations(MOST)
            trial = Trial("T", "series", X, start, Labels(), most, whole=True)
            yield from lab.measure(trial, contenders)
    yield from seedings.timed(lab, blobs(n, k, "float64"), k)
    if lab.cpu:
        yield from seedings.run(lab)


def sheets(found: Sequence[Measurement]) -> list[Sheet]:
    """Return a table of times for each precision, and one of scores."""
    tables = []
    for dtype in ("float64", "float32"):
        every = [each for each in found if (each.part, each.dtype) == ("series", dtype)]
        if every:
            tables.append(_times(dtype, every))
    if series := [each for each in found if each.part == "series"]:
        tables.append(_ends(series))
    if seeded := pick(found, part="seeding"):
        tables.append(seedings.times(seeded))
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


def equal_to_the_end(found: Measurement) -> bool:
    """Return whether a whole run has the labels and the centres of the exact one."""
    apart, relabelled = found.figures["apart"], found.figures["relabelled"]
    return not relabelled and apart <= TOLERANCE[found.dtype]


def _judged(found: Measurement) -> bool:
    """Return whether a run was compared with the exact one, to the end or until it was wrong."""
    return "apart" in found.figures or found.status == "differs"


def _ends(found: Sequence[Measurement]) -> Sheet:
    """Return how many whole runs equal the oracle's, and how the others differ; a line a type."""
    lines = []
    for dtype in dict.fromkeys(each.dtype for each in found):
        runs = [each for each in found if each.dtype == dtype and _judged(each)]
        tolerance = TOLERANCE[dtype]
        equal = [each for each in runs if "apart" in each.figures and equal_to_the_end(each)]
        others = [each for each in runs if each not in equal]
        wrong = [each for each in others if each.status != "ok"]
        parted = [each for each in others if "parted" in each.figures]
        rest = len(others) - len(wrong) - len(parted)
        ties = (
            f" (by {max((each.figures['ties'] for each in parted), default=0):,.0f} points at most)"
        )
        lines.append(
            [
                f"{dtype}, within {tolerance:.0e}",
                *(str(len(some)) for some in (runs, equal)),
                f"{len(parted)}{ties if parted else ''}",
                str(rest),
                str(len(wrong)),
            ]
        )
    heads = ["", "runs", "equal to the end", "parted at a tie", "parted, not traced", "wrong"]
    return Sheet("Whole runs compared with the exact one", heads, lines, ENDS)


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
    teams = [team for team in teams if team in TEAMS] or teams[-3:]
    note = f"OpenMP; {_clusters(series)}; means by scans, as in the thesis"
    figure, axes = blank(f"Time to convergence, {dtype}", note, columns=1 + len(teams))
    engine = "r30_engine_cpu"
    _draw_kinds(axes[0], series, {SEQUENTIAL: {}}, engine)
    axes[0].set_title("one thread", loc="left")
    for ax, team in zip(axes[1:], teams):
        _draw_kinds(ax, series, {THREADED: {"threads": team}}, engine)
        ax.set_title(f"{team} thread{'s' * (team > 1)}", loc="left")
    return _legended(figure, axes)


def _blocks(dtype: str, series: Sequence[Measurement]) -> Figure:
    sizes = sorted({each.block or 0 for each in pick(series, rung=GLOBAL)})
    note = f"{_clusters(series)}; solid: global memory, dashed: shared"
    figure, axes = blank(f"Time to convergence, {dtype}", note, columns=len(sizes))
    for ax, block in zip(axes, sizes):
        kinds: Kinds = {GLOBAL: {"block": block}, SHARED: {"block": block}}
        _draw_kinds(ax, series, kinds, "r31_engine_cuda")
        ax.set_title(f"blocks of {block}", loc="left")
    return _legended(figure, axes)


def _clusters(series: Sequence[Measurement]) -> str:
    """Return the number of clusters, or the range of them in a scaled run."""
    counts = sorted({each.k for each in series})
    return f"k = {counts[0]:,}" + (f" to {counts[-1]:,}" if len(counts) > 1 else "")


def _draw_kinds(ax: Axes, series: Sequence[Measurement], kinds: Kinds, engine: str) -> None:
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
    several[ENGINES[engine]] = pick(series, rung=engine)
    looks[ENGINES[engine]] = {"color": "black", "linewidth": 2.2}
    lines(ax, {label: some for label, some in several.items() if some}, looks)


def _legended(figure: Figure, axes: Sequence[Axes]) -> Figure:
    low = min(ax.get_ylim()[0] for ax in axes)
    high = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, high)
    handles, labels = axes[-1].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=6 if len(labels) == 6 else 5,
        frameon=False,
    )
    return figure
