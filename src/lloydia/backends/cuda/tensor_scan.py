r"""The first stage for d > 8: scores by matrix units, certified or in doubt.

**The two least scores, and no names.**  Of all scores of a row, name the least and bound the
others; comparing and naming cost as much as the products, so every operation a score counts.  Lay
out the scores of a row as a table: a *slot* is a column modulo SLOTS, a *cell* is SLOTS
consecutive columns (within one thread: every fourth pair of them), and a slot and a cell share one
score.  Keep the least score of every slot, and the two least cells: two minima a score, one of
them shared by neighbours.  The least score is in the least slot and the least cell, which name it.
Any other score is in another slot or in another cell: the second least of slots and cells is the
second least score.  Scores are made positive, so they are compared as integers.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.flow import HALT, N_DOUBT, N_DOUBT2
from lloydia.backends.cuda.halves import CHUNK, PACKERS, RESIDENT, HalfCenters, HalfRows
from lloydia.backends.cuda.launching import ceil_div
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.row_lists import append, relabel
from lloydia.backends.cuda.settle import settle
from lloydia.exact.half_certificate import canonical_error, summation

__all__ = ["TensorScan", "certain", "end", "least_scores", "maximum"]

LAST = tl.constexpr(2147483647)
# float32 rounding of the bound itself.
GROW = tl.constexpr(1.0 + 2.0**-16)
UNIT = tl.constexpr(2.0**-24)


@triton.jit
def maximum(maxima, which: tl.constexpr, PROGRAMS: tl.constexpr):
    """Return one of the maxima over the centres."""
    return tl.max(tl.load(maxima + which * PROGRAMS + tl.arange(0, PROGRAMS)), 0)


@triton.jit
def certain(
    least, second, norm, rest, shift, radius, largest, residual, start, summed, canonical
):  # fmt: skip
    """As :func:`lloydia.exact.half_certificate.certified`, rounded up; not for what is no number."""
    nu = (summed + 2 * UNIT) * norm * largest + 2 * UNIT * start
    square = norm * norm
    # The subtraction of shift is rounded relative to `second`, and so is the square.
    delta = tl.sqrt(tl.maximum(square + 2.0 * (second - shift + nu), 0.0)
                    + (square + second + shift) * (8 * UNIT))  # fmt: skip
    both = rest + residual
    away = delta + both
    bound = 2.0 * (tl.minimum(rest * largest, rest * delta) + residual * delta + nu)
    bound = (bound + both * both + canonical * away * away + 2.0**-60) * GROW
    inside = ((norm + rest) * GROW <= radius) & (least >= 0.0)
    return inside & (second - least > bound) & ((least - shift + bound) * GROW <= radius * radius)


@triton.jit
def begin(ROWS: tl.constexpr, PARTS: tl.constexpr, SLOTS: tl.constexpr):
    """Return the slots, the two least cells of each thread and part, and the tile of the least."""
    slots = tl.full((ROWS, SLOTS), LAST, tl.int32)
    first = tl.full((ROWS, PARTS, 4), LAST, tl.int32)
    tile = tl.zeros((ROWS, PARTS, 4), tl.int32)
    return slots, first, first, tile


@triton.jit
def add_tile(slots, first, second, tile, scores, t, PARTS: tl.constexpr):
    """Add the scores of tile t."""
    ROWS: tl.constexpr = slots.shape[0]
    SLOTS: tl.constexpr = slots.shape[1]
    keys = scores.to(tl.int32, bitcast=True)
    slots = tl.minimum(slots, tl.min(tl.reshape(keys, (ROWS, PARTS, SLOTS)), 1))
    # A thread holds two neighbouring columns of every eight.
    cell = tl.min(tl.min(tl.reshape(keys, (ROWS, PARTS, SLOTS // 8, 4, 2)), 4), 2)
    tile = tl.where(cell < first, t, tile)
    second = tl.minimum(second, tl.maximum(first, cell))
    return slots, tl.minimum(first, cell), second, tile


@triton.jit
def end(slots, first, second, tile):
    """Return the least score of each row, the second least, and the column of the least."""
    ROWS: tl.constexpr = slots.shape[0]
    SLOTS: tl.constexpr = slots.shape[1]
    CELLS: tl.constexpr = 4 * first.shape[1]
    slot = tl.arange(0, SLOTS)[None, :]
    cell = tl.arange(0, CELLS)[None, :]
    least = tl.min(slots, 1)
    in_slot = tl.min(tl.where(slots == least[:, None], slot, SLOTS), 1)
    rival = tl.min(tl.where(slot == in_slot[:, None], LAST, slots), 1)
    first = tl.reshape(first, (ROWS, CELLS))
    in_cell = tl.min(tl.where(first == least[:, None], cell, CELLS), 1)
    mine = cell == in_cell[:, None]
    # The other cells' least, and the second least of this one's part.
    others = tl.where(mine, tl.reshape(second, (ROWS, CELLS)), first)
    rival = tl.minimum(rival, tl.min(others, 1))
    part = tl.sum(tl.where(mine, tl.reshape(tile, (ROWS, CELLS)) * (CELLS // 4) + cell // 4, 0), 1)
    as_score = tl.float32
    return (
        least.to(as_score, bitcast=True),
        rival.to(as_score, bitcast=True),
        part * SLOTS + in_slot,
    )


@triton.jit(do_not_specialize=["n", "n_tiles"])
def scan_kernel(
    y_ptr, norm_ptr, rest_ptr, n, high_ptr, start_ptr, n_tiles, maxima,
    shift, radius, summed, canonical, labels, changed_rows, changed_old, doubts, flow,
    WIDTH: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    SLOTS: tl.constexpr, STAGES: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    if tl.load(flow + HALT) != 0:
        return
    PARTS: tl.constexpr = COLUMNS // SLOTS
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = rows < n
    at = rows.to(tl.int64)
    f = tl.arange(0, CHUNK)
    column = tl.arange(0, COLUMNS)
    y_block = y_ptr + at[:, None] * WIDTH + f[None, :]
    slots, first, second, tile = begin(ROWS, PARTS, SLOTS)
    if CHUNK == WIDTH:
        y = tl.load(y_block, mask=mask[:, None], other=0.0)
    for t in tl.range(0, n_tiles, num_stages=STAGES if CHUNK == WIDTH else 1):
        j = t * COLUMNS + column
        b_block = high_ptr + j.to(tl.int64)[None, :] * WIDTH + f[:, None]
        start = tl.load(start_ptr + j)[None, :]
        # Subtracted, so that the start does not pass through the matrix unit.
        if CHUNK == WIDTH:
            scores = start - tl.dot(y, tl.load(b_block))
        else:
            total = tl.zeros((ROWS, COLUMNS), tl.float32)
            for skip in tl.range(0, WIDTH, CHUNK, num_stages=STAGES):
                y = tl.load(y_block + skip, mask=mask[:, None], other=0.0)
                total = tl.dot(y, tl.load(b_block + skip), total)
            scores = start - total
        slots, first, second, tile = add_tile(slots, first, second, tile, scores, t, PARTS)
    least, rival, label = end(slots, first, second, tile)
    sure = mask & certain(
        least, rival,
        tl.load(norm_ptr + rows, mask=mask, other=0.0),
        tl.load(rest_ptr + rows, mask=mask, other=0.0),
        shift, radius,
        maximum(maxima, 0, PROGRAMS), maximum(maxima, 1, PROGRAMS), maximum(maxima, 2, PROGRAMS),
        summed, canonical,
    )  # fmt: skip
    relabel(rows, label, sure, labels, changed_rows, changed_old, flow)
    append(rows, mask & ~sure, doubts, flow + N_DOUBT)


class Tiling:
    """How the first stage is cut, by the width of a row."""

    def __init__(self, width: int) -> None:
        self.resident = width <= RESIDENT
        self.chunk = width if self.resident else CHUNK
        self.rows, self.columns, self.slots = 128, 64, 32
        self.warps, self.stages = 4, 2


class TensorScan:
    """Labels by certified half-precision scores.

    Parameters
    ----------
    rows : Placed
    k : int
    """

    def __init__(self, rows: Placed, k: int) -> None:
        if rows.halves is None:
            rows.halves = HalfRows(rows)
        self.rows, self.halves = rows, rows.halves
        self.tiling = Tiling(self.halves.width)
        self.centers = HalfCenters(self.halves, k, self.tiling.columns)
        self.doubts = torch.empty(rows.n_samples, device=rows.device, dtype=torch.int32)

    def scan(
        self,
        centers: torch.Tensor,
        labels: torch.Tensor,
        changed_rows: torch.Tensor,
        changed_old: torch.Tensor,
        flow: torch.Tensor,
    ) -> None:
        """Queue one assignment to `centers`, of shape (k, d) and the rows' ``wide`` type."""
        halves, packed, cut, n = self.halves, self.centers, self.tiling, self.rows.n_samples
        packed.pack(halves, centers, flow)
        scan_kernel[(ceil_div(n, cut.rows),)](
            halves.y, halves.norm, halves.rest, n,
            packed.high, packed.start, packed.size // cut.columns, packed.maxima,
            halves.shift, halves.radius,
            summation(halves.width, halves.width), canonical_error(halves.width),
            labels, changed_rows, changed_old, self.doubts, flow,
            WIDTH=halves.width, CHUNK=cut.chunk, ROWS=cut.rows, COLUMNS=cut.columns,
            SLOTS=cut.slots, STAGES=cut.stages, PROGRAMS=PACKERS, num_warps=cut.warps,
        )  # fmt: skip
        settle(
            self.rows.X, centers, self.doubts, flow[N_DOUBT.value :],
            labels, changed_rows, changed_old, flow,
        )  # fmt: skip
