"""The kernels of an iteration, each timed apart on the GPU, without the host that queues them.

An iteration of a whole run takes as long as the slower of two: the GPU that executes its kernels,
and the host that queues them.  These measurements are of the GPU alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lloydia import ladder
from lloydia.bench.sheets import Sheet
from lloydia.ladder.device import REFUSALS
from lloydia.ladder.experiments.figures import blank, name, seconds
from lloydia.ladder.experiments.lab import SIMULATOR, Contender, Lab
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PART", "draw", "measure", "sheet", "timed"]

PART, ITERATIONS = "kernels", 20


def measure(lab: Lab, trial: Trial, contender: Contender) -> Measurement:
    """Time the kernels of a rung that can do that, over some iterations from the trial's start.

    The seconds are those of the kernels; the outcome is checked where the rung is timed as a whole.
    """
    n, d = trial.X.shape
    told = {
        "experiment": trial.experiment,
        "part": PART,
        "rung": contender.name,
        "where": "cuda",
        "n": n,
        "d": d,
        "k": len(trial.start),
        "dtype": trial.X.dtype.name,
        "block": contender.block,
        "scale": lab.scale,
        "device": lab.device,
    }
    if lab.device == SIMULATOR:
        return Measurement(**told, status="skipped", reason="the simulator has no clock")
    lab.step(f"{trial.experiment} kernels: {contender.name} at {n:,} x {d}, k = {len(trial.start)}")
    fit, most = ladder.named(contender.name).fit, lab.iterations(ITERATIONS)
    given = {"rule": None, "block": contender.block, "by_kernel": True}
    try:
        fit(trial.X, trial.start, **given, max_iter=1)  # compiles
        outcome = fit(trial.X, trial.start, **given, max_iter=most)
    except REFUSALS as error:
        return Measurement(**told, status="skipped", reason=str(error).strip().rstrip("."))
    return Measurement(
        **told,
        max_iter=most,
        n_iter=outcome.n_iter,
        seconds=sum(outcome.phases.values()),
        phases=outcome.phases,
    )


def timed(found: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements of kernels."""
    return pick(found, part=PART)


def sheet(found: Sequence[Measurement], part: str) -> Sheet:
    """Return a line for each kernel, and one for the iteration of a whole run in `part`."""
    lines = []
    for each in timed(found):
        what = f"{each.n:,} x {each.d}, k = {each.k}: {name(each)}"
        for kernel, spent in each.phases.items():
            of = each.seconds or 1.0
            lines.append([what, kernel, seconds(spent / (each.n_iter or 1)), f"{spent / of:.0%}"])
            what = ""
        lines.append(["", "all kernels", seconds(each.per_iteration), ""])
        if run := _run(found, each, part):
            lines.append(["", "the iteration, as measured above", seconds(run.per_iteration), ""])
    return Sheet("The kernels of an iteration", ["", "kernel", "time", "share"], lines)


def _run(found: Sequence[Measurement], each: Measurement, part: str) -> Measurement | None:
    """Return the whole run of the same problem."""
    same = {name: getattr(each, name) for name in ("rung", "n", "d", "k", "dtype", "block")}
    return next(iter(pick(found, part=part, **same)), None)


def draw(found: Sequence[Measurement], part: str) -> Figure:
    """Draw the kernels of an iteration as parts of a bar, with what is left of the whole run."""
    from lloydia.plots import BRIGHT

    some = timed(found)
    sizes = list(dict.fromkeys((each.n, each.k) for each in some))
    most = max(sum((each.n, each.k) == size for each in some) for size in sizes)
    note = "grey: the GPU waits for the host"
    figure, axes = blank(
        "An iteration, kernel by kernel", note, height=1.8 + most, columns=len(sizes)
    )
    for ax, (n, k) in zip(axes, sizes):
        of = [each for each in some if (each.n, each.k) == (n, k)]
        for place, each in enumerate(of):
            _bar(ax, place, each, _run(found, each, part), BRIGHT)
        ax.set_yticks(range(len(of)), [name(each).replace(", ", "\n") for each in of])
        ax.set_ylim(len(of) - 0.4, -0.6)
        ax.set_xlim(left=0)
        ax.margins(x=0.25)
        ax.xaxis.set_major_formatter(lambda x, _: seconds(x, digits=0) if x else "0")
        ax.set_title(f"n = {n:,}, k = {k:,}", loc="left")
    return figure


def _bar(
    ax: Axes, place: int, each: Measurement, run: Measurement | None, hues: Sequence[str]
) -> None:
    """Draw one iteration: its kernels one after the other, then what is left of the whole."""
    end, words = 0.0, []
    for hue, (kernel, spent) in zip(hues, each.phases.items()):
        own = spent / (each.n_iter or 1)
        ax.barh(place, own, left=end, height=0.4, color=hue)
        words.append(f"{kernel} {seconds(own)}")
        end += own
    if run and run.per_iteration > end:
        ax.barh(place, run.per_iteration - end, left=end, height=0.4, color="0.88")
        words.append(f"in all {seconds(run.per_iteration)}")
    ax.text(0, place - 0.27, ", ".join(words), va="bottom", fontsize="x-small")
