"""The second stage for d > 8: rows in doubt again, by pairs of half-precision numbers.

A row and a centre are sums of two float16 numbers, about 22 bits, so a score takes three products a
feature; they are summed chunk by chunk, of very many features group by group of chunks, which keeps
the error from growing with d.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.certain import certain
from lloydia.backends.cuda.flow import (
    HALT,
    N_DOUBT,
    N_DOUBT2,
    first_row,
    own_flow,
    programs_each,
)
from lloydia.backends.cuda.halves import MAXIMA, NUMBERS, HalfCenters, HalfRows
from lloydia.backends.cuda.launching import processors
from lloydia.backends.cuda.row_lists import append, relabel
from lloydia.backends.cuda.settle import shares_of
from lloydia.backends.cuda.two_least import add_tile, begin, end
from lloydia.exact import half_certificate
from lloydia.exact.half_certificate import canonical_error, pair_rest, summation

__all__ = ["SplitScan"]

SLOTS, MOST_COLUMNS = 32, 128
# Features that are summed apart: the fewer, the more rows are certified.
CHUNK = 32
# Where there are more than so many features, they are summed in groups.
UNGROUPED, GROUP = 2048, 512
# The part of what one float16 number leaves out that a second one leaves out, too.
LEFT_OUT = tl.constexpr(pair_rest(1.0, 0))
LOST = tl.constexpr(2.0**-50)
ADDED = tl.constexpr(half_certificate.ADDED)
# Error of all products, relative to that of the large ones.
SMALL_PRODUCTS = 1.0 + 2.0**-7


@triton.jit
def add_products(
    scores, high_at, low_at, b_high_at, b_low_at, first, last,
    CHUNK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Add the products of the features from `first` to `last` to scores."""
    for skip in tl.range(first, last, CHUNK, num_stages=STAGES):
        high = tl.load(high_at + skip)
        low = tl.load(low_at + skip)
        b_high = tl.load(b_high_at + skip)
        b_low = tl.load(b_low_at + skip)
        # Chained, hence not fused with `scores`.
        scores += tl.dot(high, b_high, tl.dot(high, b_low, tl.dot(low, b_high)))
    return scores


@triton.jit(do_not_specialize=["n", "n_tiles"])
def split_kernel(
    high_ptr, low_ptr, norm_ptr, rest_ptr, n, width, b_high_ptr, b_low_ptr, start_ptr, n_tiles,
    maxima, numbers, summed, canonical, smallest,
    doubts, doubts2, least_ptr, rival_ptr, label_ptr, tickets,
    labels, changed_rows, changed_old, flow,
    CHUNK: tl.constexpr, GROUPED: tl.constexpr, GROUP: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Settle the rows listed in `doubts` where pairs are enough; list the others."""
    flow = own_flow(flow)
    if tl.load(flow + HALT) != 0:
        return
    member = tl.program_id(2).to(tl.int64)
    doubts += first_row(n)
    doubts2 += first_row(n)
    changed_rows += first_row(n)
    changed_old += first_row(n)
    numbers += member * NUMBERS
    maxima += member * MAXIMA
    b_high_ptr += member * n_tiles * COLUMNS * width
    b_low_ptr += member * n_tiles * COLUMNS * width
    start_ptr += member * n_tiles * COLUMNS
    # Each program has a share of what is found together.
    tickets += member * tl.num_programs(0)
    least_ptr += member * tl.num_programs(0) * ROWS
    rival_ptr += member * tl.num_programs(0) * ROWS
    label_ptr += member * tl.num_programs(0) * ROWS
    n_listed = tl.load(flow + N_DOUBT)
    shift = tl.load(numbers + 1).to(tl.float32)
    radius = tl.load(numbers + 2).to(tl.float32)
    largest = tl.load(maxima)
    low_largest = tl.load(maxima + 3)
    residual = low_largest * LEFT_OUT + smallest + largest * LOST
    f = tl.arange(0, CHUNK)
    column = tl.arange(0, COLUMNS)
    row = tl.arange(0, ROWS)
    n_blocks = tl.cdiv(n_listed, ROWS)
    shares = shares_of(n_blocks, n_tiles)
    for item in range(tl.program_id(0), n_blocks * shares, tl.num_programs(0)):
        position = item // shares * ROWS + row
        mask = position < n_listed
        rows = tl.load(doubts + position, mask=mask, other=0)
        of_row = rows.to(tl.int64)[:, None] * width + f[None, :]
        slots, first, second, tile = begin(ROWS, COLUMNS // SLOTS, SLOTS)
        for t in range(item % shares, n_tiles, shares):
            j = (t * COLUMNS + column).to(tl.int64)
            of_center = j[None, :] * width + f[:, None]
            scores = tl.zeros((ROWS, COLUMNS), tl.float32)
            x_at, x_low_at = high_ptr + of_row, low_ptr + of_row
            b_at, b_low_at = b_high_ptr + of_center, b_low_ptr + of_center
            if GROUPED:
                for group in range(0, width, GROUP):
                    none = tl.zeros((ROWS, COLUMNS), tl.float32)
                    to = tl.minimum(group + GROUP, width)
                    scores += add_products(
                        none, x_at, x_low_at, b_at, b_low_at, group, to, CHUNK, STAGES
                    )
            else:
                scores = add_products(
                    scores, x_at, x_low_at, b_at, b_low_at, 0, width, CHUNK, STAGES
                )
            scores += tl.load(start_ptr + j)[None, :]
            slots, first, second, tile = add_tile(
                slots, first, second, tile, scores, t, COLUMNS // SLOTS
            )
        least, rival, label = end(slots, first, second, tile)
        last = True
        if shares > 1:
            tl.store(least_ptr + item * ROWS + row, least)
            tl.store(rival_ptr + item * ROWS + row, rival)
            tl.store(label_ptr + item * ROWS + row, label)
            tl.debug_barrier()
            last = tl.atomic_add(tickets + item // shares, 1) == shares - 1
        if last:
            if shares > 1:
                for share in range(shares):
                    if share != item % shares:
                        at = (item // shares * shares + share) * ROWS + row
                        score = tl.load(least_ptr + at, volatile=True)
                        rival = tl.minimum(rival, tl.load(rival_ptr + at, volatile=True))
                        rival = tl.minimum(rival, tl.maximum(least, score))
                        j = tl.load(label_ptr + at, volatile=True)
                        label = tl.where(score < least, j, label)
                        least = tl.minimum(least, score)
                tl.store(tickets + item // shares, 0)
            rest = tl.load(rest_ptr + rows)
            norm = tl.load(norm_ptr + rows) + rest
            sure = certain(
                least, rival, norm, rest * LEFT_OUT + smallest + norm * LOST,
                shift, radius, largest, residual, tl.load(maxima + 2), summed, ADDED, canonical,
                1.001 * rest * low_largest,
            )  # fmt: skip
            relabel(rows, label, mask & sure, labels, changed_rows, changed_old, flow)
            append(rows, mask & ~sure, doubts2, flow + N_DOUBT2)


class SplitScan:
    """The second stage for rows and centres; an instance is used by one queue at a time."""

    def __init__(self, halves: HalfRows, centers: HalfCenters) -> None:
        self.halves, self.centers = halves, centers
        device = halves.high.device
        self.members = halves.rows.members
        # Measured on an H200: more rows a program where they are read again for every tile.
        self.rows, self.warps, self.stages = (128, 8, 3) if halves.width > 128 else (64, 4, 3)
        self.n_programs = programs_each(8 // self.warps * processors(device), self.members)
        size = self.members * self.n_programs * self.rows
        self.least, self.rival = torch.empty((2, size), device=device, dtype=torch.float32)
        self.label = torch.empty(size, device=device, dtype=torch.int32)
        self.tickets = torch.zeros(self.members * self.n_programs, device=device, dtype=torch.int32)

    def __call__(
        self,
        doubts: torch.Tensor,
        doubts2: torch.Tensor,
        labels: torch.Tensor,
        changed_rows: torch.Tensor,
        changed_old: torch.Tensor,
        flow: torch.Tensor,
    ) -> None:
        """Queue the second stage: labels of the rows in `doubts`, or their listing in `doubts2`."""
        halves, centers, width = self.halves, self.centers, self.halves.width
        chunk, columns, grouped = min(width, CHUNK), min(centers.tile, MOST_COLUMNS), False
        if width > UNGROUPED:
            # Sums of a group take as many registers again.
            columns, grouped = columns // 2, True
        split_kernel[(self.n_programs, 1, self.members)](
            halves.high, halves.low, halves.norm, halves.rest, halves.rows.n_samples, width,
            centers.high, centers.low, centers.pair_start, centers.size // columns, centers.maxima,
            halves.numbers,
            summation(width, chunk, GROUP if grouped else None) * SMALL_PRODUCTS,
            canonical_error(width), pair_rest(0.0, width),
            doubts, doubts2, self.least, self.rival, self.label, self.tickets,
            labels, changed_rows, changed_old, flow,
            CHUNK=chunk, GROUPED=grouped, GROUP=GROUP, ROWS=self.rows, COLUMNS=columns,
            SLOTS=SLOTS, STAGES=self.stages, num_warps=self.warps,
        )  # fmt: skip
