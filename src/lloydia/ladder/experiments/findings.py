"""T's findings, asked of our own measurements: which hold here, and which do not.

All are of the largest n that was measured, where the GPU has the most to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.figures import name, seconds, speedup
from lloydia.ladder.experiments.lab import PEERS
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.t import BLOCKS, GLOBAL, SHARED, SOLVERS

__all__ = ["sheet"]

FASTER_SHARED = {"float64": (1.4, 1.6), "float32": (1.8, 2.0)}


def sheet(found: Sequence[Measurement]) -> Sheet:
    """Return the findings of the thesis beside ours; no lines without a GPU's series."""
    series = pick(found, experiment="T", part="series")
    largest = max((each.n for each in pick(series, rung=GLOBAL)), default=0)
    lines = []
    for dtype in ("float64", "float32"):
        some = pick(series, n=largest, dtype=dtype)
        if all(pick(some, rung=rung) for rung in (*GLOBAL, *SHARED)):
            lines += [[f"{dtype}: {told}", *line] for told, *line in _asked(dtype, some)]
    heads = ["the thesis found", "here", "holds"]
    return Sheet(f"T's findings at n = {largest:,}", heads, lines)


def _asked(dtype: str, found: Sequence[Measurement]) -> Iterator[list[str]]:
    yield _beats(found)
    yield _best_blocks(found)
    yield _shared(dtype, found)
    yield from _orders(dtype, found)


def _beats(found: Sequence[Measurement]) -> list[str]:
    """Every CUDA solver with 64 or 256 threads beats scikit-learn."""
    told = "blocks of 64 and 256 beat scikit-learn"
    peers = [each.seconds or 0.0 for each in pick(found, rung=PEERS)]
    if not peers:
        return [told, "scikit-learn was not measured", ""]
    solvers = pick(found, rung=(*GLOBAL, *SHARED), block=(64, 256))
    ratios = {name(each): min(peers) / (each.seconds or 1.0) for each in solvers}
    worst = min(ratios, key=lambda each: ratios[each])
    won = sum(ratio > 1 for ratio in ratios.values())
    here = f"{won} of {len(ratios)} do; the slowest, {worst}: {speedup(ratios[worst])}"
    return [told, here, _verdict(won, len(ratios))]


def _best_blocks(found: Sequence[Measurement]) -> list[str]:
    """Of all block sizes 64 is the best."""
    best = [_best(pick(found, rung=rung)) for rung in (*GLOBAL, *SHARED)]
    counts = {block: sum(each.block == block for each in best) for block in BLOCKS}
    here = ", ".join(f"{block} for {count}" for block, count in counts.items() if count)
    return ["blocks of 64 are best", f"of 6 solvers: {here}", _verdict(counts[64], len(best))]


def _shared(dtype: str, found: Sequence[Measurement]) -> list[str]:
    """Shared memory is faster than global by some factor."""
    low, high = FASTER_SHARED[dtype]
    told = f"shared memory is {low}x to {high}x as fast as global"
    ratios = [_seconds(found, slow) / _seconds(found, fast) for slow, fast in zip(GLOBAL, SHARED)]
    here = ", ".join(f"{solver} {speedup(ratio)}" for solver, ratio in zip(SOLVERS, ratios))
    return [told, here, _verdict(sum(ratio >= low for ratio in ratios), len(ratios))]


def _orders(dtype: str, found: Sequence[Measurement]) -> Iterator[list[str]]:
    """Hamerly before Elkan before Lloyd in float64, but Lloyd first on the GPU in float32."""
    for where, rungs in (("global", GLOBAL), ("shared", SHARED)):
        times = {solver: _seconds(found, rung) for solver, rung in zip(SOLVERS, rungs)}
        order = sorted(times, key=lambda solver: times[solver])
        here = " < ".join(f"{solver} {seconds(times[solver])}" for solver in order)
        if dtype == "float64":
            holds = order == ["hamerly", "elkan", "lloyd"]
            yield [f"{where}: hamerly < elkan < lloyd in time", here, "yes" if holds else "no"]
        else:
            yield [f"{where}: lloyd is fastest", here, "yes" if order[0] == "lloyd" else "no"]


def _best(found: Sequence[Measurement]) -> Measurement:
    return min(found, key=lambda each: each.seconds or 0.0)


def _seconds(found: Sequence[Measurement], rung: str) -> float:
    """Return a rung's time with its best block."""
    return _best(pick(found, rung=rung)).seconds or 0.0


def _verdict(held: int, of: int) -> str:
    return "yes" if held == of else "partly" if held else "no"
