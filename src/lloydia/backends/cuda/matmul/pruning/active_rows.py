"""The first stage for active rows: as in :mod:`matmul.scan`, for listed rows, with bounds."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.half_scores import (
    CHUNK,
    START_WIDTH,
    WIDEST_KEPT,
    error_of_sums,
)
from lloydia.backends.cuda.device_functions.run_state import (
    N_ACTIVE,
    STOPPED,
    item_state,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.matmul.candidates import COUNT
from lloydia.backends.cuda.matmul.limits import limit_of
from lloydia.backends.cuda.matmul.pruning.bounds import above, below, shortfall
from lloydia.backends.cuda.matmul.row_lists import divide
from lloydia.backends.cuda.matmul.scan import tiled_least
from lloydia.backends.cuda.matmul.scan_buffers import ScanBuffers
from lloydia.backends.cuda.matmul.wide_scan import wide_least
from lloydia.backends.cuda.rows.half_frame import RADIUS
from lloydia.backends.cuda.rows.half_rows import SHIFT, UNIT
from lloydia.backends.cuda.runtime.launching import ceil_div, launch, processors
from lloydia.exact.half_certificate import canonical_error

__all__ = ["certify_active", "scan_active"]

# Programs a multiprocessor that score rows, and that judge them; rows that one of these judges.
SCORING, CERTIFYING, CERTIFIED_ROWS = 2, 4, 512


@triton.jit(do_not_specialize=["n_tiles"])
def scan_active_kernel(
    y_ptr, width, high_ptr, start_ptr, single_ptr, n_tiles, numbers, active_rows,
    least_ptr, rival_ptr, found, run_state,
    WIDE: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the two least scores of each row that is active, and the column of the least."""
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    # Asked for together.
    stopped, n_active = tl.load(run_state + STOPPED), tl.load(run_state + N_ACTIVE)
    n_active = tl.where(stopped != 0, 0, n_active)
    stride = width if WIDE else CHUNK
    f, part, column = tl.arange(0, CHUNK), tl.arange(0, START_WIDTH), tl.arange(0, COLUMNS)
    units = tl.where(part < 3, tl.load(numbers + UNIT), 0.0).to(tl.float16)
    units = tl.broadcast_to(units[None, :], (ROWS, START_WIDTH))
    for block in range(tl.program_id(0), tl.cdiv(n_active, ROWS), tl.num_programs(0)):
        position = block * ROWS + tl.arange(0, ROWS)
        mask = position < n_active
        at = tl.load(active_rows + position, mask=mask, other=0).to(tl.int64)
        y_block = y_ptr + at[:, None] * stride + f[None, :]
        if WIDE:
            b_at = high_ptr + column[None, :] * stride + f[:, None]
            least, rival, label = wide_least(
                y_block, mask, b_at, single_ptr + column, width, n_tiles,
                CHUNK, ROWS, COLUMNS, SLOTS, STAGES,
            )  # fmt: skip
        else:
            y = tl.load(y_block, mask=mask[:, None], other=0.0)
            least, rival, label = tiled_least(
                y, y_block, mask, high_ptr, start_ptr, units, width, n_tiles,
                WIDE, CHUNK, 0, ROWS, COLUMNS, SLOTS, STAGES,
            )  # fmt: skip
        tl.store(least_ptr + at, least, mask=mask)
        tl.store(rival_ptr + at, rival, mask=mask)
        tl.store(found + at, label, mask=mask)


@triton.jit(do_not_specialize=["n"])
def certify_active_kernel(
    least_ptr, rival_ptr, found, norm_ptr, rest_ptr, center_norm, center_rest, center_lowered,
    usual, terms, n, numbers, summed, canonical, short, labels, changed_rows, changed_old,
    ambiguous, candidates, bounds, active_rows, run_state, ROWS: tl.constexpr,
):  # fmt: skip
    """Give rows that are certified their labels and bounds; list the others, which have none."""
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    stopped, n_active = tl.load(run_state + STOPPED), tl.load(run_state + N_ACTIVE)
    n_active = tl.where(stopped != 0, 0, n_active)
    shift, radius = (
        tl.load(numbers + SHIFT).to(tl.float32),
        tl.load(numbers + RADIUS).to(tl.float32),
    )
    usual_norm, usual_rest = tl.load(usual), tl.load(usual + 1)
    for block in range(tl.program_id(0), tl.cdiv(n_active, ROWS), tl.num_programs(0)):
        position = block * ROWS + tl.arange(0, ROWS)
        mask = position < n_active
        rows = tl.load(active_rows + position, mask=mask, other=0)
        old = tl.load(labels + rows, mask=mask, other=0)
        new = tl.load(found + rows, mask=mask, other=0)
        least = tl.load(least_ptr + rows, mask=mask, other=0.0)
        norm = tl.load(norm_ptr + rows, mask=mask, other=0.0)
        rest = tl.load(rest_ptr + rows, mask=mask, other=0.0)
        top = limit_of(new, mask, least, norm, rest, terms, shift, radius, summed, canonical)
        rival = tl.load(rival_ptr + rows, mask=mask, other=0.0)
        certified = rival > top
        own = tl.maximum(new, 0)
        upper = above(
            least, norm, rest, tl.load(center_norm + own, mask=mask, other=0.0),
            tl.load(center_rest + own, mask=mask, other=0.0),
            tl.load(center_lowered + own, mask=mask, other=0.0), shift, summed,
        )  # fmt: skip
        lower = below(rival, norm, short, rest, shift, usual_norm, usual_rest, summed)
        tl.store(bounds + rows, tl.where(certified, upper, float("inf")), mask=mask)
        tl.store(bounds + n + rows, lower, mask=mask)
        divide(
            rows, old, new, least, mask, certified, labels, changed_rows, changed_old, ambiguous,
            candidates, run_state, COUNT,
        )  # fmt: skip


def scan_active(scan: ScanBuffers, active_rows: torch.Tensor, run_state: torch.Tensor) -> None:
    """Queue the scores of the rows in `active_rows`, as many as ``run_state[N_ACTIVE]`` says."""
    halves, packed, cut = scan.halves, scan.centers, scan.tiling
    wide, n = halves.width > WIDEST_KEPT, scan.rows.n_samples
    launch(
        scan_active_kernel,
        (min(ceil_div(n, cut.rows), SCORING * processors(active_rows.device)), 1, 1), halves.high,
        halves.width, packed.high, packed.start, packed.single, packed.size // cut.columns,
        halves.numbers, active_rows, scan.least, scan.rival, scan.found, run_state, WIDE=wide,
        CHUNK=CHUNK if wide else halves.width, ROWS=cut.rows, COLUMNS=cut.columns, SLOTS=cut.slots,
        STAGES=cut.stages, num_warps=cut.warps, maxnreg=cut.registers,
    )  # fmt: skip


def certify_active(
    scan: ScanBuffers, bounds: torch.Tensor, active_rows: torch.Tensor, labels: torch.Tensor,
    changed_rows: torch.Tensor, changed_old: torch.Tensor, run_state: torch.Tensor,
) -> None:  # fmt: skip
    """Queue the verdict on them: labels and new bounds, or a place among the ambiguous rows."""
    halves, centers, n = scan.halves, scan.centers, scan.rows.n_samples
    launch(
        certify_active_kernel,
        (min(ceil_div(n, CERTIFIED_ROWS), CERTIFYING * processors(active_rows.device)), 1, 1),
        scan.least, scan.rival, scan.found, halves.norm, halves.rest, centers.norm, centers.rest,
        centers.lowered, centers.usual, centers.terms, n, halves.numbers,
        error_of_sums(halves.width), canonical_error(scan.rows.n_features),
        shortfall(halves.width), labels, changed_rows, changed_old, scan.ambiguous, scan.candidates,
        bounds, active_rows, run_state, ROWS=CERTIFIED_ROWS, num_warps=4,
    )  # fmt: skip
