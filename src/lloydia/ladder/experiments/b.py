"""B: four CUDA versions at 256 MB of doubles, in blocks of 32 to 1024 threads, 10 loops.

The document writes (256, 2, 16, 10) and (256, 16, 16, 10) for (size, coordinates, clusters, loops).
The size is in MB, that is 16,777,216 x 2 and 2,097,152 x 16; read literally it is 256 objects,
which are measured too.  The first k objects are the start, and a run ends when at most a thousandth
of the objects changed their cluster, or after 10 loops.  Speed-ups are over one thread of the
processor beside the GPU.

Beside the document's versions stand three that it suggests and does not try (`SUGGESTED`), at one
block size, and a run that is long enough for the stop rule to end it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.figures import blank, compared, excuses, name, seconds, speedup
from lloydia.ladder.experiments.lab import Lab
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import Trial
from lloydia.stopping import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SUGGESTED", "TITLE", "VERSIONS", "draw", "run", "sheets"]

TITLE = "B: transposed, shared, all on the GPU"
SHAPES = ((16_777_216, 2), (2_097_152, 16), (256, 2), (256, 16))
LARGE, OBJECTS, STOPPED = "256 MB", "256 objects", "stop rule"
K, LOOPS, MOST_LOOPS, RULE = 16, 10, 200, Labels(0.001)
BLOCKS = (32, 64, 128, 256, 512, 1024)
HOSTS = ("r01_lloyd", "scikit-learn lloyd")
CPU = ("r04_threaded_lloyd", "r30_engine_cpu")
NAIVE, SHARED, ALL = "r10_naive", "r14_shared_centers", "r15_all_on_gpu"
ON_HOST = (NAIVE, "r13_transposed", SHARED)  # the means are the host's
VERSIONS = (*ON_HOST, ALL)
SUGGESTED = {  # which version each changes
    "r26_thread_buffers": ALL,
    "r27_staged_points": SHARED,
    "r28_split_points": NAIVE,
}
THEIR_GAIN = (7.0, 8.0)  # of the naive version at 2 coordinates
PHASED = 1024  # threads a block of the run whose phases the document prints
PHASES = ("upload", "kernels", "download", "host")
THEIR_SHARES = dict(zip(PHASES, (0.0, 0.25, 0.188, 0.562)))
THEIR_TIMES = {"upload": 0.22e-3, "download": 151.17e-3}
THEIR_BYTES = {"upload": 256, "download": 1024}
COPIED = {"upload": "bytes uploaded", "download": "bytes downloaded"}


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure every version with every block size on each shape, and then what they suggest."""
    others = lab.contenders(cpu=CPU, cuda=("r31_engine_cuda",), hosts=HOSTS)
    slow = lab.contenders(cuda=ON_HOST, blocks=BLOCKS)
    quick = lab.contenders(cuda=(ALL,), blocks=BLOCKS)
    suggested = lab.contenders(cuda=tuple(SUGGESTED))
    stopped = lab.contenders(cpu=("r30_engine_cpu",), cuda=(ALL, "r31_engine_cuda"))
    for source, d in SHAPES:
        n, k = lab.size(source, K)
        X = np.random.default_rng(d).random((n, d))
        large = source > 256
        trial = Trial("B", LARGE if large else OBJECTS, X, X[:k], RULE, lab.iterations(LOOPS))
        yield from lab.measure(trial, others)
        yield from lab.measure(trial, [*slow, *suggested], repeat=1 if large else 3)
        yield from lab.measure(trial, quick)
        if large:
            longer = replace(trial, part=STOPPED, max_iter=lab.iterations(MOST_LOOPS))
            yield from lab.measure(longer, stopped, repeat=1)


def sheets(found: Sequence[Measurement]) -> list[Sheet]:
    """Return the tables of each shape, that of the phases, and that of the stop rule."""
    tables = []
    for part, n, d, k in dict.fromkeys((each.part, each.n, each.d, each.k) for each in found):
        shape = [each for each in found if (each.part, each.n, each.d) == (part, n, d)]
        if part == STOPPED:
            continue
        others = [each for each in shape if each.rung not in (*VERSIONS, *SUGGESTED)]
        tables.append(compared(f"{n:,} x {d}, k = {k}", others, "r01_lloyd"))
        one = min((each.seconds or 0.0 for each in pick(others, rung="r01_lloyd")), default=None)
        if versions := [each for each in shape if each.rung in VERSIONS]:
            title = f"{n:,} x {d}: the versions by block size"
            tables.append(_by_block(f"{title}, time", versions))
            if one:
                tables.append(_by_block(f"{title}, speed-up", versions, one))
        if tried := [each for each in shape if each.rung in SUGGESTED]:
            tables.append(_suggested(f"{n:,} x {d}: what the document suggests", tried, shape))
    if phased := _phased(found):
        tables.append(_phases(phased))
    if ended := [each for each in found if each.part == STOPPED]:
        tables.append(_stopped(ended))
    return tables


def _by_block(title: str, found: Sequence[Measurement], one: float | None = None) -> Sheet:
    """Return a line a version: its time with each block size, or its gain over `one` thread."""
    sizes = sorted({each.block or 0 for each in found})
    lines = []
    for rung in dict.fromkeys(each.rung for each in pick(found)):
        times = {each.block: each.seconds or 0.0 for each in pick(found, rung=rung)}
        cells = [times.get(size) for size in sizes]
        told = [speedup(t and one / t) for t in cells] if one else [seconds(t) for t in cells]
        lines.append([_short(rung), *told])
    return Sheet(title, ["threads a block", *map(str, sizes)], lines, excuses(found))


def _suggested(title: str, found: Sequence[Measurement], shape: Sequence[Measurement]) -> Sheet:
    """Return a line for each suggestion, beside the version that it changes."""
    lines = []
    for each in pick(found):
        before = pick(shape, rung=SUGGESTED[each.rung], block=each.block)
        cells = [name(each), seconds(each.seconds), _kernels(each)]
        for other in before[:1]:
            cells += [name(other), seconds(other.seconds), _kernels(other)]
            cells.append(speedup((other.seconds or 0.0) / (each.seconds or 1.0)))
        lines.append([*cells, *[""] * (7 - len(cells))])
    heads = ["", "time", "kernels", "in place of", "time", "kernels", "gain"]
    return Sheet(title, heads, lines, excuses(found), text=("in place of",))


def _kernels(each: Measurement) -> str:
    return seconds(each.phases.get("kernels"))


def _phases(found: Sequence[Measurement]) -> Sheet:
    """Return a line for each run whose phases are known: what each takes, and what is copied."""
    lines = []
    for each in found:
        whole = sum(each.phases.values())
        cells = [f"{each.n:,} x {each.d}, {name(each)}"]
        for phase in PHASES:
            told = f"{each.phases[phase] / whole:.1%}, {seconds(each.phases[phase])}"
            if copied := each.figures.get(COPIED.get(phase, "")):
                told += f", {copied:,.0f} bytes a loop"
            cells.append(told)
        spans = [each.figures.get(f"{which} iteration") for which in ("shortest", "longest")]
        lines.append([*cells, *map(seconds, spans)])
    theirs = ["the document's (V100), shared, blocks of 1024"]
    for phase in PHASES:
        told = f"{THEIR_SHARES[phase]:.1%}"
        if phase in THEIR_TIMES:
            told += f", {seconds(THEIR_TIMES[phase])}, {THEIR_BYTES[phase]:,} bytes a loop"
        theirs.append(told)
    heads = ["", *PHASES, "shortest loop", "longest loop"]
    return Sheet("Where the time of all loops goes", heads, [*lines, [*theirs, "", ""]])


def _stopped(found: Sequence[Measurement]) -> Sheet:
    """Return a line for each run that the rule ended."""
    lines = [
        [f"{each.n:,} x {each.d}, {name(each)}", seconds(each.seconds), str(each.n_iter)]
        for each in pick(found)
    ]
    most = max(each.max_iter for each in found)
    title = f"Until at most {RULE.fraction:.1%} of the objects change, {most} loops at most"
    return Sheet(title, ["", "time", "loops"], lines, excuses(found))


def _phased(found: Sequence[Measurement]) -> list[Measurement]:
    """Return the runs whose phases are shown: the shared version, as the document has, and naive.

    They are of the document's block size where it was run, else of the largest.
    """
    runs = [each for each in pick(found, part=LARGE, rung=(SHARED, NAIVE)) if each.phases]
    sizes = {each.block for each in runs}
    block = PHASED if PHASED in sizes else max((size or 0 for size in sizes), default=0)
    some = [each for each in runs if each.block == block]
    return sorted(some, key=lambda each: (each.rung != SHARED, each.d))


def _short(rung: str) -> str:
    return rung[1:].replace("_", " ")


def draw(found: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw times and speed-ups by block size for each large shape, and the phases as pies."""
    figures = {}
    for d in (2, 16):
        some = pick(found, part=LARGE, d=d)
        if pick(some, rung=VERSIONS):
            figures[f"time-{d}"] = _times(some)
            if pick(some, rung="r01_lloyd"):
                figures[f"speedup-{d}"] = _speedups(some)
    if phased := _phased(found):
        figures["phases"] = _pies(phased)
    return figures


def _title(what: str, each: Measurement) -> str:
    return f"{what}: {each.n:,} x {each.d} doubles, k = {each.k}"


def _note(found: Sequence[Measurement], told: Callable[[Measurement], str]) -> str:
    """Return the number of loops, and what Lloydia does, which is off the scale."""
    ours = [f"Lloydia on the GPU: {told(each)}" for each in pick(found, rung="r31_engine_cuda")]
    return "\n".join([f"{found[0].max_iter} loops", *ours])


def _times(found: Sequence[Measurement]) -> Figure:
    """Draw a group of bars a block size, a bar a version."""
    title = _title("Time of a run", found[0])
    figure, (ax,) = blank(title, _note(found, lambda each: seconds(each.seconds)))
    _grouped(ax, found, VERSIONS, lambda each: each.seconds or 0.0)
    ax.yaxis.set_major_formatter(lambda value, _: seconds(value) if value else "0")
    figure.legend(*ax.get_legend_handles_labels(), **_BELOW)
    return figure


def _speedups(found: Sequence[Measurement]) -> Figure:
    """Draw the versions with the host's means, and all of them, each on an axis from 0."""
    one = pick(found, rung="r01_lloyd")[0].seconds or 0.0

    def gain(each: Measurement) -> float:
        return one / (each.seconds or 1)

    title = _title("Speed-up over one thread", found[0])
    note = _note(found, lambda each: speedup(gain(each)))
    figure, axes = blank(title, note, columns=2)
    parts = (ON_HOST, "means on the host"), (VERSIONS, "and all on the GPU")
    for ax, (rungs, called) in zip(axes, parts):
        _grouped(ax, found, rungs, gain)
        if found[0].d == 2 and found[0].scale == 1:
            label = "7x to 8x, the document's naive"
            ax.axhspan(*THEIR_GAIN, color="black", alpha=0.3, zorder=3, label=label)
        ax.set_title(called, loc="left", fontsize="medium")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    figure.legend(*axes[1].get_legend_handles_labels(), **_BELOW)
    return figure


def _grouped(
    ax: Axes,
    found: Sequence[Measurement],
    rungs: Sequence[str],
    value: Callable[[Measurement], float],
) -> None:
    """Draw a group of bars a block size, a bar a rung, on an axis that begins at 0."""
    from lloydia.plots import BRIGHT

    width = 0.8 / len(rungs)
    for place, rung in enumerate(rungs):
        some = pick(found, rung=rung, block=BLOCKS)
        at = [BLOCKS.index(each.block or 0) + width * (place + 0.5) - 0.4 for each in some]
        hue = BRIGHT[VERSIONS.index(rung)]
        ax.bar(at, [value(each) for each in some], width * 0.92, color=hue, label=_short(rung))
    ax.set_xticks(range(len(BLOCKS)), [str(block) for block in BLOCKS])
    ax.set_xlim(-0.5, len(BLOCKS) - 0.5)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("threads a block")
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y", color="0.9", linewidth=0.8)


_BELOW: dict[str, Any] = {"loc": "outside lower center", "ncols": 3, "frameon": False}


def _pies(found: Sequence[Measurement]) -> Figure:
    """Draw a pie for each run whose phases are known, the document's own after its version's."""
    from lloydia.plots import BRIGHT

    shares = []
    for each in found:
        whole = sum(each.phases.values())
        parts = {phase: part / whole for phase, part in each.phases.items()}
        shares.append((f"{_short(each.rung)}\n{each.n:,} x {each.d}", parts))
    last = sum(each.rung == SHARED for each in found)
    shares.insert(last, ("the document's\nshared (V100)", THEIR_SHARES))
    block = f"blocks of {found[0].block}"
    figure, axes = blank("Where the time goes", block, height=3.2, columns=len(shares))
    hues = dict(zip(PHASES, BRIGHT))
    for ax, (title, parts) in zip(axes, shares):
        drawn = {phase: part for phase, part in parts.items() if part >= 0.0005}
        colors = [hues[phase] for phase in drawn]
        wedges, _ = ax.pie(list(drawn.values()), colors=colors, startangle=90, counterclock=False)
        labels = [f"{phase} {parts[phase]:.1%}" for phase in drawn]
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.04)}
        ax.legend(wedges, labels, fontsize="small", frameon=False, **place)
        ax.set_title(title, fontsize="small")
    return figure
