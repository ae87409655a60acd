"""D's figures, with the document's figures as diamonds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lloydia.ladder.experiments.d.runs import (
    ARRAYS,
    ATOMICS,
    CLUSTERS,
    EXACT,
    ITERATIONS,
    ONE,
    POPULATED,
    TEAM,
    TEAMED,
    TREES,
)
from lloydia.ladder.experiments.d.sheets import their_gains, whole
from lloydia.ladder.experiments.figures import blank, color, name, ordered, seconds
from lloydia.ladder.experiments.measurement import Measurement, pick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

Found = Sequence[Measurement]
TIMES, GAINS = "diamonds: the document's times", "diamonds: the document's gains"
QUOTIENTS = "diamonds: quotients of the document's times"


def draw(found: Found) -> dict[str, Figure]:
    """Draw times and gains by size, the series of k on a GPU, and that on threads."""
    figures = {}
    if some := pick(found, part="sizes"):
        figures["sizes"] = _sizes(some, "time")
        if pick(some, rung=ONE):
            figures["gains"] = _sizes(some, "gain")
    if some := pick(found, part="clusters"):
        figures["clusters"] = _clusters(some)
    if some := pick(found, part="OpenMP"):
        figures["openmp"] = _team(some)
    return figures


def _sizes(found: Found, what: str) -> Figure:
    """Draw the time of the document's iterations by size, or the gain over one thread."""
    several = sorted({each.k for each in found})
    title, note = {
        "time": (f"{ITERATIONS} iterations", TIMES),
        "gain": ("Gain over one thread", QUOTIENTS),
    }[what]
    figure, axes = blank(title, note, columns=len(several))
    for ax, k in zip(axes, several):
        some = pick(found, k=k)
        one = {each.n: each for each in pick(some, rung=ONE)}
        ax.set_xscale("log")
        ax.set_yscale("log")
        if what == "time":
            _curves(ax, some, "n", lambda each: whole(each, ITERATIONS), lambda each: each.theirs)
            ax.yaxis.set_major_formatter(lambda value, _: seconds(value, digits=0))
        else:
            others = [each for each in some if each.rung != ONE and each.n in one]

            def gain(each: Measurement, one: Mapping[int, Measurement] = one) -> float:
                return whole(one[each.n], ITERATIONS) / whole(each, ITERATIONS)

            def theirs(each: Measurement, one: Mapping[int, Measurement] = one) -> float | None:
                of = one[each.n].theirs
                return of / each.theirs if of and each.theirs else None

            _curves(ax, others, "n", gain, theirs)
            ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}x")
        ax.set_xlabel("pixels")
        ax.set_title(f"k = {k}", loc="left")
    limits = [limit for ax in axes for limit in ax.get_ylim()]
    for ax in axes:
        ax.set_ylim(min(limits), max(limits))
    return _legended(figure, axes[0])


def _clusters(found: Found) -> Figure:
    """Draw the times of a run by k, and the gains over atomic additions."""
    _, _, iterations = CLUSTERS
    note = f"{found[0].n:,} pixels, {iterations} iterations; {GAINS}"
    figure, (left, right) = blank("Reductions against atomics", note, columns=2)
    for ax in (left, right):
        ax.set_yscale("log")
    _curves(left, found, "k", lambda each: whole(each, iterations), lambda each: None)
    left.yaxis.set_major_formatter(lambda value, _: seconds(value, digits=0))
    left.set_title("time", loc="left", fontsize="medium")
    base = {each.k: each for each in pick(found, rung=ATOMICS)}
    table = their_gains("table 2") if found[0].scale == 1 else {}
    others = [each for each in found if each.rung != ATOMICS and each.k in base]
    _curves(
        right,
        others,
        "k",
        lambda each: whole(base[each.k], iterations) / whole(each, iterations),
        lambda each: table.get(each.k) if each.rung == ARRAYS else None,
    )
    right.axhline(1, color="black", linewidth=0.8)
    right.yaxis.set_major_formatter(lambda value, _: f"{value:,g}x")
    right.set_title("gain over atomics", loc="left", fontsize="medium")
    for ax in (left, right):
        ax.set_xlabel("clusters")
    return _legended(figure, left)


def _team(found: Found) -> Figure:
    """Draw the times of one thread and of OpenMP by k, and the gain."""
    _, _, iterations = TEAMED
    note = f"{found[0].n:,} pixels, {iterations} iterations; {TIMES}, right their quotients"
    figure, (left, right) = blank("One thread and OpenMP", note, columns=2)
    _curves(left, found, "k", lambda each: whole(each, iterations), lambda each: each.theirs)
    left.yaxis.set_major_formatter(lambda value, _: seconds(value, digits=0) if value else "0")
    left.set_title("time", loc="left", fontsize="medium")
    one = {each.k: each for each in pick(found, rung=ONE)}

    def theirs(each: Measurement) -> float | None:
        of = one[each.k].theirs
        return of / each.theirs if of and each.theirs else None

    _curves(
        right,
        [each for each in pick(found, rung=TEAM) if each.k in one],
        "k",
        lambda each: whole(one[each.k], iterations) / whole(each, iterations),
        theirs,
    )
    right.yaxis.set_major_formatter(lambda value, _: f"{value:,g}x")
    right.set_title("gain by OpenMP", loc="left", fontsize="medium")
    for ax in (left, right):
        ax.set_ylim(bottom=0)
        ax.set_xlabel("clusters")
    return _legended(figure, left)


def _hue(found: Measurement) -> tuple[str, str]:
    """Return the hue and the line of a contender: versions of one kind differ in them."""
    from lloydia.plots import BRIGHT

    blue, red, _, _, cyan, purple, grey = BRIGHT
    own = {
        ONE: (blue, "-"),
        TEAM: (cyan, "-"),
        ATOMICS: (red, "-"),
        EXACT: (red, "--"),
        ARRAYS: (purple, "-"),
        POPULATED: (purple, "--"),
        TREES: (grey, "-"),
    }
    kind = grey if found.where == "cuda" else blue
    return own.get(found.rung, (color(found) if found.rung[:2] != "r5" else kind, "--"))


def _curves(
    ax: Axes,
    found: Found,
    across: str,
    value: Callable[[Measurement], float],
    theirs: Callable[[Measurement], float | None],
) -> None:
    """Draw a line a contender, and the document's figures for it."""
    for called in dict.fromkeys(name(each) for each in ordered(found)):
        some = sorted(
            (each for each in found if name(each) == called), key=lambda each: getattr(each, across)
        )
        hue, line = _hue(some[0])
        x = [getattr(each, across) for each in some]
        y = [value(each) for each in some]
        ax.plot(x, y, color=hue, linestyle=line, marker="o", markersize=3.5, label=called)
        known = [(at, told) for at, told in zip(x, map(theirs, some)) if told]
        if known:
            x, y = map(list, zip(*known))
            ax.plot(x, y, "D:", color=hue, markerfacecolor="white", markersize=5, linewidth=0.8)
    ax.grid(color="0.9", linewidth=0.8)


def _legended(figure: Figure, ax: Axes) -> Figure:
    handles, labels = ax.get_legend_handles_labels()
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": 3, "fontsize": "small"}
    figure.legend(handles, labels, frameon=False, **place)
    return figure
