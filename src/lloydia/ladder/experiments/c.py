"""C: a kernel a step, six sizes to convergence, from the first k of points in the unit square.

Convergence is C's own: no coordinate of any centre moved by more than 5e-6.  The share of each
kernel in the run is taken at (80000, 200), the pictures of clusters at three smaller sizes.  Beside
a GPU the processor's one thread does `SHORT` iterations only: gains are of the time an iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lloydia import ladder
from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.figures import blank, color, compared, name, seconds
from lloydia.ladder.experiments.lab import Lab
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import Trial
from lloydia.ladder.experiments.uniform import square
from lloydia.stopping import Centers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MOST", "RULE", "TITLE", "draw", "run", "sheets"]

TITLE = "C: distance matrix, row minimum, atomic sums, division"
RULE, MOST, SHORT = Centers(5e-6), 10_000, 10
ONE, MATRIX = "r01_lloyd", "r11_distance_matrix"
SIZES = (
    (2_000, 100),
    (10_000, 200),
    (25_000, 350),
    (50_000, 500),
    (100_000, 750),
    (200_000, 1000),
)
SHARED = (80_000, 200)
PICTURED = ((732, 8), (2346, 16), (15764, 54))


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure the sizes of the table and of the pictures, then the kernels one by one."""
    alone = lab.contenders(hosts=(ONE,))
    rest = lab.contenders(
        cpu=("r30_engine_cpu",), cuda=(MATRIX, "r31_engine_cuda"), hosts=("scikit-learn lloyd",)
    )
    for sizes, part in ((SIZES, "convergence"), (PICTURED, "pictures")):
        for n, k in dict.fromkeys(lab.size(*source) for source in sizes):
            trial = _trial(lab, part, n, k)
            short = trial if lab.cpu else replace(trial, max_iter=lab.iterations(SHORT))
            yield from lab.measure(short, alone)
            yield from lab.measure(trial, rest)
    if lab.cuda:
        yield _kernels(lab)


def _trial(lab: Lab, part: str, n: int, k: int) -> Trial:
    X = square(n, on_gpu=lab.cuda)
    return Trial("C", part, X, X[:k], RULE, lab.iterations(MOST))


def _kernels(lab: Lab) -> Measurement:
    """Time the kernels of a run apart."""
    trial = _trial(lab, "kernels", *lab.size(*SHARED))
    lab.step(f"C kernels: {len(trial.X):,} x 2, k = {len(trial.start)}")
    fit = ladder.named(MATRIX).fit
    fit(trial.X, trial.start, rule=None, max_iter=1, by_kernel=True)
    outcome = fit(trial.X, trial.start, rule=RULE, max_iter=trial.max_iter, by_kernel=True)
    n, d = trial.X.shape
    return Measurement(
        *("C", "kernels", MATRIX, "cuda", n, d, len(trial.start), trial.X.dtype.name),
        block=256,
        max_iter=trial.max_iter,
        n_iter=outcome.n_iter,
        seconds=outcome.seconds,
        phases=outcome.phases,
        scale=lab.scale,
        device=lab.device,
    )


def sheets(found: Sequence[Measurement]) -> list[Sheet]:
    """Return a table for each size, and one of the kernels' shares."""
    sizes = dict.fromkeys((each.n, each.k) for each in found if each.part == "convergence")
    tables = []
    for n, k in sizes:
        some = [each for each in found if (each.part, each.n, each.k) == ("convergence", n, k)]
        tables.append(compared(f"{n:,} x 2, k = {k}", some, ONE, by="per_iteration"))
    for each in _timed_kernels(found):
        whole = sum(each.phases.values())
        rows = [[what, seconds(t), f"{t / whole:.0%}"] for what, t in each.phases.items()]
        title = f"Kernels at {each.n:,} x 2, k = {each.k}, {each.n_iter} iterations"
        tables.append(Sheet(title, ["kernel", "time", "share"], rows))
    return tables


def _timed_kernels(found: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements of kernels; numba-cuda's simulator has no clock for them."""
    some = pick(found, part="kernels")
    return [each for each in some if min(each.phases.values(), default=0) > 0]


def draw(found: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw time and speed-up by size, the kernels' shares, and the clusters."""
    timed = pick(found, part="convergence")
    whole = [each for each in timed if each.max_iter == max(other.max_iter for other in timed)]
    figures = {"times": _times(whole)}
    if shares := _timed_kernels(found):
        figures["kernels"] = _shares(shares[-1])
    if pictured := pick(found, part="pictures"):
        figures["clusters"] = _clusters(sorted({(each.n, each.k) for each in pictured}))
    return figures


def _times(found: Sequence[Measurement]) -> Figure:
    figure, (ax,) = blank("Time to convergence", "diamonds: the source's own")
    sizes = sorted({(each.n, each.k) for each in found})
    for called in dict.fromkeys(name(each) for each in found):
        some = sorted((each for each in found if name(each) == called), key=lambda each: each.n)
        at, hue = [sizes.index((each.n, each.k)) for each in some], color(some[0])
        ax.plot(at, [each.seconds or 0.0 for each in some], "o-", color=hue, label=called)
        told = [(place, each.theirs) for place, each in zip(at, some) if each.theirs]
        if told:
            ax.plot(*zip(*told), "D:", color=hue, markerfacecolor="white", linewidth=0.8)
    ax.set_yscale("log")
    ax.set_xticks(range(len(sizes)), [f"{n:,}\n{k:,}" for n, k in sizes])
    ax.set_xlabel("n and k")
    ax.set_ylabel("seconds")
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
