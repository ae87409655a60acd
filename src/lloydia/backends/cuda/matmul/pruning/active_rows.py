"""The first stage for active rows: as in :mod:`matmul.scan`, for listed rows, with bounds."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.fp16_scores import (
    CHUNK,
    WIDEST_IN_REGISTERS,
    error_of_sums,
    half_norm_units,
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
from lloydia.backends.cuda.matmul.scan import top_two
from lloydia.backends.cuda.matmul.scan_buffers import ScanBuffers
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.rows.fp16_frame import RADIUS
from lloydia.backends.cuda.rows.fp16_rows import SCORE_SHIFT, UNIT
from lloydia.backends.cuda.runtime.launching import ceil_div, launch, processors
from lloydia.exact.half_certificate import canonical_error

__all__ = ["certify_active", "scan_active"]

# Programs on a multiprocessor that score, and that certify; rows of a program that certifies.
SCORING, CERTIFYING, CERTIFIED_ROWS = 2, 4, 512


@triton.jit(do_not_specialize=["n_tiles"])
def scan_active_kernel(
    y_ptr, width, high_ptr, half_norm_ptr, half_norm_f32_ptr, n_tiles, numbers, active_rows,
    best_ptr, second_ptr, found, run_state,
    WIDE: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the best two scores of each active row, and the column of the best.

    Parameters
    ----------
    y_ptr : float16 (n, width), IN
    width, n_tiles : int, IN
    high_ptr : float16 (n_tiles COLUMNS, width), IN
    half_norm_ptr : float16 (n_tiles COLUMNS, HALF_NORM_WIDTH), IN
    half_norm_f32_ptr : float32 (n_tiles COLUMNS,), IN
    numbers : float64 (NUMBERS,), IN
    active_rows : int32 (n,), IN
        The first ``run_state[N_ACTIVE]`` are listed.
    best_ptr, second_ptr : float32 (n,), OUT
    found : int32 (n,), OUT
    run_state : int32 (SIZE,), IN
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    # Both loads are in flight at once.
    stopped, n_active = tl.load(run_state + STOPPED), tl.load(run_state + N_ACTIVE)
    n_active = tl.where(stopped != 0, 0, n_active)
    stride = width if WIDE else CHUNK
    f = tl.arange(0, CHUNK)
    units = half_norm_units(tl.load(numbers + UNIT), ROWS)
    for block in range(tl.program_id(0), tl.cdiv(n_active, ROWS), tl.num_programs(0)):
        position = block * ROWS + tl.arange(0, ROWS)
        mask = position < n_active
        at = tl.load(active_rows + position, mask=mask, other=0).to(tl.int64)
        y_block = y_ptr + at[:, None] * stride + f[None, :]
        if WIDE:
            y = 0
        else:
            y = tl.load(y_block, mask=mask[:, None], other=0.0)
        # Scores of pruned runs are not summed in groups.
        best_score, second_score, label = top_two(
            y, y_block, mask, high_ptr, half_norm_ptr, half_norm_f32_ptr, units, width, n_tiles,
            WIDE, WIDE, CHUNK, 0, ROWS, COLUMNS, SLOTS, STAGES,
        )  # fmt: skip
        tl.store(best_ptr + at, best_score, mask=mask)
        tl.store(second_ptr + at, second_score, mask=mask)
        tl.store(found + at, label, mask=mask)


@triton.jit(do_not_specialize=["n"])
def certify_active_kernel(
    best_ptr, second_ptr, found, norm_ptr, residual_ptr, center_norm, center_residual, center_bias,
    typical, coefficients, n, numbers, summed, canonical, short, labels, changed_rows, changed_old,
    ambiguous, candidates, bounds, active_rows, run_state, ROWS: tl.constexpr,
):  # fmt: skip
    """Write labels and bounds of certified rows; list the ambiguous rows, whose bounds are void.

    Parameters
    ----------
    best_ptr, second_ptr : float32 (n,), IN
    found : int32 (n,), IN
    norm_ptr, residual_ptr : float32 (n,), IN
    center_norm, center_residual, center_bias : float32 (padded k,), IN
    typical : float32 (2,), IN
    coefficients : int64 (padded k,), IN
    n : int, IN
    numbers : float64 (NUMBERS,), IN
    summed, canonical, short : float, IN
        Relative error bounds of a score's sum, of canonical D and of norms.
    labels : int32 (n,), IN and OUT
    changed_rows, changed_old, ambiguous : int32 (n,), OUT
    candidates : int32 (n, COUNT), OUT
    bounds : float32 (2, n), OUT
        The upper bounds, then the lower bounds.
    active_rows : int32 (n,), IN
    run_state : int32 (SIZE,), IN and OUT
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    stopped, n_active = tl.load(run_state + STOPPED), tl.load(run_state + N_ACTIVE)
    n_active = tl.where(stopped != 0, 0, n_active)
    shift, radius = (
        tl.load(numbers + SCORE_SHIFT).to(tl.float32),
        tl.load(numbers + RADIUS).to(tl.float32),
    )
    typical_norm, typical_residual = tl.load(typical), tl.load(typical + 1)
    for block in range(tl.program_id(0), tl.cdiv(n_active, ROWS), tl.num_programs(0)):
        position = block * ROWS + tl.arange(0, ROWS)
        mask = position < n_active
        rows = tl.load(active_rows + position, mask=mask, other=0)
        old = tl.load(labels + rows, mask=mask, other=0)
        new = tl.load(found + rows, mask=mask, other=0)
        best_score = tl.load(best_ptr + rows, mask=mask, other=0.0)
        norm = tl.load(norm_ptr + rows, mask=mask, other=0.0)
        residual = tl.load(residual_ptr + rows, mask=mask, other=0.0)
        top = limit_of(
            new, mask, best_score, norm, residual, coefficients, shift, radius, summed, canonical
        )
        second_score = tl.load(second_ptr + rows, mask=mask, other=0.0)
        certified = second_score > top
        own = tl.maximum(new, 0)
        upper = above(
            best_score, norm, residual, tl.load(center_norm + own, mask=mask, other=0.0),
            tl.load(center_residual + own, mask=mask, other=0.0),
            tl.load(center_bias + own, mask=mask, other=0.0), shift, summed,
        )  # fmt: skip
        lower = below(
            second_score, norm, short, residual, shift, typical_norm, typical_residual, summed
        )
        tl.store(bounds + rows, tl.where(certified, upper, float("inf")), mask=mask)
        tl.store(bounds + n + rows, lower, mask=mask)
        divide(
            rows, old, new, best_score, mask, certified, labels, changed_rows, changed_old,
            ambiguous, 1, candidates, run_state, COUNT,
        )  # fmt: skip


def scan_active(scan: ScanBuffers, active_rows: torch.Tensor, run_state: torch.Tensor) -> None:
    """Queue the scan of the rows in `active_rows`; ``run_state[N_ACTIVE]`` is their number."""
    fp16_rows, packed, cut = scan.fp16_rows, scan.centers, scan.tiling
    wide, n = fp16_rows.width > WIDEST_IN_REGISTERS, scan.rows.n_samples
    launch(
        scan_active_kernel,
        (min(ceil_div(n, cut.rows), SCORING * processors(active_rows.device)), 1, 1),
        fp16_rows.high, fp16_rows.width, packed.high, packed.half_norm, packed.half_norm_f32,
        packed.size // cut.columns, fp16_rows.numbers, active_rows, scan.best_score,
        scan.second_score, scan.found, run_state, WIDE=wide,
        CHUNK=CHUNK if wide else fp16_rows.width, ROWS=cut.rows, COLUMNS=cut.columns,
        SLOTS=cut.slots, STAGES=cut.stages, num_warps=cut.warps, maxnreg=cut.registers,
    )  # fmt: skip


def certify_active(
    scan: ScanBuffers, bounds: torch.Tensor, active_rows: torch.Tensor, changes: LabelChanges
) -> None:
    """Queue the certification of these rows: labels and new bounds, or a place in `ambiguous`."""
    fp16_rows, centers, n = scan.fp16_rows, scan.centers, scan.rows.n_samples
    launch(
        certify_active_kernel,
        (min(ceil_div(n, CERTIFIED_ROWS), CERTIFYING * processors(active_rows.device)), 1, 1),
        scan.best_score, scan.second_score, scan.found, fp16_rows.norm, fp16_rows.residual,
        centers.norm, centers.residual, centers.score_bias, centers.typical,
        centers.bound_coefficients, n, fp16_rows.numbers, error_of_sums(fp16_rows.width),
        canonical_error(scan.rows.n_features), shortfall(fp16_rows.width), changes.labels,
        changes.rows, changes.old, scan.ambiguous, scan.candidates, bounds, active_rows,
        changes.run_state,
        ROWS=CERTIFIED_ROWS, num_warps=4,
    )  # fmt: skip
