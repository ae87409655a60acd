"""T's study of seedings: three scores of fits from random points and from farthest-first ones.

The thesis calls the second k-means++: a random first centre, then always the point farthest from
its nearest centre (Gonzalez 1985).  The method of that name draws in proportion to D instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.figures import blank, name, seconds
from lloydia.ladder.experiments.lab import Lab, team_sizes
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.farthest import farthest_first, threaded_farthest_first
from lloydia.ladder.openmp import openmp
from lloydia.stopping import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BETTER", "SEEDINGS", "draw", "run", "sheet", "timed", "times"]

SIZES = ((1000, 100), (2000, 200), (3000, 300), (4000, 400), (5000, 500))
SEEDINGS = {"random": "random points", "farthest": "farthest first"}
SEEDS = 5
BETTER = {"silhouette": max, "Calinski-Harabasz": max, "Davies-Bouldin": min}


def run(lab: Lab) -> Iterator[Measurement]:
    """Score converged fits from both seedings, on points uniform in the unit square."""
    for n, k in dict.fromkeys(lab.size(*shape) for shape in SIZES):
        X = np.random.default_rng(2).random((n, 2))
        for seeding, called in SEEDINGS.items():
            lab.step(f"T scores: {n:,} x 2, k = {k}, {called}")
            figures, spent = _scored(X, k, seeding)
            yield Measurement(
                "T",
                "scores",
                "r30_engine_cpu",
                "cpu",
                n,
                2,
                k,
                "float64",
                case=called,
                seconds=spent,
                figures=figures,
                scale=lab.scale,
                device=lab.device,
            )


def timed(lab: Lab, X: NDArray, k: int) -> Iterator[Measurement]:
    """Time farthest-first seeding where it runs here; all must take the same points."""
    n, d = X.shape
    wanted = farthest_first(X, 0, k)
    for called, where, options, seed in _seeders(lab, X, k):
        lab.step(f"T seeding: {n:,} x {d}, k = {k}, {called}")
        found = seed()  # compiles
        began = time.perf_counter()
        seed()
        spent = time.perf_counter() - began
        at = ("T", "seeding", called, where, n, d, k, X.dtype.name)
        rest = {**options, "scale": lab.scale, "device": lab.device}
        if np.array_equal(found, wanted):
            yield Measurement(*at, seconds=spent, **rest)
        else:
            yield Measurement(*at, status="differs", reason="it takes other points", **rest)


def _seeders(
    lab: Lab, X: NDArray, k: int
) -> Iterator[tuple[str, Literal["cpu", "cuda"], dict[str, Any], Callable[[], NDArray]]]:
    """Yield what a seeding is called, where it runs, its options, and what runs it."""
    if lab.cpu:
        yield "one thread", "cpu", {}, partial(farthest_first, X, 0, k)
        for team in team_sizes():
            yield "OpenMP", "cpu", {"threads": team}, partial(_on_threads, X, k, team)
    if lab.cuda:
        from lloydia.ladder.farthest_cuda import cuda_farthest_first

        for block in lab.blocks or (64, 256, 1024):
            yield "CUDA", "cuda", {"block": block}, partial(cuda_farthest_first, X, 0, k, block)


def _on_threads(X: NDArray, k: int, team: int) -> NDArray:
    with openmp(team):
        return threaded_farthest_first(X, 0, k, team)


def times(found: Sequence[Measurement]) -> Sheet:
    """Return a table of the time of farthest-first seeding."""
    lines = [[name(each), seconds(each.seconds)] for each in found]
    title = f"Farthest-first seeding, {found[0].n:,} x {found[0].d}, k = {found[0].k:,}"
    return Sheet(title, ["", "time"], lines)


def _scored(X: NDArray, k: int, seeding: str) -> tuple[dict[str, float], float]:
    """Return the mean scores and the mean seconds of a fit with its seeding."""
    from lloydia import KMeans, metrics

    scores = (
        metrics.silhouette_score,
        metrics.calinski_harabasz_score,
        metrics.davies_bouldin_score,
    )
    found, spent = [], []
    for seed in range(SEEDS):
        model = KMeans(k, init=seeding, n_init=1, stop=Labels(), max_iter=10_000, random_state=seed)
        began = time.perf_counter()
        model.fit(X)
        spent.append(time.perf_counter() - began)
        found.append([score(X, model.labels_) for score in scores])
    return dict(zip(BETTER, np.mean(found, axis=0).tolist())), float(np.mean(spent))


def sheet(found: Sequence[Measurement]) -> Sheet:
    """Return a table with a line for each size and seeding."""
    lines = [
        [f"{each.n:,}, {each.k}", each.case, *(f"{each.figures[score]:,.3f}" for score in BETTER)]
        for each in found
    ]
    notes = [f"Means over {SEEDS} seeds; points uniform in the unit square, fits to convergence."]
    return Sheet("Scores of two seedings", ["n, k", "seeding", *BETTER], lines, notes)


def draw(found: Sequence[Measurement]) -> Figure:
    """Draw a bar chart a score, a pair of bars a size."""
    from lloydia.plots import BRIGHT

    figure, axes = blank("Scores of two seedings", f"means over {SEEDS} seeds", columns=3)
    sizes = sorted({(each.n, each.k) for each in found})
    for ax, (score, better) in zip(axes, BETTER.items()):
        for place, (called, hue) in enumerate(zip(SEEDINGS.values(), BRIGHT)):
            some = pick(found, case=called)
            at = [sizes.index((each.n, each.k)) + 0.4 * place for each in some]
            ax.bar(at, [each.figures[score] for each in some], 0.38, color=hue, label=called)
        ax.set_xticks(np.arange(len(sizes)) + 0.2, [f"{n:,}\n{k}" for n, k in sizes])
        ax.set_title(f"{score}: {'more' if better is max else 'less'} is better", fontsize="small")
    axes[0].set_xlabel("n and k")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure
