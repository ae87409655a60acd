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

from lloydia.backends.cuda.flow import HALT, N_DOUBT
from lloydia.backends.cuda.halves import CHUNK, RESIDENT, START_WIDTH, HalfCenters, HalfRows
from lloydia.backends.cuda.launching import ceil_div
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.row_lists import IN_DOUBT, part
from lloydia.backends.cuda.settle import settle
from lloydia.exact import half_certificate
from lloydia.exact.half_certificate import canonical_error, summation

__all__ = ["TensorScan", "add_tile", "begin", "certain", "end"]

LAST = tl.constexpr(2147483647)
# float32 rounding of the bound itself.
GROW = tl.constexpr(1.0 + 2.0**-16)
UNIT = tl.constexpr(2.0**-24)
LAST_STEP = tl.constexpr(half_certificate.LAST_STEP)


@triton.jit
def certain(
    least, second, norm, rest, shift, radius, largest, residual, start, summed, canonical
):  # fmt: skip
    """As :func:`lloydia.exact.half_certificate.certified`, rounded up; false for NaN."""
    nu = (summed + LAST_STEP) * norm * largest + LAST_STEP * start
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
    shift, radius, unit, summed, canonical, found, flow,
    WIDTH: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write each row's label, or that it is in doubt."""
    PARTS: tl.constexpr = COLUMNS // SLOTS
    # Not a return: rows are on their way while this is waited for.
    halted = tl.load(flow + HALT) != 0
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = rows < n
    f = tl.arange(0, CHUNK)
    column = tl.arange(0, COLUMNS)
    part = tl.arange(0, START_WIDTH)
    y_block = y_ptr + rows.to(tl.int64)[:, None] * WIDTH + f[None, :]
    if CHUNK == WIDTH:
        y = tl.load(y_block, mask=mask[:, None], other=0.0)
    norm = tl.load(norm_ptr + rows, mask=mask, other=0.0)
    rest = tl.load(rest_ptr + rows, mask=mask, other=0.0)
    units = tl.where(part < 3, unit, 0.0).to(tl.float16)
    units = tl.broadcast_to(units[None, :], (ROWS, START_WIDTH))
    slots, first, second, tile = begin(ROWS, PARTS, SLOTS)
    n_tiles = tl.where(halted, 0, n_tiles)
    for t in tl.range(0, n_tiles, num_stages=STAGES if CHUNK == WIDTH else 1):
        j = (t * COLUMNS + column).to(tl.int64)
        b_block = high_ptr + j[None, :] * WIDTH + f[:, None]
        if CHUNK == WIDTH:
            scores = tl.dot(y, tl.load(b_block))
        else:
            scores = tl.zeros((ROWS, COLUMNS), tl.float32)
            for skip in tl.range(0, WIDTH, CHUNK, num_stages=STAGES):
                y = tl.load(y_block + skip, mask=mask[:, None], other=0.0)
                scores = tl.dot(y, tl.load(b_block + skip), scores)
        starts = tl.load(start_ptr + j[None, :] * START_WIDTH + part[:, None])
        scores = tl.dot(units, starts, scores)
        slots, first, second, tile = add_tile(slots, first, second, tile, scores, t, PARTS)
    least, rival, label = end(slots, first, second, tile)
    sure = certain(
        least, rival, norm, rest, shift, radius,
        tl.load(maxima), tl.load(maxima + 1), tl.load(maxima + 2), summed, canonical,
    )  # fmt: skip
    tl.store(found + rows, tl.where(sure, label, IN_DOUBT), mask=mask)


class Tiling:
    """How the first stage is cut, by the width of a row."""

    def __init__(self, width: int) -> None:
        self.chunk = width if width <= RESIDENT else CHUNK
        self.rows, self.columns, self.slots = 128, 128, 32
        self.warps, self.stages = 8, 2


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
        self.found, self.doubts = (
            torch.empty(rows.n_samples, device=rows.device, dtype=torch.int32) for _ in range(2)
        )

    def scan(
        self,
        centers: torch.Tensor,
        labels: torch.Tensor,
        changed_rows: torch.Tensor,
        changed_old: torch.Tensor,
        flow: torch.Tensor,
    ) -> None:
        """Queue one assignment to `centers`, of shape (k, d) and the rows' ``wide`` type."""
        lists = (labels, changed_rows, changed_old)
        n_doubt = flow[N_DOUBT.value :]
        self.centers.pack(self.halves, centers, flow)
        self.score(flow)
        part(self.found, *lists, self.doubts, n_doubt, flow)
        settle(self.rows.X, centers, self.doubts, n_doubt, *lists, flow)

    def score(self, flow: torch.Tensor) -> None:
        """Queue the first stage."""
        halves, packed, cut, n = self.halves, self.centers, self.tiling, self.rows.n_samples
        scan_kernel[(ceil_div(n, cut.rows),)](
            halves.y, halves.norm, halves.rest, n,
            packed.high, packed.start, packed.size // cut.columns, packed.maxima,
            halves.shift, halves.radius, halves.unit,
            summation(halves.width, halves.width), canonical_error(halves.width),
            self.found, flow,
            WIDTH=halves.width, CHUNK=cut.chunk, ROWS=cut.rows, COLUMNS=cut.columns,
            SLOTS=cut.slots, STAGES=cut.stages, num_warps=cut.warps,
        )  # fmt: skip
