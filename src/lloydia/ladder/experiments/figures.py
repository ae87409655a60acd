"""Pieces of figures and tables that several experiments share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.lab import ENGINES, PEERS
from lloydia.ladder.experiments.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "bars",
    "blank",
    "color",
    "compared",
    "diamonds",
    "line",
    "lines",
    "name",
    "ordered",
    "printed",
    "seconds",
    "speedup",
]

DIAMOND = 1.5  # half of its width, as a factor on an axis of some decades
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def name(found: Measurement, *, options: bool = True) -> str:
    """Return what people call it: ``12 atomics, blocks of 256``."""
    called = ENGINES.get(found.rung, found.rung)
    if called[0] == "r" and called[1:3].isdigit():
        called = f"{called[1:3]} {called[4:].replace('_', ' ')}"
    if options and found.rung not in ENGINES and not found.rung.startswith("scikit"):
        called += f", {found.threads} thread{'s' * (found.threads > 1)}" if found.threads else ""
        called += f", blocks of {found.block}" if found.block else ""
    return called


def ordered(found: Iterable[Measurement]) -> list[Measurement]:
    """Return them in the order of every figure: peers, rungs by number, Lloydia last."""

    def rank(each: Measurement) -> tuple[int, str, int, int]:
        kind = 2 if each.rung in ENGINES else 0 if each.rung in PEERS else 1
        return kind, each.rung, each.threads or 0, each.block or 0

    return sorted(found, key=rank)


def seconds(value: float | None, digits: int = 3) -> str:
    """Return a time with so many digits, or those before the point, and its unit."""
    if value is None:
        return ""
    size, unit = next(((size, unit) for size, unit in UNITS if value >= size), UNITS[-1])
    scaled = value / size
    return f"{scaled:,.{max(0, digits - len(str(int(scaled))))}f} {unit}"


def printed(gain: float) -> str:
    """Return a document's gain with the digits that it prints."""
    return f"{gain:,g}x"


def speedup(value: float | None) -> str:
    """Return how many times as fast, with two or three digits."""
    if value is None:
        return ""
    return f"{value:.2f}x" if value < 10 else f"{value:.1f}x" if value < 100 else f"{value:,.0f}x"


def line(found: Measurement) -> str:
    """Return a measurement as a line for people."""
    what = f"{found.experiment} {found.part} {found.case}".strip()
    shape = f"{found.n:,} x {found.d}, k = {found.k}, {found.dtype}"
    told = f"{what}: {name(found)} at {shape}: "
    if found.seconds is None:
        return told + f"{found.status}: {found.reason}"
    return told + seconds(found.seconds) + (f", {found.n_iter} iterations" if found.n_iter else "")


def compared(
    title: str,
    found: Sequence[Measurement],
    base: str,
    *,
    by: Literal["seconds", "per_iteration"] = "seconds",
) -> Sheet:
    """Return a table of contenders on one problem, beside the source's own figures.

    Parameters
    ----------
    title : str
    found : sequence of Measurement
        With a time or without; all of one problem.
    base : str
        The rung whose time the others' are compared with.
    by : {"seconds", "per_iteration"}
        Which time that is.
    """
    timed = ordered(each for each in found if each.seconds)
    ours = next((each for each in timed if each.rung == base), None)
    heads = ["", "time", "iterations", "gain"]
    lines = [
        [
            name(each),
            seconds(each.seconds),
            str(each.n_iter),
            speedup(_ratio(ours, each, by)),
        ]
        for each in timed
    ]
    if any(each.theirs for each in timed):
        heads += ["the source's time", "gain"]
        for line_, each in zip(lines, timed):
            line_ += [seconds(each.theirs), speedup(_ratio(ours, each, "theirs"))]
    return Sheet(title, heads, lines, excuses(found))


def _ratio(base: Measurement | None, each: Measurement, name: str) -> float | None:
    """Return how many times as fast as the base, where both have that figure."""
    of, to = getattr(base, name, None), getattr(each, name)
    return of / to if of and to else None


def excuses(found: Iterable[Measurement]) -> list[str]:
    """Say who has no time, and why."""
    return [f"{name(each)}: {each.status}, {each.reason}." for each in found if not each.seconds]


def blank(title: str, note: str, *, height: float = 4.6, columns: int = 1) -> tuple[Figure, list]:
    """Return a figure with a title and its axes side by side."""
    from lloydia import plots  # says how to get matplotlib where it is missing

    figure = plots.Figure(figsize=(8.4, height), dpi=150, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    axes = list(figure.subplots(1, columns, squeeze=False)[0])
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_axisbelow(True)
    figure.text(0.99, 0.985, note, ha="right", va="top", fontsize="small", color="0.4")
    return figure, axes


def diamonds(found: Sequence[Measurement]) -> str:
    """Return what a figure says of the document's own times, if it has any."""
    return "diamonds: the document's own" if any(each.theirs for each in found) else ""


def bars(ax: Axes, found: Sequence[Measurement], value: Callable[[Measurement], float]) -> None:
    """Draw a horizontal bar each on a logarithmic axis, and the source's own time as a diamond."""
    found = ordered(found)
    for place, each in enumerate(found):
        ax.barh(place, value(each), height=0.62, color=color(each))
        # Past the bar, and past the diamond where that would be under the text.
        end, gap = value(each), 4
        if each.theirs and each.theirs > end / DIAMOND:
            end, gap = max(end, each.theirs), 8
        ax.annotate(
            seconds(value(each)),
            (end, place),
            xytext=(gap, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
        if each.theirs:
            ax.plot(each.theirs, place, "D", color="black", markerfacecolor="white", markersize=6)
    ax.set_xscale("log")
    ax.set_yticks(range(len(found)), [name(each) for each in found])
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize="x-small")
    every = [value(each) for each in found] + [each.theirs for each in found if each.theirs]
    ax.set_xlim(min(every) / 2, max(every) * 8)  # room for the times beside the bars
    ax.xaxis.set_major_formatter(lambda x, _: seconds(x, digits=0))
    ax.grid(axis="x", color="0.9", linewidth=0.8)


def color(found: Measurement) -> str:
    """Return the hue of a kind of contender."""
    from lloydia.plots import BRIGHT

    blue, red, green, yellow = BRIGHT[:4]
    if found.rung in ENGINES:
        return green
    if found.rung.startswith("scikit"):
        return yellow
    return red if found.where == "cuda" else blue


def lines(ax: Axes, series: Mapping[str, Sequence[Measurement]], looks: Mapping[str, dict]) -> None:
    """Draw time against n, a line each."""
    for label, some in series.items():
        several = sorted(some, key=lambda each: each.n)
        x, y = [each.n for each in several], [each.seconds or 0.0 for each in several]
        ax.plot(x, y, label=label, **looks.get(label, {}))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda y, _: seconds(y, digits=0))
    ax.set_xlabel("points")
    ax.grid(color="0.9", linewidth=0.8)
