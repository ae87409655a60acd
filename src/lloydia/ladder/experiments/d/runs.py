"""What D measures.

`sizes` are tables 3 to 6 and `clusters` is table 2; `OpenMP` are tables 7 and 8; `centres` tests
the claim that centres in global memory halve the speed of the assignment; `sums` are the ways of
adding up, and the schedules, that the document tried on threads.

Iterations are fixed, and all do the same work on one thread and with OpenMP.  So those versions do
`SHORT` iterations where the document does 200, unless the image is small; beside a GPU the series
of tables 7 and 8 is shorter still.  Their tables and figures take the time of an iteration times
the document's number of them.

The document's atomic additions are in float32, whose sums of millions of pixels miss the precision
that is asked of all others.  They are held to `ROUGH`, and their tables say how far they are off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lloydia.backends.cpu.runtime.pool import available_threads
from lloydia.ladder.experiments.d.photographs import colors, pixels
from lloydia.ladder.experiments.lab import Contender, Lab
from lloydia.ladder.experiments.measurement import Measurement
from lloydia.ladder.experiments.oracle import Trial

__all__ = [
    *("ARRAYS", "ATOMICS", "CENTRES", "CLUSTERS", "EXACT", "ITERATIONS", "ONE", "ORDER"),
    *("POPULATED", "SUMS", "TEAM", "TEAMED", "TREES", "run"),
]

SIZES = (100_000, 1_000_000, 2_000_000, 10_000_000)
FEW_COLORS, ITERATIONS, SHORT, SMALL = (2, 7), 200, 10, 100_000
ONE, TEAM = "r01_lloyd", "r60_sequential_sums"
ATOMICS, POPULATED, ARRAYS = "r64_float_sums", "r24_populated", "r25_cluster_arrays"
EXACT = "r15_all_on_gpu"  # atomics in float64
ROUGH = 0.02  # of the largest value: how far centres may be off that are sums in float32
TREES, SORTED, ENGINE = "r23_unrolled", "r52_sorted_segments", "r31_engine_cuda"
# The document's own versions first, in its order.
ORDER = (ONE, TEAM, ATOMICS, ARRAYS, POPULATED, EXACT, TREES, SORTED)
# Pixels, k, iterations: table 2, and 12, near which the two meet there.
CLUSTERS = (2_000_000, (1, 2, 3, 4, 5, 7, 10, 12, 15, 20, 25, 26, 27), 100)
TEAMED = (10_000_000, (2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50), 12)  # tables 7 and 8
# The assignment alone, and the iteration, with centres in global and in shared memory.
CENTRES = (("r13_transposed", "r14_shared_centers"), ("r12_atomics", EXACT))
SUMS = (
    *(TEAM, "r61_dynamic_schedule", "r62_atomic_sums", "r63_critical_sums"),
    "r04_threaded_lloyd",
)
SUMMED = (1_000_000, 7, 5)  # pixels, k, iterations


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure the sizes, the series of k, and what the document says beside its tables."""
    everyone = [available_threads()]
    threaded = lab.contenders(hosts=(ONE, TEAM), threads=everyone)
    rest = lab.contenders(
        cpu=("r30_engine_cpu",),
        cuda=(POPULATED, ARRAYS, TREES, ENGINE),
        hosts=("scikit-learn lloyd",),
    )
    rough = lab.contenders(cuda=(ATOMICS,))
    for n, k in dict.fromkeys(lab.size(n, k) for n in SIZES for k in FEW_COLORS):
        whole = _trial(lab, "sizes", n, k, ITERATIONS)
        yield from lab.measure(whole if n <= SMALL else _trial(lab, "sizes", n, k, SHORT), threaded)
        yield from lab.measure(whole, rest)
        yield from lab.measure(replace(whole, tolerance=ROUGH), rough)
    if lab.cuda:
        cuda = (EXACT, ARRAYS, POPULATED, TREES, SORTED, ENGINE)
        most_pixels, clusters, iterations = CLUSTERS
        for size in dict.fromkeys(lab.size(most_pixels, k) for k in clusters):
            trial = _trial(lab, "clusters", *size, iterations)
            yield from lab.measure(trial, lab.contenders(cuda=cuda), repeat=1)
            yield from lab.measure(replace(trial, tolerance=ROUGH), rough, repeat=1)
        names = [rung for pair in CENTRES for rung in pair]
        n, _, _ = TEAMED
        yield from _series(lab, "centres", n, FEW_COLORS, SHORT, lab.contenders(cuda=names))
    n, several, most = TEAMED
    alone, team = lab.contenders(hosts=(ONE,)), lab.contenders(hosts=(TEAM,), threads=everyone)
    if lab.cpu:
        yield from _series(lab, "OpenMP", n, several, most // 2, [*alone, *team])
        yield from _series(lab, "OpenMP", n, several, most, lab.contenders(cpu=("r30_engine_cpu",)))
    else:
        yield from _series(lab, "OpenMP", n, several, 1, alone)
        yield from _series(lab, "OpenMP", n, several, most // 4, team)
    n, k, most = SUMMED
    summed = lab.contenders(hosts=(ONE, *SUMS), threads=everyone)
    yield from _series(lab, "sums", n, (k,), most, summed)


def _series(
    lab: Lab, part: str, n: int, several: Sequence[int], most: int, contenders: list[Contender]
) -> Iterator[Measurement]:
    for size in dict.fromkeys(lab.size(n, k) for k in several):
        yield from lab.measure(_trial(lab, part, *size, most), contenders, repeat=1)


def _trial(lab: Lab, part: str, n: int, k: int, most: int) -> Trial:
    return Trial("D", part, pixels(n), colors(k), None, lab.iterations(most))
