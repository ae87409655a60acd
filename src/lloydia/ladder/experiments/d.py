"""D: photographs' colours, on one thread, with OpenMP, by atomics and by unrolled reductions.

The pixels of two photographs (scikit-learn's china and flower), side by side, are repeated up to
the size wanted, or thinned out evenly down to it.  They are given as float32.

Iterations are fixed, and nobody's data is done after the same number of them: gains are those of
the time an iteration.  Beside a GPU the processor's one thread does `SHORT` iterations only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.figures import blank, color, excuses, name, seconds, speedup
from lloydia.ladder.experiments.lab import Lab
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["TITLE", "draw", "pixels", "run", "sheets"]

TITLE = "D: OpenMP, atomics and unrolled reductions on photographs"
SIZES, FEW_COLORS, ITERATIONS, SHORT = (100_000, 1_000_000, 2_000_000, 10_000_000), (2, 7), 200, 10
ONE, TEAM, ATOMICS, TREES = "r01_lloyd", "r04_threaded_lloyd", "r12_atomics", "r23_unrolled"
THEIRS = {  # seconds of 200 iterations
    (10_000_000, 2): {ONE: 74.0, TEAM: 67.0, ATOMICS: 3.9, TREES: 0.67},
    (10_000_000, 7): {ONE: 177.0, TEAM: 85.0, ATOMICS: 3.7, TREES: 1.9},
}
CROSSING = (2_000_000, range(1, 28), 50)  # pixels, k, iterations: atomics against reductions
TEAMED = (10_000_000, (2, 5, 10, 20, 30, 40, 50), 12)  # one thread against OpenMP
THEIR_TEAM = {2: 1.8, 50: 4.7}  # the source's speed-up by OpenMP


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure the sizes, the crossing where there is a GPU, and the team where there is none."""
    one = lab.contenders(hosts=(ONE,))
    rest = lab.contenders(
        cpu=(TEAM, "r30_engine_cpu"),
        cuda=(ATOMICS, TREES, "r31_engine_cuda"),
        hosts=("scikit-learn lloyd",),
    )
    for n, k in dict.fromkeys(lab.size(n, k) for n in SIZES for k in FEW_COLORS):
        theirs = THEIRS.get((n, k), {})
        long = _trial(lab, "sizes", n, k, ITERATIONS)
        alone = long if lab.cpu else _trial(lab, "sizes", n, k, SHORT)
        yield from lab.measure(alone, one, theirs=theirs if lab.cpu else {})
        yield from lab.measure(long, rest, theirs=theirs)
    if lab.cuda:
        yield from _series(lab, "clusters", *CROSSING, (ATOMICS, TREES, "r31_engine_cuda"))
    if lab.cpu:
        yield from _series(lab, "OpenMP", *TEAMED, (ONE, TEAM, "r30_engine_cpu"))


def _series(
    lab: Lab, part: str, n: int, several: Sequence[int], most: int, names: Sequence[str]
) -> Iterator[Measurement]:
    contenders = lab.contenders(hosts=names)
    for size in dict.fromkeys(lab.size(n, k) for k in several):
        yield from lab.measure(_trial(lab, part, *size, most), contenders, repeat=1)


def _trial(lab: Lab, part: str, n: int, k: int, most: int) -> Trial:
    return Trial("D", part, pixels(n), colors(k), None, lab.iterations(most))


@cache
def photographs() -> NDArray[np.uint8]:
    """Return the pixels of both photographs, row by row of the two side by side: shape (m, 3)."""
    from sklearn.datasets import load_sample_image

    both = [load_sample_image(f"{called}.jpg") for called in ("china", "flower")]
    return np.hstack(both).reshape(-1, 3)


def pixels(n: int) -> NDArray[np.float32]:
    """Return as many pixels: shape (n, 3), from 0 to 255."""
    photo = photographs()
    if n <= len(photo):
        return photo[np.linspace(0, len(photo), n, endpoint=False).astype(int)].astype(np.float32)
    return np.resize(photo, (n, 3)).astype(np.float32)


@cache
def palette() -> NDArray[np.uint8]:
    """Return the different colours of the photographs: shape (c, 3)."""
    return np.unique(photographs(), axis=0)


def colors(k: int) -> NDArray[np.float32]:
    """Return k different colours to start from: shape (k, 3)."""
    every = palette()
    return every[np.random.default_rng(1).choice(len(every), k, replace=False)].astype(np.float32)


def sheets(found: Sequence[Measurement]) -> list[Sheet]:
    """Return a table of iterations' times for each k, and one for each series of k."""
    tables = [
        _by_size(k, [each for each in found if (each.part, each.k) == ("sizes", k)])
        for k in sorted({each.k for each in found if each.part == "sizes"})
    ]
    for part, base in (("clusters", ATOMICS), ("OpenMP", ONE)):
        if some := pick(found, part=part):
            tables.append(_by_clusters(f"{some[0].n:,} pixels, {part}", some, base))
    return tables


def _by_size(k: int, found: Sequence[Measurement]) -> Sheet:
    """Return a line a contender: the time of an iteration by size, and the gain at the largest."""
    timed, sizes = pick(found), sorted({each.n for each in found})
    base = {each.n: each.per_iteration for each in pick(found, rung=ONE)}
    source = THEIRS.get((sizes[-1], k), {})
    rows = []
    for called in dict.fromkeys(name(each) for each in timed):
        own = {each.n: each for each in timed if name(each) == called}
        last = own.get(sizes[-1])
        theirs = source.get(last.rung) if last else None
        gain = base[sizes[-1]] / last.per_iteration if last and sizes[-1] in base else None
        rows.append(
            [
                called,
                *(seconds(own[n].per_iteration if n in own else None) for n in sizes),
                speedup(gain),
                f"{seconds(last.seconds)}, {last.n_iter}" if last else "",
                seconds(theirs / ITERATIONS if theirs else None),
                speedup(source[ONE] / theirs if theirs else None),
            ]
        )
    heads = ["", *(f"{n:,} pixels" for n in sizes), "gain", "whole run, iterations"]
    heads += ["source: an iteration", "gain"]
    return Sheet(f"k = {k}: an iteration", heads, rows, excuses(found))


def _by_clusters(title: str, found: Sequence[Measurement], base: str) -> Sheet:
    """Return a line for each k: everyone's time an iteration, and the gain over the base."""
    everyone = list(dict.fromkeys(name(each) for each in found))
    rows = []
    for k in sorted({each.k for each in found}):
        own = {name(each): each.per_iteration for each in found if each.k == k}
        first = next(
            (each.per_iteration for each in found if (each.k, each.rung) == (k, base)), None
        )
        times = [seconds(own.get(called)) for called in everyone]
        gains = [speedup(first / own[each]) if first and each in own else "" for each in everyone]
        rows.append([str(k), *(cell for pair in zip(times, gains) for cell in pair)])
    heads = ["k", *(cell for called in everyone for cell in (called, "gain"))]
    return Sheet(title + ": an iteration", heads, rows)


def draw(found: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw an iteration's time by size, the crossing by k, and the speed-up by OpenMP."""
    figures = {"sizes": _sizes(pick(found, part="sizes"))}
    if some := pick(found, part="clusters"):
        figures["clusters"] = _crossing(some)
    if some := pick(found, part="OpenMP"):
        figures["openmp"] = _team(some)
    return figures


def _sizes(found: Sequence[Measurement]) -> Figure:
    several = sorted({each.k for each in found})
    figure, axes = blank("An iteration", "diamonds: the source's own", columns=len(several))
    for ax, k in zip(axes, several):
        _curves(ax, [each for each in found if each.k == k], "n")
        for each in pick(found, k=k):
            if each.theirs:
                theirs = each.theirs / ITERATIONS
                ax.plot(each.n, theirs, "D", color=hue(each), markerfacecolor="white")
        ax.set_xscale("log")
        ax.set_xlabel("pixels")
        ax.set_title(f"k = {k}", loc="left")
    limits = [limit for ax in axes for limit in ax.get_ylim()]
    for ax in axes:
        ax.set_ylim(min(limits), max(limits))
    axes[0].set_ylabel("seconds")
    return _legended(figure, axes[0])


def _crossing(found: Sequence[Measurement]) -> Figure:
    note = f"{found[0].n:,} pixels; the source's cross near k = 12"
    figure, (ax,) = blank("Atomics against reductions: an iteration", note)
    _curves(ax, found, "k")
    ax.set_xlabel("clusters")
    ax.set_ylabel("seconds")
    return _legended(figure, ax)


def _team(found: Sequence[Measurement]) -> Figure:
    figure, (ax,) = blank("Speed-up over one thread", f"{found[0].n:,} pixels")
    one = {each.k: each.per_iteration for each in pick(found, rung=ONE)}
    for called in dict.fromkeys(name(each) for each in pick(found, rung=TEAM)):
        some = [each for each in found if name(each) == called and each.k in one]
        gains = [one[each.k] / each.per_iteration for each in some]
        ax.plot([each.k for each in some], gains, "o-", color=color(some[0]), label=called)
    ax.plot(*zip(*THEIR_TEAM.items()), "D", color="black", markerfacecolor="white", label="source")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("clusters")
    ax.grid(color="0.9", linewidth=0.8)
    return _legended(figure, ax)


def hue(found: Measurement) -> str:
    """Return a contender's hue: reductions have another than atomics."""
    from lloydia.plots import BRIGHT

    return BRIGHT[5] if found.rung == TREES else color(found)


def _curves(ax: Axes, found: Sequence[Measurement], across: str) -> None:
    """Draw the time of an iteration, a line a contender."""
    styles = {ONE: "o-", TEAM: "o--", ATOMICS: "o-", TREES: "o--"}
    for called in dict.fromkeys(name(each) for each in found):
        some = sorted(
            (each for each in found if name(each) == called), key=lambda each: getattr(each, across)
        )
        x, y = [getattr(each, across) for each in some], [each.per_iteration for each in some]
        style = styles.get(some[0].rung, "o-")
        ax.plot(x, y, style, color=hue(some[0]), markersize=4, label=called)
    ax.set_yscale("log")
    ax.grid(color="0.9", linewidth=0.8)


def _legended(figure: Figure, ax: Axes) -> Figure:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure
