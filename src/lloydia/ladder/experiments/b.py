"""B: four CUDA versions at 256 MB of doubles, in blocks of 32 to 1024 threads, 10 loops.

The source writes (256, 2, 16, 10) and (256, 16, 16, 10) for (size, coordinates, clusters, loops).
The size is in MB, that is 16,777,216 x 2 and 2,097,152 x 16; read literally it is 256 objects,
which are measured too.  The speed-up is over one thread of the processor beside the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.figures import blank, compared, excuses, name, seconds, speedup
from lloydia.ladder.experiments.lab import Lab
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import Trial
from lloydia.stopping import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TITLE", "VERSIONS", "draw", "run", "sheets"]

TITLE = "B: transposed, shared, all on the GPU"
SHAPES = ((16_777_216, 2), (2_097_152, 16), (256, 2), (256, 16))
K, LOOPS = 16, 10
BLOCKS = (32, 64, 128, 256, 512, 1024)
HOSTS = ("r01_lloyd", "scikit-learn lloyd")
CPU = ("r04_threaded_lloyd", "r30_engine_cpu")
VERSIONS = {  # and the gain over one thread that the source tells of
    "r10_naive": "7x to 8x",
    "r13_transposed": "more, at 2 coordinates",
    "r14_shared_centers": "more, at 2 coordinates",
    "r15_all_on_gpu": "over 2x the others'",
}
PHASES = {"upload": 0.0, "kernels": 0.25, "download": 0.19, "host": 0.56}  # the source's


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure every version with every block size, on each shape."""
    cuda = (*VERSIONS, "r31_engine_cuda")
    contenders = lab.contenders(cpu=CPU, cuda=cuda, hosts=HOSTS, blocks=BLOCKS)
    for source, d in SHAPES:
        n, k = lab.size(source, K)
        rng = np.random.default_rng(d)
        X = rng.random((n, d))
        start = X[rng.choice(n, k, replace=False)]
        part = "256 MB" if source > 256 else "256 objects"
        trial = Trial("B", part, X, start, Labels(), lab.iterations(LOOPS))
        yield from lab.measure(trial, contenders)


def sheets(found: Sequence[Measurement]) -> list[Sheet]:
    """Return two tables for each shape, the versions by block size apart, and one of the phases."""
    tables = []
    for n, d in dict.fromkeys((each.n, each.d) for each in found):
        shape = [each for each in found if (each.n, each.d) == (n, d)]
        others = [each for each in shape if each.rung not in VERSIONS]
        tables.append(compared(f"{n:,} x {d}, k = {K}", others, "r01_lloyd"))
        if versions := [each for each in shape if each.rung in VERSIONS]:
            tables.append(_by_block(f"{n:,} x {d}: the versions by block size", versions, others))
    if phased := _phased(found):
        shares = [(f"{each.n:,} x {each.d}, {name(each)}", _shares(each)) for each in phased]
        shares.append(("the source's (V100)", PHASES))
        lines = [
            [what, *(f"{part.get(phase, 0):.0%}" for phase in PHASES)] for what, part in shares
        ]
        tables.append(Sheet("Where the naive version's time goes", ["", *PHASES], lines))
    return tables


def _by_block(title: str, found: Sequence[Measurement], others: Sequence[Measurement]) -> Sheet:
    """Return a line a version: its time with each block size, and the best gain over one thread."""
    sizes = sorted({each.block or 0 for each in found})
    one = min((each.seconds or 0.0 for each in pick(others, rung="r01_lloyd")), default=None)
    lines = []
    for rung in dict.fromkeys(each.rung for each in pick(found)):
        times = {each.block: each.seconds or 0.0 for each in pick(found, rung=rung)}
        gain = one / min(times.values()) if one else None
        called = rung[1:].replace("_", " ")
        told = [speedup(gain), VERSIONS[rung]]
        lines.append([called, *(seconds(times.get(size)) for size in sizes), *told])
    heads = ["", *map(str, sizes), "gain", "the source's"]
    return Sheet(title, heads, lines, excuses(found))


def draw(found: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw speed-ups by block size for each large shape, and the phases as pies."""
    figures = {}
    for d in (2, 16):
        some = pick(found, part="256 MB", d=d)
        if pick(some, rung=tuple(VERSIONS)) and pick(some, rung="r01_lloyd"):
            figures[f"speedup-{d}"] = _speedups(some)
    if phased := _phased(found):
        figures["phases"] = _pies(phased)
    return figures


def _speedups(found: Sequence[Measurement]) -> Figure:
    """Draw a group of bars a block size, a bar a version, and Lloydia at the end."""
    from lloydia.plots import BRIGHT

    one = pick(found, rung="r01_lloyd")[0].seconds or 0.0
    title = f"Speed-up over one thread: {found[0].n:,} x {found[0].d} doubles, k = {K}"
    figure, (ax,) = blank(title, f"{LOOPS} loops")
    for place, (rung, hue) in enumerate(zip(VERSIONS, BRIGHT)):
        some = pick(found, rung=rung, block=BLOCKS)
        if not some:
            continue
        at = [BLOCKS.index(each.block) + 0.2 * place for each in some]
        gains = [one / (each.seconds or 1) for each in some]
        drawn = ax.bar(at, gains, 0.18, color=hue, label=rung[1:].replace("_", " "))
        ax.bar_label(drawn, [f"{gain:.3g}" for gain in gains], fontsize=6.5)
    for each in pick(found, rung="r31_engine_cuda"):
        gain = one / (each.seconds or 1)
        ax.bar(len(BLOCKS) + 0.3, gain, 0.4, color="black", label="Lloydia on the GPU")
        ax.text(len(BLOCKS) + 0.3, gain, f"{gain:,.0f}", ha="center", va="bottom", fontsize=6.5)
    ax.set_yscale("log")
    ax.set_ylim(bottom=min(1.0, ax.get_ylim()[0]))
    ax.yaxis.set_major_formatter(lambda gain, _: f"{gain:g}x")
    ax.yaxis.set_minor_formatter("")
    ax.set_xlim(-0.3, len(BLOCKS) + 0.7)
    ax.set_xticks([*(i + 0.3 for i in range(len(BLOCKS)))], [str(block) for block in BLOCKS])
    ax.set_xlabel("threads a block")
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    return figure


def _phased(found: Sequence[Measurement]) -> list[Measurement]:
    """Return the naive version's best block on each large shape, if it tells its phases."""
    naive = [each for each in pick(found, part="256 MB", rung="r10_naive") if each.phases]
    best: dict[int, Measurement] = {}
    for each in sorted(naive, key=lambda each: each.seconds or 0.0):
        best.setdefault(each.d, each)
    return list(best.values())


def _shares(found: Measurement) -> dict[str, float]:
    whole = sum(found.phases.values())
    return {phase: part / whole for phase, part in found.phases.items()}


def _pies(found: Sequence[Measurement]) -> Figure:
    from lloydia.plots import BRIGHT

    figure, axes = blank(
        "Where the naive version's time goes", "", height=3.4, columns=1 + len(found)
    )
    titles = [f"{each.n:,} x {each.d}" for each in found]
    pies = [*map(_shares, found), PHASES]
    hues = dict(zip(PHASES, BRIGHT))
    for ax, title, parts in zip(axes, [*titles, "the source's (V100)"], pies):
        some = {phase: part for phase, part in parts.items() if part >= 0.005}
        wedges, _ = ax.pie(
            list(some.values()), colors=[hues[phase] for phase in some], startangle=90
        )
        labels = [f"{phase} {part:.0%}" for phase, part in some.items()]
        ax.legend(wedges, labels, loc="upper center", bbox_to_anchor=(0.5, 0), frameon=False)
        ax.set_title(title, fontsize="medium")
    return figure
