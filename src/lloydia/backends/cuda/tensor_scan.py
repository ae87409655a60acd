"""The first stage for d > 8: scores by matrix units, certified or in doubt."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.certain import certain
from lloydia.backends.cuda.flow import HALT, N_DOUBT, N_DOUBT2
from lloydia.backends.cuda.halves import CHUNK, RESIDENT, START_WIDTH, HalfCenters, HalfRows
from lloydia.backends.cuda.launching import ceil_div
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.row_lists import IN_DOUBT, part
from lloydia.backends.cuda.settle import settle
from lloydia.backends.cuda.split_scan import split_scan
from lloydia.backends.cuda.two_least import add_tile, begin, end
from lloydia.exact.half_certificate import canonical_error, summation

__all__ = ["TensorScan"]


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
        tl.load(maxima), tl.load(maxima + 1), tl.load(maxima + 2), summed, canonical, 0.0,
    )  # fmt: skip
    tl.store(found + rows, tl.where(sure, label, IN_DOUBT), mask=mask)


@dataclass(frozen=True)
class Tiling:
    """How the first stage is cut; `registers` lets two programs share a multiprocessor."""

    rows: int
    columns: int
    slots: int
    warps: int
    stages: int
    registers: int | None = None

    @staticmethod
    def choose(width: int) -> Tiling:
        """Return the fastest measured on an H200 for a width of rows."""
        if width <= 32:
            return Tiling(128, 32, 32, warps=4, stages=1)
        if width == 64:
            return Tiling(128, 64, 32, warps=8, stages=3, registers=80)
        if width <= RESIDENT:
            return Tiling(128, 128, 32, warps=8, stages=2, registers=128)
        return Tiling(128, 256, 32, warps=8, stages=3)


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
        self.tiling = Tiling.choose(self.halves.width)
        self.centers = HalfCenters(self.halves, k, self.tiling.columns)
        self.found, self.doubts, self.doubts2 = (
            torch.empty(rows.n_samples, device=rows.device, dtype=torch.int32) for _ in range(3)
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
        self.centers.pack(self.halves, centers, flow)
        self.score(flow)
        part(self.found, *lists, self.doubts, flow[N_DOUBT.value :], flow)
        split_scan(self.halves, self.centers, self.doubts, self.doubts2, *lists, flow)
        by_column = self.centers.columns.T[: len(centers)]
        settle(self.rows.X, by_column, self.doubts2, flow[N_DOUBT2.value :], *lists, flow)

    def score(self, flow: torch.Tensor) -> None:
        """Queue the first stage."""
        halves, packed, cut, n = self.halves, self.centers, self.tiling, self.rows.n_samples
        scan_kernel[(ceil_div(n, cut.rows),)](
            halves.high, halves.norm, halves.rest, n,
            packed.high, packed.start, packed.size // cut.columns, packed.maxima,
            halves.shift, halves.radius, halves.unit,
            summation(halves.width, halves.width), canonical_error(halves.width),
            self.found, flow,
            WIDTH=halves.width, CHUNK=halves.width if halves.width <= RESIDENT else CHUNK,
            ROWS=cut.rows, COLUMNS=cut.columns, SLOTS=cut.slots, STAGES=cut.stages,
            num_warps=cut.warps, maxnreg=cut.registers,
        )  # fmt: skip
