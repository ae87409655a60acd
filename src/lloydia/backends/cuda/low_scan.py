r"""Rows of few features (d <= 8): no matrix units, a row in registers, centres broadcast.

Scores are those of :mod:`lloydia.exact.certificate`, in float32, in a frame fixed for the run; the
largest wins.  A program lists the rows that are in doubt, which canonical D settles, and those that
change, which move from sum to sum.  The centres follow in the same launch: all programs are
resident, so they wait for each other, and one launch runs as many iterations as are queued.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.flow import HALT, N_CHANGED, N_RECHECKED
from lloydia.backends.cuda.launching import EXACT, INTERPRETED, ceil_div, next_power, processors
from lloydia.backends.cuda.means import block_of, finish
from lloydia.backends.cuda.run import Run
from lloydia.backends.cuda.sums import move_row_values

__all__ = ["iterate", "wait_for_all"]

# Programs that a multiprocessor holds at a time, the rows that one looks at together, and the
# products that it moves together.
RESIDENT, ROWS, MOVED = 4, 512, 1024

# Rows in doubt that are settled together, one a thread, and centres under way at a time.
SETTLED, UNROLL = tl.constexpr(128), tl.constexpr(4)


@triton.jit
def features(source, at, mask, d: tl.constexpr):
    """Return d vectors (or numbers): the features of the rows that start at `at`."""
    x = ()
    for f in tl.static_range(d):
        x = x + (tl.load(source + at + f, mask=mask, other=0.0),)
    return x


@triton.jit
def framed(x, frame, d: tl.constexpr):
    """Return features in the frame (d origins and the scale), in float32."""
    kind: tl.constexpr = frame[0].dtype
    y = ()
    for f in tl.static_range(d):
        y = y + (((x[f].to(kind) - frame[f]) * frame[d]).to(tl.float32),)
    return y


@triton.jit
def line(centers, frame, k, d: tl.constexpr, BLOCK: tl.constexpr):
    """Return (a, b) such that scores of a row of radius R are off by at most ``a + b R**2``.

    As :func:`lloydia.exact.certificate.error_line`, with 2 d more roundings, since ``|b_j|**2 / 2``
    is summed in float32; rounded up.
    """
    reach = 0.0
    for first in range(0, k, BLOCK):
        j = first + tl.arange(0, BLOCK)
        b = framed(features(centers, j * d, j < k, d), frame, d)
        squares = tl.zeros((BLOCK,), tl.float32)
        for f in tl.static_range(d):
            squares = tl.fma(b[f], b[f], squares)
        reach = tl.maximum(reach, tl.max(tl.where(j < k, squares, 0.0), 0))
    # A bound on |c'_j|**2; NaN and infinity certify nothing.
    square = reach.to(tl.float64) * 1.00001 + 1e-30
    unit: tl.constexpr = 2.0**-24
    factor = (3 * d + 6) * unit * 1.001
    # 2**-536 the scale.
    tiny = frame[d].to(tl.float64) * 4.450147717014403e-162
    underflow = d * tiny * tiny + 1e-36
    a = 1.5 * factor * square + underflow
    b = 0.5 * factor + 1e-14
    a = tl.where(square < 1e24, a, float("inf"))
    return (a * 1.000001).to(tl.float32), (b * 1.00001 + 0.0 * a).to(tl.float32)


@triton.jit
def approximate(x, centers, frame, k, a, b, d: tl.constexpr, BLOCK: tl.constexpr):
    """Return the labels of a block of rows by their scores, and whether each is certain."""
    y = framed(x, frame, d)
    radius = tl.zeros((BLOCK,), tl.float32)
    for f in tl.static_range(d):
        radius = tl.fma(y[f], y[f], radius)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    second = best
    label = tl.zeros((BLOCK,), tl.int32)
    for j in tl.range(0, k, loop_unroll_factor=UNROLL):
        c = framed(features(centers, j * d, j < k, d), frame, d)
        start = c[0] * c[0]
        for f in tl.static_range(1, d):
            start = tl.fma(c[f], c[f], start)
        score = tl.zeros((BLOCK,), tl.float32) - 0.5 * start
        for f in tl.static_range(d):
            score = tl.fma(y[f], c[f] + tl.zeros((BLOCK,), tl.float32), score)
        second = tl.maximum(second, tl.minimum(best, score))
        label = tl.where(score > best, j, label)
        best = tl.maximum(best, score)
    # The difference is rounded once more.  Anything that is no number is in doubt.
    return label, (best - second) > 2.00001 * (a + b * radius)


@triton.jit
def canonical(x, centers, k, d: tl.constexpr, BLOCK: tl.constexpr):
    """Return the labels of a block of rows by canonical D."""
    least = tl.full((BLOCK,), float("inf"), tl.float64)
    label = tl.zeros((BLOCK,), tl.int32)
    for j in tl.range(0, k, loop_unroll_factor=UNROLL):
        c = features(centers, j * d, j < k, d)
        D = tl.zeros((BLOCK,), tl.float64)
        for f in tl.static_range(d):
            difference = x[f].to(tl.float64) - c[f].to(tl.float64)
            D += difference * difference
        label = tl.where(D < least, j, label)
        least = tl.minimum(least, D)
    return label


@triton.jit
def note_changes(rows, new, mask, labels, listed_rows, listed_old, n_changed):
    """Write the labels of rows, list those that change, and return how many are listed now."""
    old = tl.load(labels + rows, mask=mask, other=0)
    changed = mask & (new != old)
    chosen = changed.to(tl.int32)
    count = tl.sum(chosen, 0)
    if count > 0:
        tl.store(labels + rows, new, mask=changed)
        at = n_changed + tl.cumsum(chosen, 0) - chosen
        tl.store(listed_rows + at, rows, mask=changed)
        tl.store(listed_old + at, old, mask=changed)
    return n_changed + count


@triton.jit
def wait_for_all(arrivals, n_programs, passed):
    """Wait until every program has come here; `passed` is how often they have before."""
    tl.debug_barrier()
    tl.atomic_add(arrivals, 1, sem="acq_rel")
    while tl.atomic_add(arrivals, 0, sem="acq_rel") < n_programs * (passed + 1):
        pass
    tl.debug_barrier()


@triton.jit(
    do_not_specialize=[
        "n", "k", "n_limbs", "bits", "n_slots", "settles", "room", "n_iterations",
    ]
)  # fmt: skip
def low_kernel(
    X, n, k, weights, lattice, frame_numbers, labels, sums, n_limbs, bits, exponents,
    current, history, n_slots, report, flow, settles, changed_rows, changed_old, doubts, room,
    arrivals, n_iterations,
    d: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr, ROWS: tl.constexpr,
    MOVED: tl.constexpr, COLUMNS: tl.constexpr, CENTERS: tl.constexpr,
    REPLICAS: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Run iterations; with ``n_iterations = 0``, one assignment without sums."""
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    limb_size = k.to(tl.int64) * (d + 1)
    own = sums + (program % REPLICAS) * n_limbs * limb_size
    column = tl.arange(0, COLUMNS)
    kind: tl.constexpr = tl.float64 if X.dtype.element_ty == tl.float64 else tl.float32
    frame = ()
    for f in tl.static_range(d + 1):
        frame = frame + (tl.load(frame_numbers + f).to(kind),)
    # This program's lists: rows that change, and rows in doubt.
    listed_rows = changed_rows + program * room
    listed_old = changed_old + program * room
    listed_doubts = doubts + program * room
    running = tl.load(flow + HALT) == 0
    done = 0
    while running:
        a, b = line(current, frame, k, d, CENTERS)
        n_changed = 0
        n_doubts = 0
        for block in range(program, tl.cdiv(n, ROWS), n_programs):
            rows = block * ROWS + tl.arange(0, ROWS)
            mask = rows < n
            x = features(X, rows.to(tl.int64) * d, mask, d)
            new, certain = approximate(x, current, frame, k, a, b, d, ROWS)
            n_changed = note_changes(
                rows, new, mask & certain, labels, listed_rows, listed_old, n_changed
            )
            doubtful = (mask & ~certain).to(tl.int32)
            count = tl.sum(doubtful, 0)
            if count > 0:
                at = n_doubts + tl.cumsum(doubtful, 0) - doubtful
                tl.store(listed_doubts + at, rows, mask=doubtful > 0)
            n_doubts += count
        # What other threads of this program have listed is read below.
        tl.debug_barrier()
        for first in range(0, n_doubts, SETTLED):
            entry = first + tl.arange(0, SETTLED)
            mask = entry < n_doubts
            rows = tl.load(listed_doubts + entry, mask=mask, other=0)
            x = features(X, rows.to(tl.int64) * d, mask, d)
            new = canonical(x, current, k, d, SETTLED)
            n_changed = note_changes(rows, new, mask, labels, listed_rows, listed_old, n_changed)
        tl.debug_barrier()
        tl.atomic_add(flow + N_CHANGED, n_changed, sem="relaxed")
        tl.atomic_add(flow + N_RECHECKED, n_doubts, sem="relaxed")
        if n_iterations > 0:
            for first in range(0, n_changed, MOVED):
                entry = first + tl.arange(0, MOVED)
                mask = entry < n_changed
                rows = tl.load(listed_rows + entry, mask=mask, other=0)
                old = tl.load(listed_old + entry, mask=mask, other=-1)
                new = tl.load(labels + rows, mask=mask, other=0)
                move_row_values(
                    X, rows, column, mask, d, weights, lattice, own, old, new,
                    bits, n_limbs, limb_size, WEIGHTED, RECOVER,
                )  # fmt: skip
        running = done + 1 < n_iterations
        if n_iterations > 0:
            wait_for_all(arrivals, n_programs, 2 * done)
            finish(
                program, n_programs, sums, n_limbs, bits, exponents, k, d,
                current, history, n_slots, report, flow, settles, REPLICAS, BLOCK_K, BLOCK_D,
            )  # fmt: skip
            wait_for_all(arrivals, n_programs, 2 * done + 1)
            running = running & (tl.load(flow + HALT, volatile=True) == 0)
        done += 1
    # The last program to leave makes the barrier ready for the next launch.
    if tl.atomic_add(arrivals + 1, 1, sem="acq_rel") == n_programs - 1:
        tl.store(arrivals, 0)
        tl.store(arrivals + 1, 0)


def iterate(run: Run, n_iterations: int) -> None:
    """Queue iterations of a run, or with 0 one assignment without sums."""
    rows, lattice = run.rows, run.lattice
    n, d = rows.X.shape
    n_replicas, n_limbs, k, m = run.sums.shape
    programs = RESIDENT * processors(rows.device)
    block = min(max(next_power(ceil_div(n, programs)), 128), ROWS)
    programs = 1 if INTERPRETED else min(programs, ceil_div(n, block))
    room = ceil_div(ceil_div(n, block), programs) * block
    columns = next_power(m)
    # All programs have to be resident: a thread may have so many registers.
    options = {"launch_cooperative_grid": True, "maxnreg": 65536 // (128 * RESIDENT)}
    low_kernel[(programs,)](
        rows.X, n, k, lattice.weights, lattice.columns, lattice.frame, run.labels,
        run.sums, n_limbs, lattice.grid.bits, lattice.exponents,
        run.current, run.history, len(run.history), run.report, run.flow, run.settles,
        run.changed_rows, run.changed_old, run.doubts, room, run.arrivals, n_iterations,
        d=d, WEIGHTED=lattice.weights is not None, RECOVER=lattice.grid.recover,
        ROWS=block, MOVED=MOVED // columns, COLUMNS=columns, CENTERS=128,
        **block_of(n_replicas, k, m, most=256), **EXACT, **({} if INTERPRETED else options),
    )  # fmt: skip
