r"""The frame of rows in half precision, chosen on the device from a sample of rows.

The frame is ``x' = (x - m) s``: m is the mean of the ordinary rows of the sample, and s the power
of two that brings their typical largest coordinate to [8, 16).  Any frame gives correct labels
(:mod:`lloydia.exact.half_certificate`); this one gives tight bounds.

A few outliers do not change it: the reach of a row is its largest distance, over coordinates, from
the median of some rows; the typical reach is the median of those that are not 0; ordinary rows have
at most 8 times that reach.  R, beyond which rows are never certified, is REACH times the 90th
percentile of the norms, and at most MAX_RADIUS.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.ranks import ranked, ranked_of
from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.totals import exponent_of, power
from lloydia.backends.cuda.runtime.launching import EXACT, given, launch, next_power

__all__ = ["NUMBERS", "RADIUS", "queue_frame"]

# Numbers and rows of the sample, which one program reads.
SAMPLE, MIN_SAMPLED_ROWS, MAX_SAMPLED_ROWS = 2**11, 64, 128
# Rows whose median is taken, and numbers of one step.
SOME, TILE = 16, 4096
# The largest exponent of s; the smallest is minus twice that.
MAX_SCALE_EXPONENT, MAX_SCALE_EXPONENT_DOUBLE = tl.constexpr(100), tl.constexpr(500)
# R over the 90th percentile of the norms, and the largest R: float16 must hold half norms, in their
# unit, and near centres.
REACH, MAX_RADIUS = tl.constexpr(3.0), tl.constexpr(8192.0)
# The place of R among the numbers of a frame, the first of which is s, and how many there are.
RADIUS, NUMBERS = tl.constexpr(2), tl.constexpr(6)


@triton.jit(
    do_not_specialize=["n", "d", "n_sampled", "measures"],
    do_not_specialize_on_alignment=["numbers", "origin", "offsets", "bounds"],
)
def frame_kernel(
    X, n, d, n_sampled, numbers, origin, offsets, bounds, measures,
    ROWS: tl.constexpr, SOME: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write s, R and zeros, m, and ``m s``, which the type of the centres holds exactly.

    `bounds` become 0 if `measures` is 1.
    """
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    most: tl.constexpr = MAX_SCALE_EXPONENT_DOUBLE if double else MAX_SCALE_EXPONENT
    batch_item = tl.program_id(2).to(tl.int64)
    X += batch_item * n * d
    numbers += batch_item * NUMBERS
    origin += batch_item * d
    offsets += batch_item * d
    i = tl.arange(0, ROWS)
    there = i < n_sampled
    step = (n // n_sampled).to(tl.int64)
    at = X + i[:, None] * step * d
    sampled = X + (tl.arange(0, SOME) * n_sampled // SOME)[:, None] * step * d
    reach = tl.zeros((ROWS,), tl.float64)
    for first in range(0, d, BLOCK):
        f = first + tl.arange(0, BLOCK)
        column = (f < d)[None, :]
        some = tl.load(sampled + f[None, :], mask=column, other=0.0).to(tl.float64)
        median = ranked(some, SOME // 2)
        x = tl.load(at + f[None, :], mask=there[:, None] & column, other=0.0).to(tl.float64)
        away = tl.where(there[:, None] & column, tl.abs(x - median[None, :]), 0.0)
        reach = tl.maximum(reach, tl.max(away, 1))
    n_away = tl.sum((reach > 0.0).to(tl.int32), 0)
    # Reaches that are 0 come first.
    typical = ranked_of(tl.where(there, reach, float("inf")), n_sampled - n_away + n_away // 2)
    typical = tl.where(n_away > 0, typical, 0.0)
    exponent = tl.minimum(tl.maximum(4 - exponent_of(typical), -2 * most), most)
    # All rows are alike: any scale is right.
    scale = tl.where(typical > 0.0, power(exponent), 1.0)
    ordinary = there & (reach <= 8.0 * typical)
    count = tl.sum(ordinary.to(tl.float64), 0)
    squares = tl.zeros((ROWS,), tl.float64)
    for first in range(0, d, BLOCK):
        f = first + tl.arange(0, BLOCK)
        column = (f < d)[None, :]
        x = tl.load(at + f[None, :], mask=there[:, None] & column, other=0.0).to(tl.float64)
        offset = tl.sum(tl.where(ordinary[:, None], x, 0.0), 0) / count * scale
        if not double:
            offset = offset.to(tl.float32).to(tl.float64)
        tl.store(offsets + f, offset, mask=f < d)
        tl.store(origin + f, offset / scale, mask=f < d)
        if measures != 0:
            to = bounds + batch_item * 2 * d + f
            for which in tl.static_range(2):
                tl.store(to + which * d, tl.zeros((BLOCK,), tl.int64), mask=f < d)
        gap = x * scale - offset[None, :]
        squares += tl.sum(tl.where(column, gap * gap, 0.0), 1)
    typical = tl.sqrt(ranked_of(tl.where(there, squares, float("inf")), n_sampled * 9 // 10))
    radius = tl.maximum(tl.minimum(REACH * typical, MAX_RADIUS), 1.0)
    which = tl.arange(0, 8)
    found = tl.where(which == 0, scale, tl.where(which == RADIUS, radius, 0.0))
    tl.store(numbers + which, found, mask=which < NUMBERS)


Frame = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def queue_frame(rows: WholeRows, frame: Frame, bounds: torch.Tensor | None = None) -> None:
    """Queue the choice of a frame for each item.

    Parameters
    ----------
    rows : WholeRows
    frame : tuple of three tensors
        s and R (all other numbers are 0), float64 of shape (batch_size, NUMBERS), and m and
        ``m s``, float64 of shape (batch_size, d): OUT.
    bounds : torch.Tensor, optional
        As for :class:`lloydia.backends.cuda.rows.fp16_rows.Fp16Rows`.
    """
    n, d, batch_size = rows.n_samples, rows.n_features, rows.batch_size
    n_sampled = min(n, MAX_SAMPLED_ROWS, max(MIN_SAMPLED_ROWS, SAMPLE // d))
    size = next_power(n_sampled)
    launch(
        frame_kernel, (1, 1, batch_size),
        rows.X, n, d, n_sampled, *frame, *given(bounds, frame[0].view(torch.int64)),
        ROWS=size, SOME=SOME, BLOCK=min(TILE // size, 64, next_power(d)), num_warps=8, **EXACT,
    )  # fmt: skip
