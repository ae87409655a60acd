"""Certify the labels of the first stage: each row is certified or ambiguous."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.fp16_scores import error_of_sums
from lloydia.backends.cuda.device_functions.run_state import (
    STOPPED,
    first_row,
    item_state,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.matmul.candidates import COUNT
from lloydia.backends.cuda.matmul.limits import limit_of
from lloydia.backends.cuda.matmul.packed_top_two import slots_of, unpacked
from lloydia.backends.cuda.matmul.row_lists import divide
from lloydia.backends.cuda.matmul.scan_buffers import ScanBuffers
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.rows.fp16_frame import NUMBERS, RADIUS
from lloydia.backends.cuda.rows.fp16_rows import SCORE_SHIFT
from lloydia.backends.cuda.runtime.launching import ceil_div, launch
from lloydia.exact.half_certificate import canonical_error

__all__ = ["certify"]

# Rows of a program.
CERTIFIED_ROWS = 512


@triton.jit(do_not_specialize=["resident", "n", "size", "slots", "nominates"])
def certify_kernel(
    norm_ptr, residual_ptr, resident, packed_ptr, best_ptr, second_ptr, found, coefficients, n,
    size, slots, numbers, summed, canonical, labels, changed_rows, changed_old, ambiguous,
    nominates, candidates, run_state, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the labels of certified rows, and list the ambiguous rows.

    The scores come from `packed_ptr` (:func:`packed_top_two.unpacked`) if the centres were
    `resident`, else from `best_ptr`, `second_ptr` and `found`.

    This is a kernel of its own because its atomics would keep a matrix unit waiting.

    Parameters
    ----------
    norm_ptr, residual_ptr : float32 (batch_size, n), IN
    resident : int
        1 or 0.
    packed_ptr : int64 (batch_size, n), IN
    best_ptr, second_ptr : float32 (batch_size, n), IN
    found : int32 (batch_size, n), IN
    coefficients : int64 (batch_size, size), IN
    n, size, slots : int, IN
    numbers : float64 (batch_size, NUMBERS), IN
    summed, canonical : float, IN
        Relative error bounds of a score's sum and of canonical D.
    labels : int32 (batch_size, n), IN and OUT
    changed_rows, changed_old, ambiguous : int32 (batch_size, n), OUT
    nominates : int
        1: `candidates` are written; or 0.
    candidates : int32 (batch_size, n, COUNT), OUT
    run_state : int32 (batch_size, SIZE), IN and OUT
        Counts the rows that changed and the ambiguous rows.
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    # No early return: the loads below are already in flight.
    n_now = tl.where(tl.load(run_state + STOPPED) != 0, 0, n)
    batch_item = tl.program_id(2).to(tl.int64)
    first = first_row(n)
    numbers += batch_item * NUMBERS
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = rows < n
    counts = rows < n_now
    # Row numbers among the rows of all items fit in 32 bits.
    rows += first.to(tl.int32)
    old = tl.load(labels + rows, mask=mask, other=0)
    norm = tl.load(norm_ptr + rows, mask=mask, other=0.0)
    residual = tl.load(residual_ptr + rows, mask=mask, other=0.0)
    if resident != 0:
        new, best_score, second_score = unpacked(
            tl.load(packed_ptr + rows, mask=mask, other=0), slots, size
        )
    else:
        new = tl.load(found + rows, mask=mask, other=0)
        best_score = tl.load(best_ptr + rows, mask=mask, other=0.0)
        second_score = tl.load(second_ptr + rows, mask=mask, other=0.0)
    top = limit_of(
        new, counts, best_score, norm, residual, coefficients + batch_item * size,
        tl.load(numbers + SCORE_SHIFT).to(tl.float32), tl.load(numbers + RADIUS).to(tl.float32),
        summed, canonical,
    )  # fmt: skip
    certified = second_score > top
    divide(
        rows, old, new, best_score, counts, certified, labels, changed_rows + first,
        changed_old + first, ambiguous + first, nominates, candidates + first * COUNT, run_state,
        COUNT,
    )  # fmt: skip


def certify(scan: ScanBuffers, changes: LabelChanges) -> None:
    """Queue the certification of the first stage's labels."""
    fp16_rows, centers, n = scan.fp16_rows, scan.centers, scan.rows.n_samples
    launch(
        certify_kernel, (ceil_div(n, CERTIFIED_ROWS), 1, scan.rows.batch_size),
        fp16_rows.norm, fp16_rows.residual, int(scan.resident), scan.packed_scores,
        scan.best_score, scan.second_score, scan.found, centers.bound_coefficients, n, centers.size,
        slots_of(centers.size), fp16_rows.numbers, error_of_sums(fp16_rows.width),
        canonical_error(scan.rows.n_features),
        changes.labels, changes.rows, changes.old, scan.ambiguous, int(not scan.small),
        scan.ambiguous if scan.small else scan.candidates, changes.run_state, ROWS=CERTIFIED_ROWS,
        num_warps=4,
    )  # fmt: skip
