r"""Rows and centres in half precision, and how much that leaves out.

The frame is ``x' = (x - m) s``: m is the mean of ordinary rows of a sample, s the power of two that
brings their typical largest coordinate to [8, 16).  A row is stored as ``y = fl16(x')`` beside
upper bounds of ``|y|`` and ``|x' - y|``; a centre likewise.  Any frame is right
(:mod:`lloydia.exact.half_certificate`); this one keeps the bounds sharp.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from lloydia.backends.cuda.exact_numbers import two_sum
from lloydia.backends.cuda.fetching import Fetched
from lloydia.backends.cuda.flow import HALT, first_row, own_flow
from lloydia.backends.cuda.half_scores import CHUNK, RESIDENT, START_WIDTH, error_of_sums
from lloydia.backends.cuda.launching import EXACT, ceil_div, next_power
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.recording import launch
from lloydia.backends.cuda.totals import raise_to
from lloydia.exact import half_certificate
from lloydia.exact.half_certificate import FAR_CENTER, FAR_SCORE

__all__ = [
    "NUMBERS",
    "RADIUS",
    "SHIFT",
    "UNIT",
    "HalfCenters",
    "HalfRows",
    "padded",
    "reach_kernel",
    "rows_kernel",
    "sample_of",
]

# Numbers and rows that are sampled.
SAMPLE, LEAST_SAMPLED, MOST_SAMPLED = 2**13, 128, 512
# R: rows farther out are never certified.  In norms of the 90th percentile; and the most, so that
# float16 holds starts, in their unit, and near centres.
REACH, MOST_RADIUS = 3.0, 8192.0
# Programs that pack centres, each leaving the maxima of its share.
PACKERS = 256
# Centres packed at a time, and those whose starts are written by a program.
GROUP, STARTED = 16, 32

# float64 rounding of what is measured in it; what float16 and float64 lose near 0; twice a rounding
# of float32.
GROW = tl.constexpr(1.0 + 2.0**-20)
LOST = tl.constexpr(2.0**-50)
LARGEST_HALF = tl.constexpr(65504.0)
ROUNDING = tl.constexpr(2.0**-23)
# What `numbers` has where, after the scale, and how many it has.
SHIFT, RADIUS, UNIT, FARTHEST, LARGEST_REST, NUMBERS = (tl.constexpr(i) for i in range(1, 7))
LAST_STEP = tl.constexpr(half_certificate.LAST_STEP)


def padded(n_features: int) -> int:
    """Return the width of a stored row."""
    if n_features <= RESIDENT:
        return next_power(n_features, 16)
    return ceil_div(n_features, CHUNK) * CHUNK


@triton.jit
def to_half(x):
    """Return x (float64) rounded to float16, the largest of them where it is beyond."""
    return tl.minimum(tl.maximum(x, -LARGEST_HALF), LARGEST_HALF).to(tl.float32).to(tl.float16)


@triton.jit
def bound(squares):
    """Return an upper bound of the root of a float64 sum of squares, in float32."""
    return (tl.sqrt(squares) * GROW).to(tl.float32)


@triton.jit(do_not_specialize=["n"])
def rows_kernel(
    X, n, d, width, offset, numbers, high_ptr, norm_ptr, rest_ptr,
    BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Store rows, and upper bounds of their norms and of what rounding left out.

    In float32 but for float64 rows: the difference to the offset is then known exactly, as a sum
    of two numbers.
    """
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    kind: tl.constexpr = tl.float64 if double else tl.float32
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = rows < n
    rows += first_row(n).to(tl.int32)
    at = rows.to(tl.int64)
    offset += tl.program_id(2).to(tl.int64) * d
    numbers += tl.program_id(2) * NUMBERS
    scale = tl.load(numbers).to(kind)
    squares = tl.zeros((ROWS,), kind)
    errors = tl.zeros((ROWS,), kind)
    for first in range(0, width, BLOCK):
        f = first + tl.arange(0, BLOCK)
        inside = mask[:, None] & (f < d)[None, :]
        x = tl.load(X + at[:, None] * d + f[None, :], mask=inside, other=0.0).to(kind)
        m = tl.load(offset + f, mask=f < d, other=0.0).to(kind)
        x, error = two_sum(x * scale, -m[None, :])
        x = tl.where(inside, x, 0.0)
        high = to_half(x)
        h = high.to(kind)
        # Where x is beyond float16, its rounding is lost beside the rest (and may be NaN).
        rest = (x - h) + tl.where(inside & (tl.abs(x) < LARGEST_HALF), error, 0.0)
        tl.store(high_ptr + at[:, None] * width + f[None, :], high, mask=mask[:, None])
        squares += tl.sum(h * h, 1)
        errors += tl.sum(rest * rest, 1)
    # At most width + 2 roundings of positive numbers; twice that also covers their products.
    grow = 1.0 + (width + 32).to(tl.float64) * ROUNDING
    squares = squares.to(tl.float64) * grow
    norm = bound(squares)
    rest = bound(errors.to(tl.float64) * grow + (squares + 1.0) * (LOST * LOST))
    tl.store(norm_ptr + rows, norm, mask=mask)
    tl.store(rest_ptr + rows, rest, mask=mask)
    reach = tl.where(mask, norm + rest, 0.0)
    raise_to(numbers + FARTHEST, tl.max(reach, 0).to(tl.float64))
    # Of rows within what R is at most.
    ordinary = mask & (reach <= tl.load(numbers + RADIUS))
    raise_to(numbers + LARGEST_REST, tl.max(tl.where(ordinary, rest, 0.0), 0).to(tl.float64))


@triton.jit
def reach_kernel(numbers):
    """Write R, at most what stands there, the shift of scores and the unit of starts."""
    numbers += tl.program_id(2) * NUMBERS
    largest = tl.load(numbers + FARTHEST) * GROW
    radius = tl.maximum(tl.minimum(tl.load(numbers + RADIUS), largest), 1.0)
    # All are float32 numbers: kernels take them as such, too.
    radius = radius.to(tl.float32).to(tl.float64)
    tl.store(numbers + RADIUS, radius)
    # A little more than |y|^2 / 2: no score of a row within the radius is below 0.
    shift = 0.5 * radius * radius * (1.0 + 2.0**-8)
    tl.store(numbers + SHIFT, shift.to(tl.float32).to(tl.float64))
    # Starts are at most 5 R^2: float16 holds them in the next power of two, which it holds as well.
    above = (radius.to(tl.int64, bitcast=True) >> 52) + 1
    tl.store(numbers + UNIT, (above << 52).to(tl.float64, bitcast=True))


@triton.jit(do_not_specialize=["k", "d", "n_groups", "size"])
def centers_kernel(
    centers, k, d, width, n_groups, origin, numbers,
    high_ptr, square_ptr, norm_ptr, rest_ptr, columns, size, partial, usual, tickets, flow,
    BLOCK: tl.constexpr, FAR: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Store centres, a group at a time, and upper bounds of their norms and rests.

    Of near centres; others have the square -1.  The last program writes the means of the bounds.
    """
    if tl.load(own_flow(flow) + HALT) != 0:
        return
    member = tl.program_id(2).to(tl.int64)
    centers += member * k * d
    origin += member * d
    numbers += member * NUMBERS
    high_ptr += member * size * width
    square_ptr += member * size
    norm_ptr += member * size
    rest_ptr += member * size
    columns += member * d * size
    partial += member * 3 * PROGRAMS
    usual += member * 2
    tickets += member
    program = tl.program_id(0)
    scale = tl.load(numbers)
    radius = tl.load(numbers + RADIUS)
    norms = tl.zeros((GROUP,), tl.float32)
    rests = tl.zeros((GROUP,), tl.float32)
    count = tl.zeros((GROUP,), tl.float32)
    for group in range(program, n_groups, tl.num_programs(0)):
        j = group * GROUP + tl.arange(0, GROUP)
        at = j.to(tl.int64)
        reach = tl.zeros((GROUP,), tl.float64)
        squares = tl.zeros((GROUP,), tl.float64)
        errors = tl.zeros((GROUP,), tl.float64)
        for first in range(0, width, BLOCK):
            f = first + tl.arange(0, BLOCK)
            inside = (j < k)[:, None] & (f < d)[None, :]
            c = tl.load(centers + at[:, None] * d + f[None, :], mask=inside, other=0.0)
            tl.store(columns + f.to(tl.int64)[None, :] * size + at[:, None], c, mask=inside)
            m = tl.load(origin + f, mask=f < d, other=0.0)
            c = tl.where(inside, (c.to(tl.float64) - m[None, :]) * scale, 0.0)
            high = to_half(c)
            # Negated: a score is its start and products that are added.
            tl.store(high_ptr + at[:, None] * width + f[None, :], -high)
            h = high.to(tl.float64)
            reach += tl.sum(c * c, 1)
            squares += tl.sum(h * h, 1)
            errors += tl.sum((c - h) * (c - h), 1)
        # Not near: too far for the certificate, or no centre at all.
        near = (j < k) & (reach <= (FAR * radius) * (FAR * radius))
        if tl.sum((~near).to(tl.int32), 0) > 0:
            # What other threads have stored there is overwritten.
            tl.debug_barrier()
            for first in range(0, width, BLOCK):
                to = at[:, None] * width + (first + tl.arange(0, BLOCK))[None, :]
                tl.store(high_ptr + to, tl.zeros((GROUP, BLOCK), tl.float16), mask=~near[:, None])
        norm = tl.where(near, bound(squares), 0.0)
        # The difference to the origin was rounded relative to itself.
        lost = LOST * (tl.sqrt(squares) + 1.0)
        rest = tl.where(near, ((tl.sqrt(errors) + lost) * GROW).to(tl.float32), 0.0)
        tl.store(square_ptr + at, tl.where(near, squares, -1.0))
        tl.store(norm_ptr + at, norm)
        tl.store(rest_ptr + at, rest)
        norms += norm
        rests += rest
        count += near.to(tl.float32)
    tl.store(partial + program, tl.sum(norms, 0))
    tl.store(partial + PROGRAMS + program, tl.sum(rests, 0))
    tl.store(partial + 2 * PROGRAMS + program, tl.sum(count, 0))
    tl.debug_barrier()
    if tl.atomic_add(tickets, 1) == tl.num_programs(0) - 1:
        # The last one here: everyone's sums are written.
        every = tl.arange(0, PROGRAMS)
        many = tl.maximum(tl.sum(tl.load(partial + 2 * PROGRAMS + every, volatile=True), 0), 1.0)
        for which in tl.static_range(2):
            shares = tl.load(partial + which * PROGRAMS + every, volatile=True)
            tl.store(usual + which, tl.sum(shares, 0) / many)
        tl.store(tickets, 0)


@triton.jit(do_not_specialize=["size"])
def starts_kernel(
    square_ptr, norm_ptr, rest_ptr, usual, numbers, size, summed, lowered_ptr, start_ptr, flow,
    FAR_START: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Store by how much scores are lowered (exact.half_certificate.lowered), and their starts.

    A start is the sum of three float16 numbers, times a unit.
    """
    if tl.load(own_flow(flow) + HALT) != 0:
        return
    usual += tl.program_id(2) * 2
    numbers += tl.program_id(2) * NUMBERS
    # Among the centres of all members.
    j = tl.program_id(2).to(tl.int64) * size + tl.program_id(0) * GROUP + tl.arange(0, GROUP)
    radius = tl.load(numbers + RADIUS)
    shift = tl.load(numbers + SHIFT)
    unit = tl.load(numbers + UNIT)
    largest_rest = tl.load(numbers + LARGEST_REST)
    square = tl.load(square_ptr + j)
    norm = tl.load(norm_ptr + j).to(tl.float64)
    rest = tl.load(rest_ptr + j).to(tl.float64)
    usual_norm = tl.load(usual).to(tl.float64)
    usual_rest = tl.load(usual + 1).to(tl.float64)
    more = tl.maximum(norm - usual_norm, 0.0)
    more_rest = tl.maximum(rest - usual_rest, 0.0)
    excess = more * (largest_rest + radius * (LAST_STEP + summed))
    excess += more_rest * (radius + norm + largest_rest + rest + usual_rest)
    excess += 0.5 * LAST_STEP * more * (norm + usual_norm)
    lowered = 2.0 * GROW * excess
    tl.store(lowered_ptr + j, (lowered * GROW).to(tl.float32))
    near = square >= 0.0
    start = tl.where(near, 0.5 * square - lowered, FAR_START * radius * radius) + shift
    left = start / unit
    column = tl.arange(0, START_WIDTH)[None, :]
    parts = tl.zeros((GROUP, START_WIDTH), tl.float16)
    for part in tl.static_range(3):
        half = to_half(left)
        parts = tl.where(column == part, half[:, None], parts)
        left -= half.to(tl.float64)
    tl.store(start_ptr + j[:, None] * START_WIDTH + column, parts)


class HalfRows:
    """Rows in half precision.

    Parameters
    ----------
    rows : Placed

    Attributes
    ----------
    origin : torch.Tensor of shape (d,), float64
    numbers : torch.Tensor of shape (6,), float64
        s; what makes scores positive; R, in the frame's units; what starts are stored in; the
        largest of the rows' bounds added up, and the largest rest of a row within R.
    width : int
        Features of a stored row, the last ones 0.
    high : torch.Tensor of shape (n, width), float16
        y.
    norm, rest : torch.Tensor of shape (n,), float32
        Upper bounds of ``|y|`` and ``|x' - y|``.
    """

    def __init__(self, rows: Placed) -> None:
        n, d = rows.n_samples, rows.n_features
        new = {"device": rows.device, "dtype": torch.float32}
        self.rows, self.width = rows, padded(d)
        sample = (rows.sampled or Fetched(sample_of(rows.X))).numpy()
        offset, scale, usual = frame(sample, rows.X.dtype == torch.float64)
        # R is between 1 and this; of rows within it the largest rest is looked for.
        most = max(1.0, min(REACH * usual, MOST_RADIUS))
        numbers = np.concatenate([[scale, 0.0, most, 0.0, 0.0, 0.0], offset / scale, offset])
        there = torch.from_numpy(numbers).to(rows.device, non_blocking=True)
        self.numbers, self.origin, offsets = there[:6], there[6 : 6 + d], there[6 + d :]
        self.high = torch.empty((n, self.width), device=rows.device, dtype=torch.float16)
        self.norm, self.rest = torch.empty(n, **new), torch.empty(n, **new)
        block = min(self.width, CHUNK)
        per_program = 4096 // block
        rows_kernel[(ceil_div(n, per_program),)](
            rows.X, n, d, self.width, offsets, self.numbers,
            self.high, self.norm, self.rest,
            BLOCK=block, ROWS=per_program, **EXACT,
        )  # fmt: skip
        reach_kernel[(1,)](self.numbers, **EXACT)

    def renew(self) -> None:
        """Store the rows again, which have changed, in the same memory."""
        fresh = HalfRows(self.rows)
        for name, value in vars(fresh).items():
            if isinstance(value, torch.Tensor):
                getattr(self, name).copy_(value)


def sample_of(X: torch.Tensor) -> torch.Tensor:
    """Return some of the rows, as float64."""
    n, d = X.shape
    size = min(MOST_SAMPLED, max(LEAST_SAMPLED, SAMPLE // d))
    return X[:: max(1, n // size)].to(torch.float64)


def frame(sample: NDArray[np.float64], double: bool) -> tuple[NDArray[np.float64], float, float]:
    """Return ``m s``, s and an ordinary norm in the frame, from a sample of the rows.

    A few outliers cannot move it: the reach of a row is its largest coordinate about the median
    row; ordinary rows are those whose reach is at most 8 times the typical, the median of those
    that are not 0.  The type of the rows' centres (float64 if `double`) holds ``m s`` exactly.
    """
    middle = len(sample) // 2
    reach = np.abs(sample - np.partition(sample, middle, axis=0)[middle]).max(axis=1)
    scale, origin = 1.0, sample[0]
    if reach.any():
        typical = upper(reach[reach > 0], 0.5)
        most = 500 if double else 100
        scale = math.ldexp(1.0, max(-2 * most, min(4 - math.frexp(typical)[1], most)))
        origin = sample[reach <= 8.0 * typical].mean(axis=0)
    offset = (origin * scale).astype(np.float64 if double else np.float32)
    offset = offset.astype(np.float64)
    norms = np.sqrt(np.square(sample * scale - offset).sum(axis=1))
    return offset, scale, upper(norms, 0.9)


def upper(values: NDArray[np.float64], fraction: float) -> float:
    """Return the value that this fraction of them is below."""
    return float(np.sort(values)[int(fraction * len(values))])


class HalfCenters:
    """k centres in half precision, for tiles of `tile` columns; k a member of a batch.

    Attributes
    ----------
    high : torch.Tensor of shape (padded k, width), float16
        The negative of the centre, nearly.
    start : torch.Tensor of shape (padded k, START_WIDTH), float16
        ``|high|^2 / 2 + shift``, lowered, the sum of three numbers, times a unit.
    square : torch.Tensor of shape (padded k,), float64
        ``|high|^2``; -1 for centres that are too far, and for none.
    norm, rest, lowered : torch.Tensor of shape (padded k,), float32
        B_j, g_j and e_j; 0 for those.
    columns : torch.Tensor of shape (members, d, padded k)
        The centres themselves, a feature after the other.
    usual : torch.Tensor of shape (members, 2), float32
        B and g: the means.
    """

    def __init__(self, halves: HalfRows, k: int, tile: int) -> None:
        device = halves.high.device
        new = {"device": device, "dtype": torch.float16}
        single = {"device": device, "dtype": torch.float32}
        self.k, self.tile, self.size = k, tile, ceil_div(k, tile) * tile
        self.members = halves.rows.members
        total = self.members * self.size
        self.high = torch.empty((total, halves.width), **new)
        self.start = torch.empty((total, START_WIDTH.value), **new)
        self.square = torch.empty(total, device=device, dtype=torch.float64)
        self.norm, self.rest, self.lowered = torch.empty((3, total), **single)
        self.columns = torch.empty(
            (self.members, halves.rows.n_features, self.size),
            device=device,
            dtype=halves.rows.wide,
        )
        self.usual = torch.empty((self.members, 2), **single)
        # Programs without centres leave theirs 0.
        self.partial = torch.zeros((self.members, 3, PACKERS), **single)
        self.tickets = torch.zeros(self.members, device=device, dtype=torch.int32)

    def pack(self, halves: HalfRows, centers: torch.Tensor, flow: torch.Tensor) -> None:
        """Queue the packing of centres; they are of the rows' ``wide`` type."""
        n_groups = self.size // GROUP
        launch(
            centers_kernel, (min(PACKERS, n_groups), 1, self.members),
            centers, self.k, halves.rows.n_features, halves.width, n_groups,
            halves.origin, halves.numbers,
            self.high, self.square, self.norm, self.rest, self.columns, self.size,
            self.partial, self.usual, self.tickets, flow,
            BLOCK=min(halves.width, CHUNK), FAR=FAR_CENTER, GROUP=GROUP, PROGRAMS=PACKERS, **EXACT,
        )  # fmt: skip
        launch(
            starts_kernel, (self.size // STARTED, 1, self.members),
            self.square, self.norm, self.rest, self.usual, halves.numbers, self.size,
            error_of_sums(halves.width), self.lowered, self.start, flow,
            FAR_START=FAR_SCORE, GROUP=STARTED, **EXACT,
        )  # fmt: skip
