"""Centres in half precision, in the frame of the rows (:mod:`rows.fp16_rows`).

A centre c' is stored as ``-fl16(c')``, with upper bounds of its norm and of its rounding error, and
with half its squared norm.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.fp16_scores import (
    CHUNK,
    HALF_NORM_WIDTH,
    error_of_sums,
)
from lloydia.backends.cuda.device_functions.run_state import (
    STOPPED,
    item_state,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.rows.fp16_frame import NUMBERS, RADIUS
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.rows.packing import (
    HALF_NORM_WORDS,
    half_norm_of,
    in_fixed_point,
    of_frame,
    store_bounds,
    store_fp16,
    store_half_norms,
    typical_of,
)
from lloydia.backends.cuda.runtime.launching import EXACT, ceil_div, launch

__all__ = ["Fp16Centers"]

# Programs that pack centres; each leaves partial sums of the bounds.
PACKERS = 256
# Centres that a program packs at a time, and centres whose half norms a program writes.
GROUP, STARTED = 16, 32


@triton.jit(do_not_specialize=["k", "d", "n_groups", "size"])
def centers_kernel(
    centers, k, d, width, n_groups, origin, numbers,
    high_ptr, square_ptr, norm_ptr, residual_ptr, columns, size, partial, typical, tickets,
    run_state, BLOCK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Store centres in half precision, with upper bounds of their norms and rounding errors.

    Centres that are too far have the square -1.  The last program writes the means of the bounds.

    Parameters
    ----------
    centers : float32 or float64 (batch_size, k, d), IN
    k, d, width, n_groups, size : int, IN
    origin : float64 (batch_size, d), IN
    numbers : float64 (batch_size, NUMBERS), IN
    high_ptr, square_ptr, norm_ptr, residual_ptr, columns, typical : tensors, OUT
        See :class:`Fp16Centers`.
    partial : int64 (batch_size, 3, PROGRAMS), scratch
    tickets : int32 (batch_size,), scratch
        0 before and after.
    run_state : int32 (batch_size, SIZE), IN
    """
    wait_for_previous_kernel()
    if tl.load(item_state(run_state) + STOPPED) != 0:
        return
    batch_item = tl.program_id(2).to(tl.int64)
    centers += batch_item * k * d
    origin += batch_item * d
    numbers += batch_item * NUMBERS
    high_ptr += batch_item * size * width
    square_ptr += batch_item * size
    norm_ptr += batch_item * size
    residual_ptr += batch_item * size
    columns += batch_item * d * size
    partial += batch_item * 3 * PROGRAMS
    typical += batch_item * 2
    tickets += batch_item
    program = tl.program_id(0)
    scale = tl.load(numbers)
    radius = tl.load(numbers + RADIUS)
    norms = tl.zeros((GROUP,), tl.int64)
    residuals = tl.zeros((GROUP,), tl.int64)
    count = tl.zeros((GROUP,), tl.int64)
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
            high_at = high_ptr + at[:, None] * width + f[None, :]
            reach, squares, errors = store_fp16(
                c, m, scale, inside, high_at, reach, squares, errors
            )
        near, norm, residual = store_bounds(
            at, j < k, reach, squares, errors, radius, high_ptr, width,
            square_ptr, norm_ptr, residual_ptr, BLOCK,
        )  # fmt: skip
        norms += in_fixed_point(norm)
        residuals += in_fixed_point(residual)
        count += near.to(tl.int64)
    tl.store(partial + program, tl.sum(norms, 0))
    tl.store(partial + PROGRAMS + program, tl.sum(residuals, 0))
    tl.store(partial + 2 * PROGRAMS + program, tl.sum(count, 0))
    tl.debug_barrier()
    if tl.atomic_add(tickets, 1) == tl.num_programs(0) - 1:
        # This is the last program: the partial sums of all are written.
        every = tl.arange(0, PROGRAMS)
        many = tl.sum(tl.load(partial + 2 * PROGRAMS + every, volatile=True), 0)
        for which in tl.static_range(2):
            shares = tl.load(partial + which * PROGRAMS + every, volatile=True)
            tl.store(typical + which, typical_of(tl.sum(shares, 0), many))
        tl.store(tickets, 0)


@triton.jit(do_not_specialize=["size"])
def half_norms_kernel(
    square_ptr, norm_ptr, residual_ptr, typical, numbers, size, summed, bias_ptr, half_norm_ptr,
    half_norm_f32_ptr, coefficients_ptr, run_state, GROUP: tl.constexpr,
):  # fmt: skip
    """Store the score bias, the half squared norm and the bound coefficients of each centre.

    A half norm is stored as three float16 numbers, whose sum times the unit it is, and zeros.

    Parameters
    ----------
    square_ptr, norm_ptr, residual_ptr, typical : tensors, IN
        See :class:`Fp16Centers`.
    numbers : float64 (batch_size, NUMBERS), IN
    size : int, IN
    summed : float, IN
        The relative error bound of a score's sum.
    bias_ptr, half_norm_f32_ptr, coefficients_ptr : tensors, OUT
        `score_bias`, `half_norm_f32` and `bound_coefficients` of :class:`Fp16Centers`.
    half_norm_ptr : int64 (batch_size, size, HALF_NORM_WORDS), OUT
        `half_norm`, four numbers to a word.
    run_state : int32 (batch_size, SIZE), IN
    """
    wait_for_previous_kernel()
    if tl.load(item_state(run_state) + STOPPED) != 0:
        return
    typical += tl.program_id(2) * 2
    numbers += tl.program_id(2) * NUMBERS
    # Center numbers are among the centres of all items.
    j = tl.program_id(2).to(tl.int64) * size + tl.program_id(0) * GROUP + tl.arange(0, GROUP)
    frame = of_frame(numbers)
    score_bias, half_norm, coefficients = half_norm_of(
        tl.load(square_ptr + j), tl.load(norm_ptr + j), tl.load(residual_ptr + j),
        tl.load(typical), tl.load(typical + 1), frame, summed,
    )  # fmt: skip
    every = tl.full((GROUP,), True, tl.int1)
    word = store_half_norms(
        j, every, score_bias, half_norm, coefficients, frame, bias_ptr, half_norm_f32_ptr,
        coefficients_ptr,
    )  # fmt: skip
    column = tl.arange(0, HALF_NORM_WORDS)[None, :]
    tl.store(
        half_norm_ptr + j[:, None] * HALF_NORM_WORDS + column,
        tl.where(column == 0, word[:, None], 0),
    )


class Fp16Centers:
    """k centres of each batch item in half precision, for tiles of `tile` columns.

    Attributes
    ----------
    high : torch.Tensor of shape (padded k, width), float16
        The negative of each centre, rounded.
    half_norm : torch.Tensor of shape (padded k, HALF_NORM_WIDTH), float16
        ``|high|^2 / 2 + shift`` less the score bias: three numbers whose sum times the unit it is.
    half_norm_f32 : torch.Tensor of shape (padded k,), float32
        The same, rounded to float32.
    square : torch.Tensor of shape (padded k,), float64
        ``|high|^2``; -1 for centres that are too far, and for padding.
    norm, residual, score_bias : torch.Tensor of shape (padded k,), float32
        B_j, g_j and e_j of :mod:`lloydia.exact.half_certificate`; 0 where `square` is -1.
    bound_coefficients : torch.Tensor of shape (padded k,), int64
        See :func:`lloydia.backends.cuda.rows.packing.coefficients_of`; 0 where `square` is -1.
    columns : torch.Tensor of shape (batch_size, d, padded k)
        The centres themselves, feature by feature.
    typical : torch.Tensor of shape (batch_size, 2), float32
        The means B and g of `norm` and `residual`.
    """

    def __init__(self, fp16_rows: Fp16Rows, k: int, tile: int) -> None:
        device = fp16_rows.high.device
        new = {"device": device, "dtype": torch.float16}
        single = {"device": device, "dtype": torch.float32}
        self.k, self.tile, self.size = k, tile, ceil_div(k, tile) * tile
        self.batch_size = fp16_rows.rows.batch_size
        total = self.batch_size * self.size
        self.high = torch.empty((total, fp16_rows.width), **new)
        self.half_norm = torch.empty((total, HALF_NORM_WIDTH.value), **new)
        self.square = torch.empty(total, device=device, dtype=torch.float64)
        self.norm, self.residual, self.score_bias, self.half_norm_f32 = torch.empty(
            (4, total), **single
        )
        self.bound_coefficients = torch.empty(total, device=device, dtype=torch.int64)
        self.columns = torch.empty(
            (self.batch_size, fp16_rows.rows.n_features, self.size),
            device=device,
            dtype=fp16_rows.rows.wide,
        )
        self.typical = torch.empty((self.batch_size, 2), **single)
        # Programs without centres leave their partial sums 0.
        self.partial = torch.zeros((self.batch_size, 3, PACKERS), device=device, dtype=torch.int64)
        self.tickets = torch.zeros(self.batch_size, device=device, dtype=torch.int32)

    def pack(self, fp16_rows: Fp16Rows, centers: torch.Tensor, run_state: torch.Tensor) -> None:
        """Queue the packing of centres; they are of the rows' ``wide`` type."""
        n_groups = self.size // GROUP
        launch(
            centers_kernel, (min(PACKERS, n_groups), 1, self.batch_size),
            centers, self.k, fp16_rows.rows.n_features, fp16_rows.width, n_groups,
            fp16_rows.origin, fp16_rows.numbers,
            self.high, self.square, self.norm, self.residual, self.columns, self.size,
            self.partial, self.typical, self.tickets, run_state,
            BLOCK=min(fp16_rows.width, CHUNK), GROUP=GROUP, PROGRAMS=PACKERS, **EXACT,
        )  # fmt: skip
        launch(
            half_norms_kernel, (self.size // STARTED, 1, self.batch_size),
            self.square, self.norm, self.residual, self.typical, fp16_rows.numbers, self.size,
            error_of_sums(fp16_rows.width), self.score_bias, self.half_norm.view(torch.int64),
            self.half_norm_f32, self.bound_coefficients, run_state, GROUP=STARTED, **EXACT,
        )  # fmt: skip

    def arguments(self, fp16_rows: Fp16Rows) -> tuple:
        """Return the arguments by which :func:`~update.means.finish_kernel` packs centres."""
        return (
            fp16_rows.origin, fp16_rows.numbers, self.high, self.square, self.norm, self.residual,
            self.columns, fp16_rows.width, self.size, self.typical, error_of_sums(fp16_rows.width),
            self.score_bias, self.half_norm.view(torch.int64), self.half_norm_f32,
            self.bound_coefficients,
        )  # fmt: skip
