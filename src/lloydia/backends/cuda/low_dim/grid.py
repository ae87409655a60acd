"""The grid of the sums and the frame of the scores, found on the device, without the host.

What :meth:`lloydia.exact.sums.Grid.choose` returns for rows without weights, and their frame
(:mod:`rows.frame`), in the memory of a
:class:`lloydia.backends.cuda.rows.fixed_point_grid.FixedPointGrid`.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.ptx.barrier import leave
from lloydia.backends.cuda.device_functions.run_state import STOPPED
from lloydia.backends.cuda.rows.found_grid import write_columns
from lloydia.backends.cuda.rows.frame import write_frame
from lloydia.backends.cuda.rows.magnitudes import magnitude
from lloydia.backends.cuda.rows.totals import exponent_of
from lloydia.backends.cuda.run_kinds import LOW_DIM
from lloydia.backends.cuda.runtime.launching import INTERPRETED, next_power, stream_of

__all__ = ["measure_kernel", "staging_of"]

# Bounds of all features, at most: a power of two.
BOUNDS = tl.constexpr(2 * next_power(LOW_DIM.max_features or 0))

# By device and handle of the stream: launches on one stream follow each other.
_staging: dict[tuple[int, int], torch.Tensor] = {}


def staging_of(device: torch.device) -> torch.Tensor:
    """Return the scratch of launches on the current stream: it is 0 between them."""
    if device.type == "meta":
        return torch.zeros(BOUNDS.value + 1, dtype=torch.int64, device=device)
    where = (0, 0) if INTERPRETED else (device.index, stream_of(device.index))
    staging = _staging.get(where)
    if staging is None:
        zeros = torch.zeros(BOUNDS.value + 1, dtype=torch.int64, device=device)
        # Another thread may have been quicker.
        staging = _staging.setdefault(where, zeros)
    return staging


@triton.jit
def raised(x, largest, below):
    """Return the largest magnitudes, and complements of the smallest not 0, with some more numbers.

    As integers, which are in the order of the magnitudes that have their bits.
    """
    double: tl.constexpr = x.dtype == tl.float64
    kind: tl.constexpr = tl.float64 if double else tl.float32
    none: tl.constexpr = 0x7FFFFFFFFFFFFFFF if double else 0x7FFFFFFF
    bits = x.to(kind).to(largest.dtype, bitcast=True) & none
    return tl.maximum(largest, bits), tl.maximum(below, tl.where(bits == 0, 0, none - bits))


@triton.jit
def measure(X, n, bounds, d: tl.constexpr, ROWS: tl.constexpr):
    """Raise `bounds` (2 d integers, 0 before) to the magnitudes of this program's rows.

    As :func:`lloydia.backends.cuda.rows.magnitudes.magnitudes_kernel` does.
    """
    integer: tl.constexpr = tl.int64 if X.dtype.element_ty == tl.float64 else tl.int32
    # Rows as they lie in memory; places beyond their ROWS * d are masked.
    place = tl.arange(0, ROWS * triton.next_power_of_2(d))
    largest = tl.zeros(place.shape, integer)
    below = tl.zeros(place.shape, integer)
    program, n_programs, n_full = tl.program_id(0), tl.num_programs(0), n // ROWS
    for block in range(program, n_full, n_programs):
        at = X + tl.full((), ROWS * d, tl.int64) * block + place
        largest, below = raised(tl.load(at, mask=place < ROWS * d, other=0.0), largest, below)
    # The rows that fill no block are the first program's.
    left = tl.where(program == 0, n - n_full * ROWS, 0) * d
    at = X + tl.full((), ROWS * d, tl.int64) * n_full + place
    largest, below = raised(tl.load(at, mask=place < left, other=0.0), largest, below)
    for f in tl.static_range(d):
        own = place % d == f
        top, bottom = tl.max(tl.where(own, largest, 0), 0), tl.max(tl.where(own, below, 0), 0)
        tl.atomic_max(bounds + f, top.to(tl.int64), sem="relaxed")
        tl.atomic_max(bounds + d + f, bottom.to(tl.int64), sem="relaxed")


@triton.jit
def copy_start(start, current, n_numbers, most, bounds, ROWS: tl.constexpr):
    """Make the start the current centres.

    A number whose bits, as float64, are `most` or more raises the bounds to infinity.
    """
    double: tl.constexpr = start.dtype.element_ty == tl.float64
    infinite: tl.constexpr = 0x7FF0000000000000 if double else 0x7F800000
    for block in range(tl.program_id(0), tl.cdiv(n_numbers, ROWS), tl.num_programs(0)):
        at = block * ROWS + tl.arange(0, ROWS)
        value = tl.load(start + at, mask=at < n_numbers, other=0.0)
        tl.store(current + at, value, mask=at < n_numbers)
        largest = tl.max(tl.abs(value.to(tl.float64)).to(tl.int64, bitcast=True), 0)
        raised = tl.full((), infinite, tl.int64)
        tl.atomic_max(bounds, raised, mask=largest >= most, sem="relaxed")


@triton.jit
def fix(X, n, bounds, bits, numbers, d: tl.constexpr):
    """Write the grid and the frame; return the number of limbs, 0 where a row is not finite.

    All programs have raised `bounds`.
    """
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    none: tl.constexpr = 0x7FFFFFFFFFFFFFFF if double else 0x7FFFFFFF
    precision: tl.constexpr = 56 if double else 27
    m: tl.constexpr = d + 1
    span = tl.zeros((), tl.int32)
    finite = n > 0
    for f in tl.static_range(d):
        largest = magnitude(tl.load(bounds + f, volatile=True), double)
        smallest = magnitude(none - tl.load(bounds + d + f, volatile=True), double)
        finite = finite & (largest < float("inf"))
        exponent = exponent_of(largest)
        places = exponent - (exponent_of(smallest) - 1)
        span = tl.maximum(span, tl.where(largest > 0, places, 0))
        write_columns(numbers, f, exponent, bits, m, None)
    write_columns(numbers, d, tl.zeros((), tl.int32), bits, m, None)
    COLUMNS: tl.constexpr = triton.next_power_of_2(d)
    f = tl.arange(0, COLUMNS)
    every = magnitude(tl.load(bounds + f, mask=f < d, other=0, volatile=True), double)
    write_frame(X, n, every, numbers.to(tl.pointer_type(tl.float64)) + 3 * m, d, COLUMNS)
    n_limbs = tl.maximum(1, tl.cdiv(span + precision, bits))
    return tl.where(finite, n_limbs, 0)


@triton.jit
def clean(zeros, n_zeros, ROWS: tl.constexpr):
    """Write this program's share of what a run begins with as zeros."""
    lane = tl.arange(0, ROWS)
    for block in range(tl.program_id(0), tl.cdiv(n_zeros, ROWS), tl.num_programs(0)):
        first = tl.full((), ROWS, tl.int64) * block
        tl.store(zeros + first + lane, tl.zeros((ROWS,), tl.int64), mask=lane < n_zeros - first)


@triton.jit(do_not_specialize=["n", "n_zeros", "bits", "room", "k", "most"])
def measure_kernel(
    X, n, staging, zeros, n_zeros, bounds, bits, numbers, room, run_state, start, current, k, most,
    d: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Find the magnitudes, the grid and the frame of all rows; copy a start of k centres.

    `staging` are 2 d + 1 integers, which are 0 before and after: the magnitudes that programs find,
    and the two halves of the last, where programs are counted.  Of the `zeros`, all but `bounds`,
    `numbers` and `run_state` are 0 then.  `bounds` are 2 d + 1 integers: the magnitudes, and the
    limbs that the rows need.  Where there is no room for so many, or a row is not finite, or the
    start not below `most`, the run is stopped before it begins.
    """
    clean(zeros, n_zeros, ROWS)
    measure(X, n, staging, d, ROWS)
    copy_start(start, current, k * d, most, staging, ROWS)
    # The last program to arrive here reads what all have found, and overwrites what they zeroed.
    if leave((staging + 2 * d).to(tl.pointer_type(tl.int32)), tl.num_programs(0)):
        at = tl.arange(0, BOUNDS)
        found = tl.load(staging + at, mask=at < 2 * d, volatile=True)
        tl.store(bounds + at, found, mask=at < 2 * d)
        needed = fix(X, n, staging, bits, numbers, d)
        tl.store(bounds + 2 * d, needed.to(tl.int64))
        tl.store(run_state + STOPPED, ((needed == 0) | (needed > room)).to(tl.int32))
        # All threads have read what was found.
        tl.debug_barrier()
        tl.store(staging + at, tl.zeros((BOUNDS,), tl.int64), mask=at < 2 * d)
