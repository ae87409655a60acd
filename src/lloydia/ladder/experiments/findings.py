"""T's findings compared with our own measurements: which hold here, and which do not.

All are of the largest n that was measured.  Where the thesis says "Sklearn", the faster of
scikit-learn's two algorithms is taken, on all cores; the thesis does not say on how many it ran.
Where one of the two has no time at that n, the largest n is taken at which both have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.figures import name, seconds, speedup
from lloydia.ladder.experiments.lab import PEERS
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.t import (
    BLOCKS,
    GLOBAL,
    SEQUENTIAL,
    SHARED,
    SOLVERS,
    TEAMS,
    THREADED,
)

__all__ = ["sheet", "verdict"]

FASTER_SHARED = {"float64": (1.4, 1.6), "float32": (1.8, 2.0)}
SMALL = (64, 256)  # the blocks that T's findings about shared memory are of
Found = Sequence[Measurement]
Line = list[str]  # what the thesis found, what is so here, whether it holds


def sheet(found: Found) -> Sheet:
    """Return the findings of the thesis beside ours; no lines without a series of T's solvers."""
    series = pick(found, experiment="T", part="series", rung=(*PEERS, *SOLVED))
    largest = max((each.n for each in pick(series, rung=SOLVED)), default=0)
    lines = []
    for dtype in ("float64", "float32"):
        own = pick(series, dtype=dtype)
        some = pick(own, n=largest)
        lines += [
            [f"{dtype}: {told}", *line]
            for told, *line in _asked(dtype, some, _with_peers(own, some))
        ]
    heads = ["the thesis found", "here", "holds"]
    return Sheet(f"T's findings at n = {largest:,}", heads, lines)


SOLVED = (*SEQUENTIAL, *THREADED, *GLOBAL, *SHARED)


def _with_peers(found: Found, largest: Found) -> Found:
    """Return those of the largest n at which both of scikit-learn's algorithms have a time.

    If there is no such n, they are `largest`.
    """
    needed = {each.rung for each in largest} | set(PEERS)
    sizes = {each.n for each in found}
    both = [n for n in sizes if needed <= {each.rung for each in pick(found, n=n)}]
    return pick(found, n=max(both)) if both else largest


def _asked(dtype: str, found: Found, beside: Found) -> Iterator[Line]:
    if _all(found, SEQUENTIAL):
        yield _at(beside, found, _slower_than_peers(beside))
        yield _order("sequential: hamerly < elkan < lloyd in time", found, SEQUENTIAL)
    if _all(found, THREADED):
        yield from _threads(found)
        for team in TEAMS:
            yield _at(beside, found, _team_and_peers(beside, team))
    if _all(found, GLOBAL) and _all(found, SHARED):
        yield _at(beside, found, _beats(beside, SMALL, "blocks of 64 and 256 beat scikit-learn"))
        yield _at(beside, found, _beats(beside, BLOCKS, "all CUDA solvers beat scikit-learn"))
        if pick(found, rung=(*SEQUENTIAL, *THREADED)):
            yield _beats_processor(found)
        yield _best_blocks(dtype, found)
        yield _faster_shared(found)
        yield _shared(dtype, found)
        yield from _gpu_orders(dtype, found)


def _all(found: Found, rungs: Iterable[str]) -> bool:
    return all(pick(found, rung=rung) for rung in rungs)


def _at(beside: Found, found: Found, line: Line) -> Line:
    """Return a line about scikit-learn with its n, where that is not the largest."""
    told, here, holds = line
    smaller = bool(beside) and beside[0].n != found[0].n
    return [told, f"at n = {beside[0].n:,}: {here}" if smaller else here, holds]


def _slower_than_peers(found: Found) -> Line:
    """Sequential solvers are slower than scikit-learn."""
    told = "sequential solvers are slower than scikit-learn"
    if not (peer := _peer(found)):
        return [told, "scikit-learn was not measured", ""]
    times = {solver: _seconds(found, rung) for solver, rung in zip(SOLVERS, SEQUENTIAL)}
    here = ", ".join(f"{solver} {speedup(time / peer)}" for solver, time in times.items())
    held = sum(time > peer for time in times.values())
    return [told, f"scikit-learn's gain over them: {here}", verdict(held, len(times))]


def _threads(found: Found) -> Iterator[Line]:
    """All threaded solvers beat Lloyd's on one thread; their order is the sequential one."""
    every = pick(found, rung=THREADED)
    # The thesis has these numbers of threads only; a machine of fewer cores has others.
    runs = pick(every, threads=TEAMS) or every
    if one := _seconds(found, SEQUENTIAL[0]):
        gains = {name(each): one / (each.seconds or 1.0) for each in runs}
        worst = min(gains, key=lambda each: gains[each])
        here = f"the slowest, {worst}: {speedup(gains[worst])}"
        held = sum(gain > 1 for gain in gains.values())
        yield ["all OpenMP solvers beat sequential lloyd", here, verdict(held, len(gains))]
    for team in sorted({each.threads or 1 for each in every}):
        rungs = pick(every, threads=team)
        told = f"{team} threads: hamerly < elkan < lloyd in time"
        yield _order(told, rungs, THREADED)


def _team_and_peers(found: Found, team: int) -> Line:
    """With 8 and 12 threads the solvers beat scikit-learn, with 4 they do not."""
    wins, runs = team > min(TEAMS), pick(found, rung=THREADED, threads=team)
    told = f"{team} threads {'beat' if wins else 'do not beat'} scikit-learn"
    if not runs or not (peer := _peer(found)):
        missing = "scikit-learn was" if runs else f"{team} threads were"
        return [told, f"{missing} not measured", ""]
    ratios = [peer / _seconds(runs, rung) for rung in THREADED]
    here = ", ".join(f"{solver} {speedup(ratio)}" for solver, ratio in zip(SOLVERS, ratios))
    held = sum((ratio > 1) == wins for ratio in ratios)
    return [told, here, verdict(held, len(ratios))]


def _beats(found: Found, blocks: tuple[int, ...], told: str) -> Line:
    """Every CUDA solver with these blocks beats scikit-learn."""
    if not (peer := _peer(found)):
        return [told, "scikit-learn was not measured", ""]
    solvers = pick(found, rung=(*GLOBAL, *SHARED), block=blocks)
    ratios = {name(each): peer / (each.seconds or 1.0) for each in solvers}
    worst = min(ratios, key=lambda each: ratios[each])
    won = sum(ratio > 1 for ratio in ratios.values())
    here = f"{won} of {len(ratios)} do; the slowest, {worst}: {speedup(ratios[worst])}"
    return [told, here, verdict(won, len(ratios))]


def _beats_processor(found: Found) -> Line:
    """Every CUDA solver beats every sequential and OpenMP solver."""
    slowest = max(pick(found, rung=(*GLOBAL, *SHARED)), key=lambda each: each.seconds or 0.0)
    fastest = _best(pick(found, rung=(*SEQUENTIAL, *THREADED)))
    ratio = (fastest.seconds or 0.0) / (slowest.seconds or 1.0)
    here = f"the slowest, {name(slowest)}, over the fastest, {name(fastest)}: {speedup(ratio)}"
    told = "all CUDA solvers beat all sequential and OpenMP solvers"
    return [told, here, "yes" if ratio > 1 else "no"]


def _best_blocks(dtype: str, found: Found) -> Line:
    """Of all block sizes 64 is the best, but 256 for Elkan's in shared memory in float32."""
    wanted = dict.fromkeys((*GLOBAL, *SHARED), 64)
    told = "blocks of 64 are best"
    if dtype == "float32":
        wanted["r20_chunked_elkan"] = 256
        told += ", but 256 for elkan in shared memory"
    best = {rung: _best(pick(found, rung=rung)).block for rung in wanted}
    counts = {block: sum(each == block for each in best.values()) for block in BLOCKS}
    here = ", ".join(f"{block} for {count}" for block, count in counts.items() if count)
    here = f"of 6 solvers: {here}; elkan in shared memory: {best['r20_chunked_elkan']}"
    held = sum(best[rung] == block for rung, block in wanted.items())
    return [told, here, verdict(held, len(wanted))]


def _faster_shared(found: Found) -> Line:
    """With blocks of 64 and 256 shared memory is faster than global."""
    told = "with blocks of 64 and 256 shared memory is faster than global"
    gains = [
        _seconds(pick(found, block=block), slow) / _seconds(pick(found, block=block), fast)
        for block in SMALL
        for slow, fast in zip(GLOBAL, SHARED)
    ]
    here = f"{speedup(min(gains))} to {speedup(max(gains))}"
    return [told, here, verdict(sum(gain > 1 for gain in gains), len(gains))]


def _shared(dtype: str, found: Found) -> Line:
    """Shared memory is faster than global by some factor, with blocks of 64 and of 256."""
    low, high = FASTER_SHARED[dtype]
    told = f"with blocks of 64 and 256 shared memory is {low} to {high} times as fast as global"
    here, ratios = [], []
    for block in BLOCKS:
        some = pick(found, block=block)
        gains = [_seconds(some, slow) / _seconds(some, fast) for slow, fast in zip(GLOBAL, SHARED)]
        words = ", ".join(f"{solver} {speedup(gain)}" for solver, gain in zip(SOLVERS, gains))
        here.append(f"{block}: {words}")
        ratios += gains if block in SMALL else []
    held = sum(low <= round(ratio, 1) <= high for ratio in ratios)
    more = sum(ratio > high for ratio in ratios)
    holds = "more" if more and held + more == len(ratios) else verdict(held, len(ratios))
    return [told, "; ".join(here), holds]


def _gpu_orders(dtype: str, found: Found) -> Iterator[Line]:
    """In float64 bounds win, but for the order with blocks of 1024; in float32 Lloyd's does."""
    for where, rungs in (("global", GLOBAL), ("shared", SHARED)):
        for block in BLOCKS:
            some = pick(found, block=block)
            head = f"{where}, blocks of {block}:"
            if dtype == "float32":
                yield _order(f"{head} lloyd is fastest", some, rungs, ("lloyd",))
            elif block == max(BLOCKS):
                yield _order(f"{head} elkan is faster than hamerly", some, rungs[1:])
            else:
                yield _order(f"{head} hamerly < elkan < lloyd in time", some, rungs)


def _order(
    told: str, found: Found, rungs: Sequence[str], first: tuple[str, ...] | None = None
) -> Line:
    """Return the solvers' order in time, and whether it begins as wanted.

    It does by default if the order is that of the thesis: Hamerly, Elkan, Lloyd for all three, and
    Elkan, Hamerly for two.
    """
    solvers = SOLVERS[-len(rungs) :]
    times = {solver: _seconds(found, rung) for solver, rung in zip(solvers, rungs)}
    order = sorted(times, key=lambda solver: times[solver])
    wanted = first or (tuple(reversed(SOLVERS)) if len(rungs) == 3 else solvers)
    here = " < ".join(f"{solver} {seconds(times[solver])}" for solver in order)
    return [told, here, "yes" if tuple(order[: len(wanted)]) == wanted else "no"]


def _peer(found: Found) -> float | None:
    """Return the time of the faster of scikit-learn's algorithms."""
    return min((each.seconds or 0.0 for each in pick(found, rung=PEERS)), default=None)


def _best(found: Found) -> Measurement:
    return min(found, key=lambda each: each.seconds or 0.0)


def _seconds(found: Found, rung: str) -> float:
    """Return a rung's best time."""
    return _best(pick(found, rung=rung)).seconds or 0.0


def verdict(held: int, of: int) -> str:
    """Return whether something holds that was found in so many cases of some."""
    return "yes" if held == of else "partly" if held else "no"
