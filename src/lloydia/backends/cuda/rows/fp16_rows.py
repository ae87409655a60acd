"""Rows in half precision, with bounds of what rounding leaves out.

A row ``x'``, in the frame of :mod:`fp16_frame`, is stored as ``y = fl16(x')`` with upper bounds of
``|y|`` and of the residual ``|x' - y|``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from weakref import proxy

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.fp16_scores import CHUNK, WIDEST_IN_REGISTERS
from lloydia.backends.cuda.device_functions.run_state import first_row, programs_each
from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.found_grid import grid_found_on_device, queue_grid
from lloydia.backends.cuda.rows.fp16_frame import NUMBERS, RADIUS, queue_frame
from lloydia.backends.cuda.rows.magnitudes import (
    add_magnitudes,
    bounds_of_columns,
    no_magnitudes,
    raise_bounds,
)
from lloydia.backends.cuda.rows.totals import raise_to
from lloydia.backends.cuda.runtime.arena import Arena, Offsets, offsets_of_parts
from lloydia.backends.cuda.runtime.launching import EXACT, ceil_div, launch, next_power, processors
from lloydia.backends.cuda.runtime.relocation import BufferMap, StagedWork, Stages

__all__ = [
    "GROW",
    "LARGEST_RESIDUAL",
    "LOST",
    "SCORE_SHIFT",
    "UNIT",
    "Fp16Rows",
    "bound",
    "padded",
    "to_fp16",
]

# Covers the rounding of a root and of its operand, in float32 (a root is off by 2**-22) or float64.
GROW = tl.constexpr(1.0 + 2.0**-20)
# What float16, float32 and float64 lose near 0.
LOST = tl.constexpr(2.0**-50)
# The largest number of float16.
LARGEST_HALF = tl.constexpr(65504.0)
# Two roundings of float32.
ROUNDING = tl.constexpr(2.0**-23)
# Numbers that a program stores at a time, blocks of rows that are prefetched, and programs on a
# multiprocessor, for float64 rows and for others.
TILE, STAGES = 2048, 3
DOUBLE_RESIDENT, RESIDENT = 3, 4
# Places in `numbers`, besides the scale and R.
SCORE_SHIFT, UNIT, FARTHEST, LARGEST_RESIDUAL = (tl.constexpr(i) for i in (1, 3, 4, 5))


def padded(n_features: int) -> int:
    """Return the width of a stored row."""
    if n_features <= WIDEST_IN_REGISTERS:
        return next_power(n_features, 16)
    return ceil_div(n_features, CHUNK) * CHUNK


@triton.jit
def to_fp16(x):
    """Return x (float32 or float64) rounded to float16, and clamped to its range."""
    return tl.minimum(tl.maximum(x, -LARGEST_HALF), LARGEST_HALF).to(tl.float32).to(tl.float16)


@triton.jit
def bound(squares):
    """Return an upper bound of the root of a sum of squares, in float32."""
    return (tl.sqrt(squares) * GROW).to(tl.float32)


@triton.jit
def raise_seldom(at, value):
    """Raise a number as :func:`raise_to` does, where most programs have no larger one."""
    if value > tl.load(at):
        raise_to(at, value)


@triton.jit(do_not_specialize=["n"])
def rows_kernel(
    X, n, d, width, offset, numbers, high_ptr, norm_ptr, residual_ptr, bounds,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Store rows, with upper bounds of their norms and residuals.

    `bounds`, if given, are raised to those of the rows.  BLOCK features are taken at a time: all of
    them, unless WIDE.
    """
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    # The type in which x' is computed; it is then rounded to float32, in which all else is done.
    kind: tl.constexpr = tl.float64 if double else tl.float32
    begin = first_row(n)
    X += begin * d
    high_ptr += begin * width
    norm_ptr += begin
    residual_ptr += begin
    offset += tl.program_id(2).to(tl.int64) * d
    numbers += tl.program_id(2) * NUMBERS
    if bounds is not None:
        bounds += tl.program_id(2).to(tl.int64) * 2 * d
    scale, radius = tl.load(numbers).to(kind), tl.load(numbers + RADIUS)
    # At most width + 2 roundings of positive numbers; twice that also covers their products.
    grow = 1.0 + (width + 32).to(tl.float32) * ROUNDING
    largest, smallest = no_magnitudes(ROWS, BLOCK, double)
    reach = tl.zeros((ROWS,), tl.float32)
    largest_residual = tl.zeros((ROWS,), tl.float32)
    f = tl.arange(0, BLOCK)
    m = tl.load(offset + f, mask=f < d, other=0.0).to(kind)
    for block in tl.range(
        tl.program_id(0), tl.cdiv(n, ROWS), tl.num_programs(0), num_stages=STAGES
    ):
        rows = block * ROWS + tl.arange(0, ROWS)
        mask = rows < n
        at = rows.to(tl.int64)[:, None]
        squares = tl.zeros((ROWS,), tl.float32)
        errors = tl.zeros((ROWS,), tl.float32)
        for first in range(0, width if WIDE else BLOCK, BLOCK):
            if WIDE:
                f = first + tl.arange(0, BLOCK)
                m = tl.load(offset + f, mask=f < d, other=0.0).to(kind)
            inside = mask[:, None] & (f < d)[None, :]
            x = tl.load(X + at * d + f[None, :], mask=inside, other=0.0).to(kind)
            if bounds is not None:
                largest, smallest = add_magnitudes(largest, smallest, x)
                if WIDE:
                    most, below = bounds_of_columns(largest, smallest)
                    raise_bounds(bounds, most, below, f, d)
                    largest, smallest = no_magnitudes(ROWS, BLOCK, double)
            # Missing features are 0; missing rows are not stored.
            x = (x * scale - m[None, :]).to(tl.float32)
            high = to_fp16(x)
            tl.store(high_ptr + at * width + f[None, :], high, mask=mask[:, None])
            h = high.to(tl.float32)
            squares += tl.sum(h * h, 1)
            errors += tl.sum((x - h) * (x - h), 1)
        squares *= grow
        norm = bound(squares)
        residual = bound(errors * grow + (squares + 1.0) * (LOST * LOST))
        # x' was rounded too, relative to itself.
        residual += (norm + residual) * ROUNDING
        tl.store(norm_ptr + rows, norm, mask=mask)
        tl.store(residual_ptr + rows, residual, mask=mask)
        reaches = tl.where(mask, norm + residual, 0.0)
        reach = tl.maximum(reach, reaches)
        # Rows within the largest R.
        ordinary = mask & (reaches.to(tl.float64) <= radius)
        largest_residual = tl.maximum(largest_residual, tl.where(ordinary, residual, 0.0))
    raise_seldom(numbers + FARTHEST, tl.max(reach, 0).to(tl.float64))
    raise_seldom(numbers + LARGEST_RESIDUAL, tl.max(largest_residual, 0).to(tl.float64))
    if (bounds is not None) & (not WIDE):
        most, below = bounds_of_columns(largest, smallest)
        raise_bounds(bounds, most, below, tl.arange(0, BLOCK), d)


@triton.jit
def reach_kernel(numbers):
    """Lower R to the farthest row's reach, then write the shift of scores and the unit."""
    numbers += tl.program_id(2) * NUMBERS
    largest = tl.load(numbers + FARTHEST) * GROW
    radius = tl.maximum(tl.minimum(tl.load(numbers + RADIUS), largest), 1.0)
    # All are float32 numbers: kernels read them as such.
    radius = radius.to(tl.float32).to(tl.float64)
    tl.store(numbers + RADIUS, radius)
    # No score of a row within the radius is below 4: exact.half_certificate, "Range".
    shift = 0.5 * radius * radius * (1.0 + 2.0**-4) + 4.0
    tl.store(numbers + SCORE_SHIFT, shift.to(tl.float32).to(tl.float64))
    # Half norms are at most 5.1 R^2 + 4: float16 holds them in units of the next power of two above
    # R, which float16 holds as well.
    above = (radius.to(tl.int64, bitcast=True) >> 52) + 1
    tl.store(numbers + UNIT, (above << 52).to(tl.float64, bitcast=True))


@lru_cache
def layout_of(n: int, d: int, batch_size: int, stores: bool) -> Offsets:
    """Return the offsets of the tensors of n rows in all; `stores`: with the stored rows."""
    one, double = torch.float32, torch.float64
    stored = {"high": (torch.float16, (n, padded(d))), "norm": (one, (n,)), "residual": (one, (n,))}
    return offsets_of_parts(
        numbers=(double, (batch_size, NUMBERS.value)), origin=(double, (batch_size, d)),
        offsets=(double, (batch_size, d)), grid=(torch.int64, (5 * (d + 1),)),
        **(stored if stores else {}),
    )  # fmt: skip


class Fp16Rows:
    """Rows in half precision: of a data set, or of all items of a batch.

    Kernels store them, which the caller queues: ``replay(*fp16_rows.storing)``.

    Parameters
    ----------
    rows : WholeRows
    memory : tuple of three tensors, optional
        `high`, `norm` and `residual` of other rows, at least as many, which are overwritten.
    bounds : torch.Tensor, optional
        New bounds (:func:`lloydia.backends.cuda.rows.magnitudes.new_bounds`), if the rows are to be
        measured as well.

    Attributes
    ----------
    origin : torch.Tensor of shape (batch_size, d), float64
    numbers : torch.Tensor of shape (batch_size, NUMBERS), float64
        s; the shift that makes scores at least 4; R, in the frame's units; the unit of half norms;
        the largest sum of a row's bounds; the largest residual of a row within R.
    width : int
        Features of a stored row, the last ones 0.
    high : torch.Tensor of shape (batch_size * n, width), float16
        y.
    norm, residual : torch.Tensor of shape (batch_size * n,), float32
        Upper bounds of ``|y|`` and ``|x' - y|``.
    arena : Arena
        All this except what was given; also the `grid` of a measured single data set, see
        :mod:`found_grid`.
    """

    def __init__(
        self,
        rows: WholeRows,
        memory: tuple[torch.Tensor, ...] | None = None,
        bounds: torch.Tensor | None = None,
    ) -> None:
        n, d, batch_size = rows.batch_size * rows.n_samples, rows.n_features, rows.batch_size
        # A weak reference: the rows hold this object.
        self.rows, self.width = proxy(rows), padded(d)
        self.arena = Arena(rows.device, layout_of(n, d, batch_size, memory is None))
        self.bounds, self.measured = bounds, bounds is not None and batch_size == 1
        # Memory outside the arena, and its alignment, which kernels are compiled for.
        self.given: list[torch.Tensor] = []
        self.alignments: tuple[int, ...] = ()
        if memory is not None:
            self.memory = tuple(part[:n] for part in memory)

    @property
    def storing(self) -> tuple[StagedWork, torch.device, BufferMap]:
        """The work that stores the rows, for :func:`replay`, and what it depends on."""
        rows, bounds = self.rows, self.bounds
        buffer_map = BufferMap.of("fp16_rows", rows.X, self, more=(bounds is None,))
        if bounds is not None:
            buffer_map = buffer_map.with_buffers(bounds)
        return self._stages, rows.device, buffer_map

    def _stages(self) -> Stages:
        """Return what queues the frames, the stored rows, and what follows from their bounds."""
        rows, bounds = self.rows, self.bounds
        out: list[Callable[[], None]] = [
            partial(queue_frame, rows, (self.numbers, self.origin, self.offsets), bounds),
            partial(self.store, bounds),
            partial(launch, reach_kernel, (1, 1, rows.batch_size), self.numbers, **EXACT),
        ]
        if self.measured:
            assert bounds is not None
            out.append(partial(queue_grid, rows, bounds, self.arena.grid))
        return out

    def fixed_point_grid(self, n_limbs: int) -> FixedPointGrid:
        """Return the grid, with this many limbs, of rows that were measured as they were stored."""
        return grid_found_on_device(self.rows.X, self.arena, n_limbs)

    @property
    def key(self) -> tuple:
        """What launches depend on, besides the addresses of the memory."""
        return self.measured, self.alignments

    @property
    def buffers(self) -> list[torch.Tensor]:
        """All its memory, in a fixed order."""
        return [self.arena.whole, *self.given]

    @property
    def numbers(self) -> torch.Tensor:
        return self.arena.numbers

    @property
    def origin(self) -> torch.Tensor:
        return self.arena.origin

    @property
    def offsets(self) -> torch.Tensor:
        return self.arena.offsets

    @cached_property
    def high(self) -> torch.Tensor:
        return self.arena.high

    @cached_property
    def norm(self) -> torch.Tensor:
        return self.arena.norm

    @cached_property
    def residual(self) -> torch.Tensor:
        return self.arena.residual

    @property
    def memory(self) -> tuple[torch.Tensor, ...]:
        """The tensors that are stored for each row."""
        return self.high, self.norm, self.residual

    @memory.setter
    def memory(self, memory: tuple[torch.Tensor, ...]) -> None:
        self.high, self.norm, self.residual = memory
        self.given = [*memory]
        self.alignments = tuple(part.data_ptr() % 16 for part in memory)

    def store(self, bounds: torch.Tensor | None = None) -> None:
        """Queue the storing of the rows; repeating it does not change `numbers`."""
        rows, n = self.rows, self.rows.n_samples
        wide = self.width > WIDEST_IN_REGISTERS
        block = CHUNK if wide else self.width
        many = TILE // block
        resident = DOUBLE_RESIDENT if rows.wide == torch.float64 else RESIDENT
        programs = programs_each(resident * processors(rows.device), rows.batch_size)
        launch(
            rows_kernel, (min(ceil_div(n, many), programs), 1, rows.batch_size),
            rows.X, n, rows.n_features, self.width, self.offsets, self.numbers,
            self.high, self.norm, self.residual, bounds,
            BLOCK=block, ROWS=many, WIDE=wide, STAGES=STAGES, **EXACT,
        )  # fmt: skip
