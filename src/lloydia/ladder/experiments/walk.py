"""The walk: every rung on one problem that all can do, so that each gain has a number.

1,000,000 points of the plane in 64 overlapping blobs, float64, 20 iterations from random points.
The systems' own experiments have other shapes, where other rungs shine: this one only says what
each step brought here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lloydia import ladder
from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.figures import bars, blank, excuses, name, ordered, seconds, speedup
from lloydia.ladder.experiments.lab import Lab, blobs
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BEFORE", "TITLE", "draw", "run", "sheets"]

TITLE = "Every rung on one problem"
N, K, ITERATIONS = 1_000_000, 64, 20
HOSTS = ("r01_lloyd", "scikit-learn lloyd")
BEFORE = {  # which rung each one changes
    "r01_lloyd": "r00_reference",
    "r02_elkan": "r01_lloyd",
    "r03_hamerly": "r01_lloyd",
    "r04_threaded_lloyd": "r01_lloyd",
    "r05_threaded_elkan": "r02_elkan",
    "r06_threaded_hamerly": "r03_hamerly",
    "r10_naive": "r01_lloyd",
    "r11_distance_matrix": "r10_naive",
    "r12_atomics": "r11_distance_matrix",
    "r13_transposed": "r10_naive",
    "r14_shared_centers": "r13_transposed",
    "r15_all_on_gpu": "r14_shared_centers",
    "r16_tree_lloyd": "r12_atomics",
    "r17_tree_elkan": "r16_tree_lloyd",
    "r18_tree_hamerly": "r17_tree_elkan",
    "r19_chunked_lloyd": "r16_tree_lloyd",
    "r20_chunked_elkan": "r17_tree_elkan",
    "r21_chunked_hamerly": "r18_tree_hamerly",
    "r22_masked_trees": "r15_all_on_gpu",
    "r23_unrolled": "r22_masked_trees",
    "r24_populated": "r64_float_sums",
    "r25_cluster_arrays": "r24_populated",
    "r26_thread_buffers": "r15_all_on_gpu",
    "r27_staged_points": "r14_shared_centers",
    "r28_split_points": "r10_naive",
    "r41_scanning_elkan": "r02_elkan",
    "r42_scanning_hamerly": "r03_hamerly",
    "r43_threaded_scanning_lloyd": "r04_threaded_lloyd",
    "r44_threaded_scanning_elkan": "r05_threaded_elkan",
    "r45_threaded_scanning_hamerly": "r06_threaded_hamerly",
    "r50_counted_changes": "r11_distance_matrix",
    "r51_reduced_moves": "r11_distance_matrix",
    "r52_sorted_segments": "r22_masked_trees",
    "r53_scanning_means": "r01_lloyd",
    "r60_sequential_sums": "r01_lloyd",
    "r61_dynamic_schedule": "r60_sequential_sums",
    "r62_atomic_sums": "r60_sequential_sums",
    "r63_critical_sums": "r60_sequential_sums",
    "r64_float_sums": "r15_all_on_gpu",
}


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure every rung that there is."""
    n, k = lab.size(N, K)
    X = blobs(n, k, "float64")
    start = X[np.random.default_rng(1).choice(n, k, replace=False)]
    names = ladder.names()
    cpu = ("scikit-learn elkan", *(each for each in names if ladder.where(each) == "cpu"))
    cuda = [each for each in names if ladder.where(each) == "cuda"]
    trial = Trial("walk", "steps", X, start, None, lab.iterations(ITERATIONS))
    yield from lab.measure(trial, lab.contenders(cpu=cpu, cuda=cuda, hosts=HOSTS))


def sheets(found: Sequence[Measurement]) -> list[Sheet]:
    """Return one table: the time of an iteration, and the gain over the rung that each changes."""
    timed = {each.rung: each.per_iteration for each in pick(found)}  # the last team is the largest
    lines = []
    for each in ordered(pick(found)):
        before = BEFORE.get(each.rung, "")
        gain = timed[before] / each.per_iteration if before in timed else None
        first = timed["r01_lloyd"] / each.per_iteration if "r01_lloyd" in timed else None
        over = f"{speedup(gain)} over {before[1:3]}" if gain else ""
        lines.append([name(each), seconds(each.per_iteration), over, speedup(first)])
    heads = ["", "time", "gain", "over 01 lloyd"]
    return [Sheet(f"{_shape(found)}: an iteration", heads, lines, excuses(found))]


def draw(found: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw the time of an iteration, a bar a rung."""
    some = pick(found)
    figure, (ax,) = blank("Up the ladder: one iteration", _shape(some), height=1 + 0.3 * len(some))
    bars(ax, some, lambda each: each.per_iteration)
    return {"steps": figure}


def _shape(found: Sequence[Measurement]) -> str:
    largest = max(found, key=lambda each: each.n)
    return f"{largest.n:,} x {largest.d}, k = {largest.k}, {largest.dtype}"
