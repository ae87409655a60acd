"""The first stage for d > 8: scores by matrix units, certified or in doubt."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.certain import certain
from lloydia.backends.cuda.flow import HALT, N_DOUBT, N_DOUBT2, first_row, own_flow
from lloydia.backends.cuda.halves import (
    CHUNK,
    MAXIMA,
    NUMBERS,
    RESIDENT,
    START_WIDTH,
    HalfCenters,
    HalfRows,
)
from lloydia.backends.cuda.launching import ceil_div
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.row_lists import append, relabel
from lloydia.backends.cuda.settle import Settle
from lloydia.backends.cuda.split_scan import SplitScan
from lloydia.backends.cuda.two_least import add_tile, begin, end
from lloydia.exact import half_certificate
from lloydia.exact.half_certificate import canonical_error, summation

__all__ = ["TensorScan"]


# Rows that a program judges.
JUDGED = 2048
LAST_STEP = tl.constexpr(half_certificate.LAST_STEP)


@triton.jit(do_not_specialize=["n", "n_tiles"])
def scan_kernel(
    y_ptr, n, width, high_ptr, start_ptr, n_tiles, numbers, least_ptr, rival_ptr, found, flow,
    WIDE: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write each row's two least scores, and the column of the least.

    Rows stay in place, or, if WIDE, are read again for every tile of centres, chunk by chunk.
    """
    PARTS: tl.constexpr = COLUMNS // SLOTS
    stride = width if WIDE else CHUNK
    # Not a return: rows are on their way while this is waited for.
    halted = tl.load(own_flow(flow) + HALT) != 0
    member = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = rows < n
    at = first_row(n) + rows
    high_ptr += member * n_tiles * COLUMNS * stride
    start_ptr += member * n_tiles * COLUMNS * START_WIDTH
    f = tl.arange(0, CHUNK)
    column = tl.arange(0, COLUMNS)
    part = tl.arange(0, START_WIDTH)
    y_block = y_ptr + at[:, None] * stride + f[None, :]
    if not WIDE:
        y = tl.load(y_block, mask=mask[:, None], other=0.0)
    units = tl.where(part < 3, tl.load(numbers + member * NUMBERS + 3), 0.0).to(tl.float16)
    units = tl.broadcast_to(units[None, :], (ROWS, START_WIDTH))
    slots, first, second, tile = begin(ROWS, PARTS, SLOTS)
    n_tiles = tl.where(halted, 0, n_tiles)
    for t in tl.range(0, n_tiles, num_stages=1 if WIDE else STAGES):
        j = (t * COLUMNS + column).to(tl.int64)
        b_block = high_ptr + j[None, :] * stride + f[:, None]
        if WIDE:
            scores = tl.zeros((ROWS, COLUMNS), tl.float32)
            for skip in tl.range(0, width, CHUNK, num_stages=STAGES):
                y = tl.load(y_block + skip, mask=mask[:, None], other=0.0)
                scores = tl.dot(y, tl.load(b_block + skip), scores)
        else:
            scores = tl.dot(y, tl.load(b_block))
        starts = tl.load(start_ptr + j[None, :] * START_WIDTH + part[:, None])
        scores = tl.dot(units, starts, scores)
        slots, first, second, tile = add_tile(slots, first, second, tile, scores, t, PARTS)
    least, rival, label = end(slots, first, second, tile)
    tl.store(least_ptr + at, least, mask=mask)
    tl.store(rival_ptr + at, rival, mask=mask)
    tl.store(found + at, label, mask=mask)


@triton.jit(do_not_specialize=["n"])
def judge_kernel(
    least_ptr, rival_ptr, found, norm_ptr, rest_ptr, n, maxima, numbers, summed, canonical,
    labels, changed_rows, changed_old, doubts, flow, ROWS: tl.constexpr,
):  # fmt: skip
    """Give rows that are certified their labels; list the others.

    A kernel of its own: what waits for atomics would keep a matrix unit waiting.
    """
    flow = own_flow(flow)
    if tl.load(flow + HALT) != 0:
        return
    first = first_row(n)
    numbers += tl.program_id(2) * NUMBERS
    maxima += tl.program_id(2) * MAXIMA
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = rows < n
    # Among all members' rows, whose numbers are 32-bit integers.
    rows += first.to(tl.int32)
    sure = certain(
        tl.load(least_ptr + rows, mask=mask, other=0.0),
        tl.load(rival_ptr + rows, mask=mask, other=0.0),
        tl.load(norm_ptr + rows, mask=mask, other=0.0),
        tl.load(rest_ptr + rows, mask=mask, other=0.0),
        tl.load(numbers + 1).to(tl.float32), tl.load(numbers + 2).to(tl.float32),
        tl.load(maxima), tl.load(maxima + 1), tl.load(maxima + 2),
        summed, LAST_STEP, canonical, 0.0,
    )  # fmt: skip
    new = tl.load(found + rows, mask=mask, other=0)
    relabel(rows, new, mask & sure, labels, changed_rows + first, changed_old + first, flow)
    append(rows, mask & ~sure, doubts + first, flow + N_DOUBT)


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
    def choose(width: int, k: int) -> Tiling:
        """Return the fastest measured on an H200 for a width of rows and a number of centres."""
        if width <= 32 and k <= 128:
            return Tiling(128, 32, 32, warps=4, stages=1)
        if width <= 64:
            return Tiling(128, 64, 32, warps=8, stages=3, registers=80)
        if width <= RESIDENT:
            return Tiling(128, 128, 32, warps=8, stages=2, registers=128)
        return Tiling(128, 256, 64, warps=8, stages=3)


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
        self.tiling = Tiling.choose(self.halves.width, k)
        self.centers = HalfCenters(self.halves, k, self.tiling.columns)
        n, device = rows.members * rows.n_samples, rows.device
        self.least, self.rival = torch.empty((2, n), device=device, dtype=torch.float32)
        self.found, self.doubts, self.doubts2 = torch.empty(
            (3, n), device=device, dtype=torch.int32
        )
        self.split, self.settle = SplitScan(self.halves, self.centers), Settle(device, rows.members)

    def scan(
        self,
        centers: torch.Tensor,
        labels: torch.Tensor,
        changed_rows: torch.Tensor,
        changed_old: torch.Tensor,
        flow: torch.Tensor,
    ) -> None:
        """Queue one assignment to `centers`, of the rows' ``wide`` type.

        Of shape (k, d), or (members, k, d); labels and lists have room for all rows.
        """
        lists = (labels, changed_rows, changed_old)
        self.centers.pack(self.halves, centers, flow)
        self.score(flow)
        self.judge(*lists, flow)
        self.split(self.doubts, self.doubts2, *lists, flow)
        by_column = self.centers.columns.transpose(1, 2)[:, : self.centers.k]
        self.settle(self.rows.X, by_column, self.doubts2, flow[N_DOUBT2.value :], *lists, flow)

    def score(self, flow: torch.Tensor) -> None:
        """Queue the first stage."""
        halves, packed, cut, n = self.halves, self.centers, self.tiling, self.rows.n_samples
        wide = halves.width > RESIDENT
        scan_kernel[(ceil_div(n, cut.rows), 1, self.rows.members)](
            halves.high, n, halves.width,
            packed.high, packed.start, packed.size // cut.columns, halves.numbers,
            self.least, self.rival, self.found, flow,
            WIDE=wide, CHUNK=CHUNK if wide else halves.width,
            ROWS=cut.rows, COLUMNS=cut.columns, SLOTS=cut.slots, STAGES=cut.stages,
            num_warps=cut.warps, maxnreg=cut.registers,
        )  # fmt: skip

    def judge(
        self,
        labels: torch.Tensor,
        changed_rows: torch.Tensor,
        changed_old: torch.Tensor,
        flow: torch.Tensor,
    ) -> None:
        """Queue the verdict on the first stage's labels."""
        halves, n = self.halves, self.rows.n_samples
        judge_kernel[(ceil_div(n, JUDGED), 1, self.rows.members)](
            self.least, self.rival, self.found, halves.norm, halves.rest, n, self.centers.maxima,
            halves.numbers, summation(halves.width, halves.width), canonical_error(halves.width),
            labels, changed_rows, changed_old, self.doubts, flow, ROWS=JUDGED, num_warps=8,
        )  # fmt: skip
