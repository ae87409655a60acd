"""The candidates of ambiguous rows, where :mod:`recheck_all` would take too many centres.

The scores of the ambiguous rows are computed again, and four columns are named that contain the
best ones (:func:`lloydia.backends.cuda.matmul.top_two.crossed`).  If all other scores are above a
row's limit (:mod:`lloydia.exact.half_certificate`), these four columns are its *candidates*, and
:mod:`recheck_pairs` compares them.  Most of the other rows have nine columns as candidates; the
rows that have more are *unresolved*.

Layout: the four candidates of a row are at the row's place in the list of ambiguous rows; before
this stage that place holds what the first stage found.  Nine candidates are in a record with their
row; a record takes the places of three rows, and records are written from the end.  A row without
room for its record is unresolved too.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.fp16_scores import (
    CHUNK,
    HALF_NORM_WIDTH,
    WIDEST_IN_REGISTERS,
    error_of_sums,
    fp16_scores,
    group_of,
    half_norm_units,
)
from lloydia.backends.cuda.device_functions.run_state import (
    N_AMBIGUOUS,
    N_NINE,
    N_UNRESOLVED,
    STOPPED,
    first_row,
    item_state,
    programs_each,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.matmul.fp16_centers import Fp16Centers
from lloydia.backends.cuda.matmul.limits import limit_of
from lloydia.backends.cuda.matmul.row_lists import append
from lloydia.backends.cuda.matmul.top_two import add_named_tile, begin_named, crossed, crossing
from lloydia.backends.cuda.rows.fp16_frame import NUMBERS, RADIUS
from lloydia.backends.cuda.rows.fp16_rows import SCORE_SHIFT, UNIT, Fp16Rows
from lloydia.backends.cuda.runtime.launching import launch, processors
from lloydia.exact.half_certificate import canonical_error

__all__ = ["COUNT", "NINE", "RECORD", "nominate", "record_at"]

# Candidates of a row, candidates in a record, and the places that a record takes.
COUNT, NINE, RECORD = tl.constexpr(4), tl.constexpr(9), tl.constexpr(3)
# Slots of a tile of scores.
SLOTS = 32


@dataclass(frozen=True)
class Tiling:
    """How this stage is tiled: `stages` of prefetching, `programs` on each multiprocessor."""

    rows: int
    max_columns: int
    warps: int
    stages: int
    programs: int

    @staticmethod
    def choose(wide: bool) -> Tiling:
        """Return the fastest tiling measured on an H200.

        Programs that keep their rows in registers are small, so that several share a
        multiprocessor.  For wide rows one program reads centres less often and prefetches more.
        """
        if wide:
            return Tiling(128, 128, warps=8, stages=4, programs=2)
        return Tiling(64, 64, warps=4, stages=3, programs=4)


@triton.jit
def record_at(candidates, n, position):
    """Return pointers to records by number, which is counted from the end."""
    return candidates + (n - RECORD * (position.to(tl.int64) + 1)) * COUNT


@triton.jit(do_not_specialize=["n", "n_tiles"])
def candidates_kernel(
    y_ptr, n, width, b_ptr, half_norm_ptr, n_tiles, numbers, norm_ptr, residual_ptr,
    coefficients, summed, canonical,
    ambiguous, unresolved, candidates, run_state,
    WIDE: tl.constexpr, CHUNK: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the candidates of each listed row, or -1, or a record; list the unresolved rows.

    Parameters
    ----------
    y_ptr : float16 (batch_size, n, width), IN
    n, width, n_tiles : int, IN
    b_ptr : float16 (batch_size, n_tiles COLUMNS, width), IN
    half_norm_ptr : float16 (batch_size, n_tiles COLUMNS, HALF_NORM_WIDTH), IN
    numbers : float64 (batch_size, NUMBERS), IN
    norm_ptr, residual_ptr : float32 (batch_size, n), IN
    coefficients : int64 (batch_size, n_tiles COLUMNS), IN
    summed, canonical : float, IN
        Relative error bounds of a score's sum and of canonical D.
    ambiguous : int32 (batch_size, n), IN
    unresolved : int32 (batch_size, n), OUT
    candidates : int32 (batch_size, n, COUNT), IN and OUT
        IN: labels and the bits of best scores, as :func:`row_lists.divide` writes them.
    run_state : int32 (batch_size, SIZE), IN and OUT
        Counts the records and the unresolved rows.
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    # Both loads are in flight at once.
    stopped, n_listed = tl.load(run_state + STOPPED), tl.load(run_state + N_AMBIGUOUS)
    if stopped != 0:
        return
    PARTS: tl.constexpr = COLUMNS // SLOTS
    stride = width if WIDE else CHUNK
    size = tl.program_id(2).to(tl.int64) * n_tiles * COLUMNS
    b_ptr += size * stride
    half_norm_ptr += size * HALF_NORM_WIDTH
    numbers += tl.program_id(2) * NUMBERS
    ambiguous += first_row(n)
    unresolved += first_row(n)
    candidates += first_row(n) * COUNT
    shift = tl.load(numbers + SCORE_SHIFT).to(tl.float32)
    radius = tl.load(numbers + RADIUS).to(tl.float32)
    f = tl.arange(0, CHUNK)
    part = tl.arange(0, HALF_NORM_WIDTH)
    units = half_norm_units(tl.load(numbers + UNIT), ROWS)
    for block in range(tl.program_id(0), tl.cdiv(n_listed, ROWS), tl.num_programs(0)):
        position = block * ROWS + tl.arange(0, ROWS)
        mask = position < n_listed
        rows = tl.load(ambiguous + position, mask=mask, other=0)
        at = candidates + position.to(tl.int64) * COUNT
        found = tl.load(at, mask=mask, other=-1)
        score = tl.load(at + 1, mask=mask, other=0).to(tl.float32, bitcast=True)
        y_block = y_ptr + rows.to(tl.int64)[:, None] * stride + f[None, :]
        if WIDE:
            y = 0
        else:
            y = tl.load(y_block)
        slots, first, second, third, tile, next_tile = begin_named(ROWS, PARTS, SLOTS)
        for t in tl.range(0, n_tiles, num_stages=1 if WIDE else STAGES):
            j = (t * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
            scores = fp16_scores(
                y, y_block, mask, b_ptr + j[None, :] * stride + f[:, None],
                half_norm_ptr + j[None, :] * HALF_NORM_WIDTH + part[:, None], units, width,
                COLUMNS, WIDE, CHUNK, GROUP, STAGES,
            )  # fmt: skip
            slots, first, second, third, tile, next_tile = add_named_tile(
                slots, first, second, third, tile, next_tile, scores, t, PARTS
            )
        slot1, slot2, slot3, cell1, cell2, cell3, others, farther = crossed(
            slots, first, second, third, tile, next_tile
        )
        slot = (slot1, slot2, slot3)
        cell = (cell1, cell2, cell3)
        norm = tl.load(norm_ptr + rows, mask=mask, other=0.0)
        residual = tl.load(residual_ptr + rows, mask=mask, other=0.0)
        top = limit_of(
            found, mask, score, norm, residual, coefficients + size, shift, radius, summed,
            canonical,
        )  # fmt: skip
        known = others > top
        # Rows may be fewer than threads: all threads have loaded before one overwrites.
        tl.debug_barrier()
        for i in tl.static_range(COUNT):
            j = crossing(slot[i // 2], cell[i % 2], SLOTS)
            tl.store(at + i, tl.where(known, j, -1), mask=mask)
        nine = mask & ~known & (farther > top)
        chosen = nine.to(tl.int32)
        n_nine = tl.sum(chosen, 0)
        if n_nine > 0:
            place = tl.atomic_add(run_state + N_NINE, n_nine, sem="relaxed")
            place += tl.cumsum(chosen, 0) - chosen
            nine = nine & (n_listed + RECORD * (place.to(tl.int64) + 1) <= n)
            record = record_at(candidates, n, place)
            tl.store(record, rows, mask=nine)
            for i in tl.static_range(NINE):
                j = crossing(slot[i // 3], cell[i % 3], SLOTS)
                tl.store(record + 1 + i, j, mask=nine)
        append(rows, mask & ~known & ~nine, unresolved, run_state + N_UNRESOLVED)


def nominate(
    fp16_rows: Fp16Rows,
    centers: Fp16Centers,
    ambiguous: torch.Tensor,
    unresolved: torch.Tensor,
    candidates: torch.Tensor,
    run_state: torch.Tensor,
) -> None:
    """Queue the search for candidates of the ambiguous rows; rows without go to `unresolved`.

    `candidates`, of shape (n, COUNT), begins with the label of the first stage (or -1) and the bits
    of an upper bound of its score.
    """
    wide, rows = fp16_rows.width > WIDEST_IN_REGISTERS, fp16_rows.rows
    cut = Tiling.choose(wide)
    columns = min(centers.tile, cut.max_columns)
    programs = programs_each(cut.programs * processors(rows.device), rows.batch_size)
    launch(
        candidates_kernel, (programs, 1, rows.batch_size),
        fp16_rows.high, rows.n_samples, fp16_rows.width,
        centers.high, centers.half_norm, centers.size // columns,
        fp16_rows.numbers, fp16_rows.norm, fp16_rows.residual,
        centers.bound_coefficients, error_of_sums(fp16_rows.width),
        canonical_error(rows.n_features), ambiguous, unresolved, candidates, run_state,
        WIDE=wide, CHUNK=CHUNK if wide else fp16_rows.width, GROUP=group_of(fp16_rows.width),
        ROWS=cut.rows, COLUMNS=columns, SLOTS=SLOTS, STAGES=cut.stages, num_warps=cut.warps,
    )  # fmt: skip
