"""The table of centres that rows are scored against: in the frame, with what certifies a score.

It begins with the numbers of :func:`lloydia.backends.cuda.low_dim.scores.margin`.  A centre is d
features in the frame and the start of its score, ``p - |b|**2 / 2 + L``; centres that never win
follow, up to a multiple of CENTERS_PER_STEP.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import STOPPED, wait_for_previous_kernel
from lloydia.backends.cuda.low_dim.scores import (
    CENTERS_PER_STEP,
    FAR_ROW,
    HEADER,
    framed,
    pitch_of,
)
from lloydia.backends.cuda.runtime.launching import ceil_div

__all__ = ["frame_at", "table_size", "tabulate", "tabulate_kernel"]

# Centres whose squared norm is below it may win.  The other is less than every score.
FAR_CENTER, LEAST = tl.constexpr(1e36), tl.constexpr(-3.0e38)
# Centres that are tabulated at a time.
BLOCK = tl.constexpr(128)


def table_size(k: int, d: int) -> int:
    """Return how many numbers the table of k centres has."""
    return HEADER.value + ceil_div(k, CENTERS_PER_STEP.value) * CENTERS_PER_STEP.value * pitch_of(d)


@triton.constexpr_function
def factor_of(d):
    """Return K of :mod:`lloydia.exact.certificate`, rounded up.

    Of its d + 4 roundings ``N**2`` needs d / 2 + 2: the others are there for ``|b|**2``, which is
    summed in float32.  One more is of starts that are lifted.
    """
    return (d + 5) * 2.0**-24 * 1.001


@triton.jit
def frame_at(numbers, kind: tl.constexpr, d: tl.constexpr):
    """Return the frame, d origins and the scale, of a fixed-point grid's numbers."""
    at = numbers.to(tl.pointer_type(tl.float64)) + 3 * (d + 1)
    frame = ()
    for f in tl.static_range(d + 1):
        frame = frame + (tl.load(at + f).to(kind),)
    return frame


@triton.jit
def write_line(table, farthest, nearest, lift, scale, d: tl.constexpr):
    """Write the numbers of :func:`scores.margin`, by the largest and the least ``|b|**2``."""
    factor: tl.constexpr = factor_of(d)
    # Bounds on the largest and the least squared norm; infinity certifies nothing.
    farthest = farthest.to(tl.float64) * 1.00001 + 1e-30
    nearest = nearest.to(tl.float64) * 1.00001 + 1e-30
    tiny = scale.to(tl.float64) * 2.0**-536
    underflow = d * tiny * tiny + 1e-36
    far = nearest >= FAR_ROW
    a = tl.where(far, float("inf"), 1.5 * factor * farthest + underflow)
    b = 0.5 * factor + 1e-14
    c = tl.where(far, float("inf"), 7.8 * factor * nearest + underflow)
    lifted = factor * 1.00001 * lift.to(tl.float64)
    # More than 2: the difference of scores is rounded, and this bound itself.
    twice: tl.constexpr = 2.00003
    tl.store(table, (twice * (a + lifted)).to(tl.float32))
    tl.store(table + 1, 16.0 * twice * b)
    tl.store(table + 2, (twice * (c + lifted)).to(tl.float32))
    tl.store(table + 3, twice * b)


@triton.jit
def read_centers(centers, frame, j, k, d: tl.constexpr):
    """Return centres in the frame, and their ``|b|**2``, which is summed in float32."""
    center = ()
    for f in tl.static_range(d):
        at = centers + j * d + f
        center = center + (tl.load(at, mask=j < k, other=0.0, volatile=True),)
    b = framed(center, frame, d)
    squares = tl.zeros(j.shape, tl.float32)
    for f in tl.static_range(d):
        squares = tl.fma(b[f], b[f], squares)
    return b, squares


@triton.jit
def tabulate(centers, frame, table, k, d: tl.constexpr):
    """Write the table of k centres, by one program.

    Centres are read past the first cache: other programs of the launch may have written them.
    """
    PITCH: tl.constexpr = pitch_of(d)
    factor: tl.constexpr = factor_of(d)
    farthest, nearest, second = 0.0, float("inf"), float("inf")
    padded = tl.cdiv(k, CENTERS_PER_STEP) * CENTERS_PER_STEP
    for first in range(0, padded, BLOCK):
        j = first + tl.arange(0, BLOCK)
        b, squares = read_centers(centers, frame, j, k, d)
        ordinary = (j < k) & (squares < FAR_CENTER)
        entry = table + HEADER + j * PITCH
        for f in tl.static_range(d):
            tl.store(entry + f, tl.where(ordinary, b[f], 0.0), mask=j < padded)
        farthest = tl.maximum(farthest, tl.max(tl.where(j < k, squares, 0.0), 0))
        squares = tl.where(j < k, squares, float("inf"))
        least = tl.min(squares, 0)
        which = tl.min(tl.where(squares == least, j, k), 0)
        others = tl.min(tl.where(j == which, float("inf"), squares), 0)
        second = tl.minimum(tl.maximum(nearest, least), tl.minimum(second, others))
        nearest = tl.minimum(nearest, least)
    # Infinite of one centre: so lifted, its score is certain to beat the 0 of none.
    lift = 2.0 * tl.minimum(second, FAR_ROW)
    for first in range(0, padded, BLOCK):
        j = first + tl.arange(0, BLOCK)
        _, squares = read_centers(centers, frame, j, k, d)
        start = (1.50001 * factor - 0.5) * squares + lift
        start = tl.where((j < k) & (squares < FAR_CENTER), start, LEAST)
        tl.store(table + HEADER + j * PITCH + d, start, mask=j < padded)
    write_line(table, farthest, nearest, lift, frame[d], d)


@triton.jit(
    do_not_specialize=["k"],
    do_not_specialize_on_alignment=["current", "numbers", "table", "run_state"],
)
def tabulate_kernel(current, k, numbers, table, run_state, d: tl.constexpr):
    """Write the table of centres that no kernel has computed, unless the run has stopped.

    Parameters
    ----------
    current : IN, float32 or float64 (k, d)
    numbers : IN, int64 (5 (d + 1),)
        Those of the fixed-point grid.
    table : OUT, float32 (table_size(k, d),)
    run_state : IN, int32
    """
    wait_for_previous_kernel()
    if tl.load(run_state + STOPPED) == 0:
        tabulate(current, frame_at(numbers, current.dtype.element_ty, d), table, k, d)
