"""Centres in half precision, in the frame of the rows (:mod:`half_rows`), and their starts.

A centre is stored as ``-fl16(c')`` beside upper bounds of its norm and of what rounding left out.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.flow import HALT, own_flow
from lloydia.backends.cuda.half_frame import NUMBERS, RADIUS
from lloydia.backends.cuda.half_rows import (
    GROW,
    LARGEST_REST,
    LOST,
    SHIFT,
    UNIT,
    HalfRows,
    bound,
    to_half,
)
from lloydia.backends.cuda.half_scores import CHUNK, START_WIDTH, error_of_sums
from lloydia.backends.cuda.launching import EXACT, ceil_div
from lloydia.backends.cuda.recording import launch
from lloydia.exact import half_certificate
from lloydia.exact.half_certificate import FAR_CENTER, FAR_SCORE

__all__ = ["HalfCenters"]

# Programs that pack centres, each leaving the sums of its share.
PACKERS = 256
# Centres packed at a time, and those whose starts are written by a program.
GROUP, STARTED = 16, 32
LAST_STEP = tl.constexpr(half_certificate.LAST_STEP)


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
    square_ptr, norm_ptr, rest_ptr, usual, numbers, size, summed, lowered_ptr, start_ptr,
    single_ptr, flow, FAR_START: tl.constexpr, GROUP: tl.constexpr,
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
    tl.store(single_ptr + j, start.to(tl.float32))
    left = start / unit
    column = tl.arange(0, START_WIDTH)[None, :]
    parts = tl.zeros((GROUP, START_WIDTH), tl.float16)
    for part in tl.static_range(3):
        half = to_half(left)
        parts = tl.where(column == part, half[:, None], parts)
        left -= half.to(tl.float64)
    tl.store(start_ptr + j[:, None] * START_WIDTH + column, parts)


class HalfCenters:
    """k centres in half precision, for tiles of `tile` columns; k a member of a batch.

    Attributes
    ----------
    high : torch.Tensor of shape (padded k, width), float16
        The negative of the centre, nearly.
    start : torch.Tensor of shape (padded k, START_WIDTH), float16
        ``|high|^2 / 2 + shift``, lowered, the sum of three numbers, times a unit.
    single : torch.Tensor of shape (padded k,), float32
        The same, rounded.
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
        self.norm, self.rest, self.lowered, self.single = torch.empty((4, total), **single)
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
            error_of_sums(halves.width), self.lowered, self.start, self.single, flow,
            FAR_START=FAR_SCORE, GROUP=STARTED, **EXACT,
        )  # fmt: skip
