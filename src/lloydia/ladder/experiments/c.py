"""C: a kernel a step, six sizes to convergence, from the first k of points in the unit square.

Convergence is C's own: no coordinate of any centre moved by more than 5e-6.  Beside a GPU the
processor's one thread does `SHORT` iterations only, and so does rung 1 everywhere: gains are of the
time an iteration.  The stop rules that C tried are compared at two sizes, the shares of the kernels
are taken at (80000, 200), and the pictures of clusters at three smaller sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments import kernels
from lloydia.ladder.experiments.figures import (
    blank,
    color,
    compared,
    diamonds,
    excuses,
    name,
    seconds,
    speedup,
)
from lloydia.ladder.experiments.lab import Contender, Lab
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import Trial
from lloydia.ladder.experiments.uniform import square
from lloydia.stopping import Centers, Labels, Rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MOST", "RULE", "TITLE", "draw", "run", "sheets"]

TITLE = "C: distance matrix, row minimum, atomic sums, division"
RULE, MOST, SHORT = Centers(5e-6), 10_000, 10
ONE, FASTER_ONE, MATRIX = "r53_scanning_means", "r01_lloyd", "r11_distance_matrix"
SIZES = (
    (2_000, 100),
    (10_000, 200),
    (25_000, 350),
    (50_000, 500),
    (100_000, 750),
    (200_000, 1000),
)
PICTURED = ((732, 8), (2346, 16), (15764, 54))
SHARED = (80_000, 200)
STOPPED = ((2_000, 100), (100_000, 750))
STOPS: tuple[tuple[str, Rule, str], ...] = (
    ("centres compared by the host", RULE, MATRIX),
    ("centres compared by a reduction", RULE, "r51_reduced_moves"),
    ("labels compared by the host", Labels(), MATRIX),
    ("changed labels counted by atomics", Labels(), "r50_counted_changes"),
)


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure the sizes of the table and of the pictures, the stop rules, then the kernels."""
    one, faster = lab.contenders(hosts=(ONE,)), lab.contenders(hosts=(FASTER_ONE,))
    rest = lab.contenders(
        cpu=("r30_engine_cpu",), cuda=(MATRIX, "r31_engine_cuda"), hosts=("scikit-learn lloyd",)
    )
    for sizes, part in ((SIZES, "convergence"), (PICTURED, "pictures")):
        for n, k in dict.fromkeys(lab.size(*source) for source in sizes):
            trial = _trial(lab, part, n, k)
            short = replace(trial, max_iter=lab.iterations(SHORT))
            yield from lab.measure(trial if lab.cpu else short, one, repeat=1)
            yield from lab.measure(short, faster, repeat=1)
            yield from lab.measure(trial, rest)
    if lab.cuda:
        yield from _stops(lab)
        trial = _trial(lab, kernels.PART, *lab.size(*SHARED))
        yield kernels.measure(lab, trial, Contender(MATRIX, block=(lab.blocks or (256,))[0]))


def _trial(lab: Lab, part: str, n: int, k: int) -> Trial:
    X = square(n, on_gpu=lab.cuda)
    return Trial("C", part, X, X[:k], RULE, lab.iterations(MOST))


def _stops(lab: Lab) -> Iterator[Measurement]:
    """Measure the same steps with each way to end."""
    for n, k in dict.fromkeys(lab.size(*source) for source in STOPPED):
        trial = _trial(lab, "stop rules", n, k)
        for case, rule, rung in STOPS:
            contenders = lab.contenders(cuda=(rung,))
            yield from lab.measure(replace(trial, rule=rule, case=case), contenders, repeat=5)


def sheets(found: Sequence[Measurement]) -> list[Sheet]:
    """Return a table for each size, one of the stop rules, and one of the kernels' shares."""
    sizes = dict.fromkeys((each.n, each.k) for each in found if each.part == "convergence")
    tables = []
    for n, k in sizes:
        some = [each for each in found if (each.part, each.n, each.k) == ("convergence", n, k)]
        tables.append(compared(f"{n:,} x 2, k = {k}", some, ONE, by="per_iteration"))
    if stops := [each for each in found if each.part == "stop rules"]:
        tables.append(_stop_sheet(stops))
    if kernels.timed(found):
        tables.append(kernels.sheet(found, "convergence"))
    return tables


def _stop_sheet(found: Sequence[Measurement]) -> Sheet:
    """Return a line for each way to end: an iteration at each size, and the gain over C's own."""
    sizes = sorted({(each.n, each.k) for each in found})
    lines = []
    for case, _, rung in STOPS:
        line = [f"{case} ({rung[1:3]})"]
        for n, k in sizes:
            own = next(iter(pick(found, n=n, k=k, case=case)), None)
            base = next(iter(pick(found, n=n, k=k, case=STOPS[0][0])), None)
            gain = base.per_iteration / own.per_iteration if base and own else None
            line += [seconds(own.per_iteration), str(own.n_iter)] if own else ["", ""]
            line.append(speedup(gain))
        lines.append(line)
    heads = [head for n, k in sizes for head in (f"{n:,} x 2, k = {k}", "iterations", "gain")]
    return Sheet("Stop rules: an iteration", ["", *heads], lines, excuses(found))


def draw(found: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw time and speed-up by size, the kernels' shares, and the clusters."""
    timed = pick(found, part="convergence")
    whole = [each for each in timed if each.max_iter == max(other.max_iter for other in timed)]
    figures = {"times": _times(whole)}
    if shares := kernels.timed(found):
        figures["kernels"] = _shares(shares[-1])
    if pictured := pick(found, part="pictures"):
        figures["clusters"] = _clusters(sorted({(each.n, each.k) for each in pictured}))
    return figures


def _times(found: Sequence[Measurement]) -> Figure:
    figure, (ax,) = blank("Time to convergence", diamonds(found))
    sizes = sorted({(each.n, each.k) for each in found})
    for called in dict.fromkeys(name(each) for each in found):
        some = sorted((each for each in found if name(each) == called), key=lambda each: each.n)
        at, hue = [sizes.index((each.n, each.k)) for each in some], color(some[0])
        ax.plot(at, [each.seconds or 0.0 for each in some], "o-", color=hue, label=called)
        told = [(place, each.theirs) for place, each in zip(at, some) if each.theirs]
        if told:
            ax.plot(*zip(*told), "D:", color=hue, markerfacecolor="white", linewidth=0.8)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda y, _: seconds(y, digits=0))
    ax.set_xticks(range(len(sizes)), [f"{n:,}\n{k:,}" for n, k in sizes])
    ax.set_xlabel("n and k")
    ax.grid(color="0.9", linewidth=0.8)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def _shares(each: Measurement) -> Figure:
    title = f"Where the time goes at {each.n:,} x 2, k = {each.k}"
    figure, (ax,) = blank(title, f"{each.n_iter} iterations", height=2.4)
    whole = sum(each.phases.values())
    shares = [part / whole for part in each.phases.values()]
    drawn = ax.barh(list(each.phases), shares, color=color(each))
    ax.bar_label(drawn, [f" {share:.1%}" for share in shares])
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.invert_yaxis()
    return figure


def _clusters(sizes: Sequence[tuple[int, int]]) -> Figure:
    """Fit again what was measured, and draw the clusters."""
    from lloydia import KMeans, plots

    title = "Clusters of points in the unit square"
    figure, axes = blank(title, "", height=3.4, columns=len(sizes))
    for ax, (n, k) in zip(axes, sizes):
        X = square(n, on_gpu=False)
        model = KMeans(k, init=X[:k], n_init=1, stop=RULE, max_iter=MOST, empty="keep").fit(X)
        plots.clusters(X, model.labels_, model.cluster_centers_, ax=ax, names=("", ""))
        ax.set_title(f"n = {n:,}, k = {k}", loc="left")
        ax.set_aspect("equal")
    return figure
