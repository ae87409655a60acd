r"""Rows and centres in half precision, and how much that leaves out.

The frame is ``x' = (x - m) s``: m is the mean of ordinary rows of a sample, s the power of two that
brings their typical largest coordinate to [8, 16).  A row is stored as ``y = fl16(x')`` and
``fl16(x' - y)`` beside upper bounds of ``|y|`` and ``|x' - y|``; a centre likewise.  Any frame is
right (:mod:`lloydia.exact.half_certificate`); this one keeps the bounds sharp.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from lloydia.backends.cuda.exact_numbers import two_sum
from lloydia.backends.cuda.flow import HALT, first_row, own_flow
from lloydia.backends.cuda.launching import EXACT, ceil_div, next_power
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.totals import raise_to
from lloydia.exact.half_certificate import FAR_CENTER, FAR_SCORE

__all__ = [
    "CHUNK",
    "MAXIMA",
    "NUMBERS",
    "RESIDENT",
    "START_WIDTH",
    "HalfCenters",
    "HalfRows",
    "padded",
    "rows_kernel",
]

# Features that are worked on at a time where there are more than RESIDENT.
CHUNK, RESIDENT = 64, 256
# Numbers and rows that are sampled.
SAMPLE, LEAST_SAMPLED, MOST_SAMPLED = 2**15, 128, 512
# R: rows farther out are never certified.  In norms of the 90th percentile; and the most, so that
# float16 holds starts, in their unit, and near centres.
REACH, MOST_RADIUS = 3.0, 8192.0
# Programs that pack centres, each leaving the maxima of its share.
PACKERS = 256
# Centres packed at a time.
GROUP = 16

# float64 rounding of what is measured in it; what float16 and float64 lose near 0; twice a rounding
# of float32.
GROW = tl.constexpr(1.0 + 2.0**-20)
LOST = tl.constexpr(2.0**-50)
# The least depth of a matrix unit's product: starts are products, too.
START_WIDTH = tl.constexpr(16)
LARGEST_HALF = tl.constexpr(65504.0)
ROUNDING = tl.constexpr(2.0**-23)
# Where `numbers` has the largest norm; how many it has, and how many `maxima`.
FARTHEST = tl.constexpr(4)
NUMBERS = tl.constexpr(5)
MAXIMA = tl.constexpr(4)


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
    X, n, d, width, offset, numbers, high_ptr, low_ptr, norm_ptr, rest_ptr,
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
        tl.store(low_ptr + at[:, None] * width + f[None, :], to_half(rest), mask=mask[:, None])
        squares += tl.sum(h * h, 1)
        errors += tl.sum(rest * rest, 1)
    # At most width + 2 roundings of positive numbers; twice that also covers their products.
    grow = 1.0 + (width + 32).to(tl.float64) * ROUNDING
    squares = squares.to(tl.float64) * grow
    norm = bound(squares)
    rest = bound(errors.to(tl.float64) * grow + (squares + 1.0) * (LOST * LOST))
    tl.store(norm_ptr + rows, norm, mask=mask)
    tl.store(rest_ptr + rows, rest, mask=mask)
    raise_to(numbers + FARTHEST, tl.max(tl.where(mask, norm + rest, 0.0), 0).to(tl.float64))


@triton.jit
def store_start(target, at, start, unit):
    """Store starts as sums of three float16 numbers times `unit`, a power of two."""
    rest = start / unit
    column = tl.arange(0, START_WIDTH)[None, :]
    parts = tl.zeros((at.shape[0], START_WIDTH), tl.float16)
    for part in tl.static_range(3):
        half = to_half(rest)
        parts = tl.where(column == part, half[:, None], parts)
        rest -= half.to(tl.float64)
    tl.store(target + at[:, None] * START_WIDTH + column, parts)


@triton.jit(do_not_specialize=["k", "d", "n_groups", "size"])
def centers_kernel(
    centers, k, d, width, n_groups, origin, numbers,
    high_ptr, low_ptr, start_ptr, pair_start_ptr, columns, size, partial, maxima, tickets, flow,
    BLOCK: tl.constexpr, FAR: tl.constexpr, FAR_START: tl.constexpr,
    GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Store centres, a group at a time, the starts of their scores, and maxima of the near ones."""
    if tl.load(own_flow(flow) + HALT) != 0:
        return
    member = tl.program_id(2).to(tl.int64)
    centers += member * k * d
    origin += member * d
    numbers += member * NUMBERS
    high_ptr += member * size * width
    low_ptr += member * size * width
    start_ptr += member * size * START_WIDTH
    pair_start_ptr += member * size
    columns += member * d * size
    partial += member * MAXIMA * PROGRAMS
    maxima += member * MAXIMA
    tickets += member
    program = tl.program_id(0)
    scale = tl.load(numbers)
    shift = tl.load(numbers + 1)
    radius = tl.load(numbers + 2)
    unit = tl.load(numbers + 3)
    largest = tl.zeros((GROUP,), tl.float64)
    residual = tl.zeros((GROUP,), tl.float64)
    start = tl.zeros((GROUP,), tl.float64)
    low_largest = tl.zeros((GROUP,), tl.float64)
    for group in range(program, n_groups, tl.num_programs(0)):
        j = group * GROUP + tl.arange(0, GROUP)
        at = j.to(tl.int64)
        reach = tl.zeros((GROUP,), tl.float64)
        squares = tl.zeros((GROUP,), tl.float64)
        errors = tl.zeros((GROUP,), tl.float64)
        lows = tl.zeros((GROUP,), tl.float64)
        pairs = tl.zeros((GROUP,), tl.float64)
        for first in range(0, width, BLOCK):
            f = first + tl.arange(0, BLOCK)
            inside = (j < k)[:, None] & (f < d)[None, :]
            c = tl.load(centers + at[:, None] * d + f[None, :], mask=inside, other=0.0)
            tl.store(columns + f.to(tl.int64)[None, :] * size + at[:, None], c, mask=inside)
            m = tl.load(origin + f, mask=f < d, other=0.0)
            c = tl.where(inside, (c.to(tl.float64) - m[None, :]) * scale, 0.0)
            high = to_half(c)
            low = to_half(c - high.to(tl.float64))
            # Negated: a score is its start and products that are added.
            tl.store(high_ptr + at[:, None] * width + f[None, :], -high)
            tl.store(low_ptr + at[:, None] * width + f[None, :], -low)
            h = high.to(tl.float64)
            pair = h + low.to(tl.float64)
            reach += tl.sum(c * c, 1)
            squares += tl.sum(h * h, 1)
            errors += tl.sum((c - h) * (c - h), 1)
            lows += tl.sum((pair - h) * (pair - h), 1)
            pairs += tl.sum(pair * pair, 1)
        # Not near: too far for the certificate, or no centre at all.
        near = (j < k) & (reach <= (FAR * radius) * (FAR * radius))
        if tl.sum((~near).to(tl.int32), 0) > 0:
            for first in range(0, width, BLOCK):
                to = at[:, None] * width + (first + tl.arange(0, BLOCK))[None, :]
                tl.store(high_ptr + to, tl.zeros((GROUP, BLOCK), tl.float16), mask=~near[:, None])
                tl.store(low_ptr + to, tl.zeros((GROUP, BLOCK), tl.float16), mask=~near[:, None])
        away = shift + FAR_START * radius * radius
        store_start(start_ptr, at, tl.where(near, 0.5 * squares + shift, away), unit)
        tl.store(pair_start_ptr + at, tl.where(near, 0.5 * pairs + shift, away).to(tl.float32))
        squares = tl.maximum(squares, pairs)
        errors += (squares + 1.0) * (LOST * LOST)
        largest = tl.where(near, tl.maximum(largest, squares), largest)
        residual = tl.where(near, tl.maximum(residual, errors), residual)
        start = tl.where(near, tl.maximum(start, 0.5 * squares + shift), start)
        low_largest = tl.where(near, tl.maximum(low_largest, lows), low_largest)
    tl.store(partial + program, bound(tl.max(largest, 0)))
    tl.store(partial + PROGRAMS + program, bound(tl.max(residual, 0)))
    tl.store(partial + 2 * PROGRAMS + program, (tl.max(start, 0) * GROW).to(tl.float32))
    tl.store(partial + 3 * PROGRAMS + program, bound(tl.max(low_largest, 0)))
    tl.debug_barrier()
    if tl.atomic_add(tickets, 1) == tl.num_programs(0) - 1:
        # The last one here: everyone's maxima are written.
        every = tl.arange(0, PROGRAMS)
        for which in tl.static_range(4):
            shares = tl.load(partial + which * PROGRAMS + every, volatile=True)
            tl.store(maxima + which, tl.max(shares, 0))
        tl.store(tickets, 0)


class HalfRows:
    """Rows in half precision.

    Parameters
    ----------
    rows : Placed

    Attributes
    ----------
    origin : torch.Tensor of shape (d,), float64
    scale, shift, radius, unit : float
        s; what makes scores positive; R, in the frame's units; what starts are stored in.  On the
        device: ``numbers``, then the largest of the rows' bounds.
    width : int
        Features of a stored row, the last ones 0.
    high, low : torch.Tensor of shape (n, width), float16
        y, and what it leaves out, nearly.
    norm, rest : torch.Tensor of shape (n,), float32
        Upper bounds of ``|y|`` and ``|x' - y|``.
    """

    def __init__(self, rows: Placed) -> None:
        n, d = rows.n_samples, rows.n_features
        new = {"device": rows.device, "dtype": torch.float32}
        self.rows, self.width = rows, padded(d)
        offset, self.scale, usual = frame(rows.X)
        numbers = np.concatenate([[self.scale, 0.0, 0.0, 0.0, 0.0], offset / self.scale, offset])
        there = torch.from_numpy(numbers).to(rows.device)
        self.numbers, self.origin, offsets = there[:5], there[5 : 5 + d], there[5 + d :]
        self.high = torch.empty((n, self.width), device=rows.device, dtype=torch.float16)
        self.low = torch.empty_like(self.high)
        self.norm, self.rest = torch.empty(n, **new), torch.empty(n, **new)
        block = min(self.width, CHUNK)
        per_program = 4096 // block
        rows_kernel[(ceil_div(n, per_program),)](
            rows.X, n, d, self.width, offsets, self.numbers,
            self.high, self.low, self.norm, self.rest,
            BLOCK=block, ROWS=per_program, **EXACT,
        )  # fmt: skip
        largest = float(self.numbers[FARTHEST.value]) * (1.0 + 2.0**-20)
        self.radius = single(max(1.0, min(largest, REACH * usual, MOST_RADIUS)))
        # A little more than |y|^2 / 2: no score of a row within the radius is below 0.
        self.shift = single(0.5 * self.radius**2 * (1.0 + 2.0**-8))
        # Starts are at most 5 R^2: float16 holds them in this unit, which it holds as well.
        self.unit = math.ldexp(1.0, math.frexp(self.radius)[1])
        self.numbers[1:4] = torch.tensor([self.shift, self.radius, self.unit], dtype=torch.float64)

    def renew(self) -> None:
        """Store the rows again, which have changed, in the same memory."""
        fresh = HalfRows(self.rows)
        for name, value in vars(fresh).items():
            if isinstance(value, torch.Tensor):
                getattr(self, name).copy_(value)
            else:
                setattr(self, name, value)


def single(x: float) -> float:
    """Return x rounded to float32: kernels take it as such, too."""
    return float(np.float32(x))


def frame(X: torch.Tensor) -> tuple[NDArray[np.float64], float, float]:
    """Return ``m s``, s and an ordinary norm in the frame, from a sample of the rows.

    A few outliers cannot move it: the reach of a row is its largest coordinate about the median
    row; ordinary rows are those whose reach is at most 8 times the typical, the median of those
    that are not 0.  X's type (float32 for half precision) holds ``m s`` exactly.
    """
    n, d = X.shape
    size = min(MOST_SAMPLED, max(LEAST_SAMPLED, SAMPLE // d))
    sample = X[:: max(1, n // size)].to(torch.float64).cpu().numpy()
    middle = len(sample) // 2
    reach = np.abs(sample - np.partition(sample, middle, axis=0)[middle]).max(axis=1)
    scale, origin = 1.0, sample[0]
    if reach.any():
        typical = upper(reach[reach > 0], 0.5)
        most = 500 if X.dtype == torch.float64 else 100
        scale = math.ldexp(1.0, max(-2 * most, min(4 - math.frexp(typical)[1], most)))
        origin = sample[reach <= 8.0 * typical].mean(axis=0)
    offset = (origin * scale).astype(np.float64 if X.dtype == torch.float64 else np.float32)
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
    high, low : torch.Tensor of shape (padded k, width), float16
        Their sum is the negative of the centre, nearly.
    start : torch.Tensor of shape (padded k, START_WIDTH), float16
        ``|high|^2 / 2 + shift``, the sum of three numbers, times a unit.
    pair_start : torch.Tensor of shape (padded k,), float32
        ``|high + low|^2 / 2 + shift``.
    columns : torch.Tensor of shape (members, d, padded k)
        The centres themselves, a feature after the other.
    maxima : torch.Tensor of shape (members, 4), float32
        Upper bounds: B, g, H, and ``|low|``.
    """

    def __init__(self, halves: HalfRows, k: int, tile: int) -> None:
        new = {"device": halves.high.device, "dtype": torch.float16}
        single = {"device": halves.high.device, "dtype": torch.float32}
        self.k, self.tile, self.size = k, tile, ceil_div(k, tile) * tile
        self.members = halves.rows.members
        total = self.members * self.size
        self.high = torch.empty((total, halves.width), **new)
        self.low = torch.empty_like(self.high)
        self.start = torch.empty((total, START_WIDTH.value), **new)
        self.pair_start = torch.empty(total, **single)
        self.columns = torch.empty(
            (self.members, halves.rows.n_features, self.size),
            device=halves.high.device,
            dtype=halves.rows.wide,
        )
        self.maxima = torch.empty((self.members, MAXIMA.value), **single)
        # Programs without centres leave theirs 0.
        self.partial = torch.zeros((self.members, MAXIMA.value, PACKERS), **single)
        self.tickets = torch.zeros(self.members, device=halves.high.device, dtype=torch.int32)

    def pack(self, halves: HalfRows, centers: torch.Tensor, flow: torch.Tensor) -> None:
        """Queue the packing of centres; they are of the rows' ``wide`` type."""
        n_groups = self.size // GROUP
        centers_kernel[(min(PACKERS, n_groups), 1, self.members)](
            centers, self.k, halves.rows.n_features, halves.width, n_groups,
            halves.origin, halves.numbers,
            self.high, self.low, self.start, self.pair_start, self.columns, self.size,
            self.partial, self.maxima, self.tickets, flow,
            BLOCK=min(halves.width, CHUNK),
            FAR=FAR_CENTER, FAR_START=FAR_SCORE, GROUP=GROUP, PROGRAMS=PACKERS, **EXACT,
        )  # fmt: skip
