"""The scan for more than 8 features: scores by matrix units, then the recheck of ambiguous rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.fp16_scores import (
    CHUNK,
    HALF_NORM_WIDTH,
    WIDEST_IN_REGISTERS,
    fp16_scores,
    group_of,
    half_norm_units,
)
from lloydia.backends.cuda.device_functions.run_state import (
    N_UNRESOLVED,
    STOPPED,
    first_row,
    item_state,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.dispatch import PADDED, Kernels, Stage, Work, chosen
from lloydia.backends.cuda.matmul.candidates import COUNT, nominate
from lloydia.backends.cuda.matmul.certify import certify
from lloydia.backends.cuda.matmul.fp16_centers import Fp16Centers
from lloydia.backends.cuda.matmul.recheck_all import recheck_all
from lloydia.backends.cuda.matmul.recheck_exact import RecheckExact
from lloydia.backends.cuda.matmul.recheck_pairs import recheck_pairs
from lloydia.backends.cuda.matmul.resident_scan import resident_scan
from lloydia.backends.cuda.matmul.scan_buffers import Tiling
from lloydia.backends.cuda.matmul.top_two import add_tile, begin, end
from lloydia.backends.cuda.matmul.wide_scan import wide_top_two
from lloydia.backends.cuda.protocols import LabelChanges, Rows, WholeRows
from lloydia.backends.cuda.rows.fp16_frame import NUMBERS
from lloydia.backends.cuda.rows.fp16_rows import UNIT, Fp16Rows
from lloydia.backends.cuda.runtime.launching import ceil_div, launch
from lloydia.backends.cuda.runtime.relocation import Scratch, Stages, tensors_of

__all__ = ["TensorScan", "top_two"]


@triton.jit
def tiled_top_two(
    y, y_block, mask, high_ptr, half_norm_ptr, units, width, n_tiles,
    WIDE: tl.constexpr, CHUNK: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Return the best two scores of each row, and the column of the best; see `fp16_scores`."""
    PARTS: tl.constexpr = COLUMNS // SLOTS
    stride = width if WIDE else CHUNK
    column, part, f = tl.arange(0, COLUMNS), tl.arange(0, HALF_NORM_WIDTH), tl.arange(0, CHUNK)
    slots, first, second, tile = begin(ROWS, PARTS, SLOTS)
    at_feature = column[None, :] * stride + f[:, None]
    at_half_norm = column[None, :] * HALF_NORM_WIDTH + part[:, None]
    for t in tl.range(0, n_tiles, num_stages=1 if WIDE else STAGES):
        j = tl.zeros((), tl.int64) + t * COLUMNS
        scores = fp16_scores(
            y, y_block, mask, high_ptr + j * stride + at_feature,
            half_norm_ptr + j * HALF_NORM_WIDTH + at_half_norm, units, width,
            COLUMNS, WIDE, CHUNK, GROUP, STAGES,
        )  # fmt: skip
        slots, first, second, tile = add_tile(slots, first, second, tile, scores, t, PARTS)
    return end(slots, first, second, tile)


@triton.jit
def top_two(
    y, y_block, mask, high_ptr, half_norm_ptr, half_norm_f32_ptr, units, width, n_tiles,
    WIDE: tl.constexpr, ONE_LOOP: tl.constexpr, CHUNK: tl.constexpr, GROUP: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Return the best two scores of each row, and the column of the best, for all widths."""
    if ONE_LOOP:
        best_score, second_score, label = wide_top_two(
            y_block, mask, high_ptr, half_norm_f32_ptr, width, n_tiles,
            CHUNK, ROWS, COLUMNS, SLOTS, STAGES,
        )  # fmt: skip
    else:
        best_score, second_score, label = tiled_top_two(
            y, y_block, mask, high_ptr, half_norm_ptr, units, width, n_tiles,
            WIDE, CHUNK, GROUP, ROWS, COLUMNS, SLOTS, STAGES,
        )  # fmt: skip
    return best_score, second_score, label


@triton.jit(do_not_specialize=["n", "n_tiles"])
def scan_kernel(
    y_ptr, n, width, high_ptr, half_norm_ptr, half_norm_f32_ptr, n_tiles, numbers,
    best_ptr, second_ptr, found, run_state,
    WIDE: tl.constexpr, ONE_LOOP: tl.constexpr, CHUNK: tl.constexpr, GROUP: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the best two scores of each row, and the column of the best.

    Rows stay in registers; if WIDE, they are loaded again for every tile of centres, by chunks.
    With ONE_LOOP one loop goes through the chunks of all tiles (:mod:`wide_scan`).

    Parameters
    ----------
    y_ptr : float16 (batch_size, n, width), IN
    n, width, n_tiles : int, IN
    high_ptr : float16 (batch_size, n_tiles COLUMNS, width), IN
    half_norm_ptr : float16 (batch_size, n_tiles COLUMNS, HALF_NORM_WIDTH), IN
    half_norm_f32_ptr : float32 (batch_size, n_tiles COLUMNS), IN
    numbers : float64 (batch_size, NUMBERS), IN
    best_ptr, second_ptr : float32 (batch_size, n), OUT
    found : int32 (batch_size, n), OUT
    run_state : int32 (batch_size, SIZE), IN
    """
    stride = width if WIDE else CHUNK
    # No early return: the loads of rows below are already in flight.
    wait_for_previous_kernel()
    stopped = tl.load(item_state(run_state) + STOPPED) != 0
    batch_item = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = rows < n
    at = first_row(n) + rows
    high_ptr += batch_item * n_tiles * COLUMNS * stride
    half_norm_ptr += batch_item * n_tiles * COLUMNS * HALF_NORM_WIDTH
    half_norm_f32_ptr += batch_item * n_tiles * COLUMNS
    f = tl.arange(0, CHUNK)
    y_block = y_ptr + at[:, None] * stride + f[None, :]
    if WIDE:
        y = 0
    else:
        y = tl.load(y_block, mask=mask[:, None], other=0.0)
    units = half_norm_units(tl.load(numbers + batch_item * NUMBERS + UNIT), ROWS)
    best_score, second_score, label = top_two(
        y, y_block, mask, high_ptr, half_norm_ptr, half_norm_f32_ptr, units, width,
        tl.where(stopped, 0, n_tiles),
        WIDE, ONE_LOOP, CHUNK, GROUP, ROWS, COLUMNS, SLOTS, STAGES,
    )  # fmt: skip
    tl.store(best_ptr + at, best_score, mask=mask)
    tl.store(second_ptr + at, second_score, mask=mask)
    tl.store(found + at, label, mask=mask)


class RowsWithFp16(WholeRows, Protocol):
    """Rows, and their half-precision copy once there is one."""

    fp16_rows: Fp16Rows | None


class TensorScan:
    """Labels by certified half-precision scores.

    Parameters
    ----------
    rows : RowsWithFp16
        With their half-precision copy.
    k : int

    Attributes
    ----------
    first : Kernels
        The first stage; `resident` is whether it is one that keeps all centres in a multiprocessor.
    scores : float32 tensor of shape (2, n), n rounded up to a multiple of 4
        The best two scores of each row, or :attr:`packed_scores`.
    found : int32 tensor of shape (n,)
        The column of the best score, unless `packed_scores` has it.
    small : bool
        Whether :mod:`recheck_all` alone rechecks rows, so that there are no `unresolved` and no
        `candidates`.
    inline_exact : bool
        Whether :mod:`recheck_pairs` also takes the unresolved rows, so that there is no
        `recheck_exact`.
    """

    unresolved: torch.Tensor
    candidates: torch.Tensor
    recheck_exact: RecheckExact

    def __init__(self, rows: RowsWithFp16, k: int) -> None:
        assert rows.fp16_rows is not None, "A scan reads rows in half precision."
        # A weak reference to the rows, since they may hold this scan.
        self.rows, self.fp16_rows = rows.fp16_rows.rows, rows.fp16_rows
        self.tiling = Tiling.choose(self.fp16_rows.width)
        work = Work.over(rows, k)
        self.first = chosen(Stage.SCORES, work).kernels
        recheck = chosen(Stage.RECHECK, work).kernels
        self.resident = self.first in (Kernels.HOPPER, Kernels.RESIDENT)
        self.small, self.inline_exact = (
            recheck is Kernels.ALL, recheck is not Kernels.PAIRS_THEN_ALL,
        )  # fmt: skip
        columns = PADDED if self.resident else self.tiling.columns
        self.centers = Fp16Centers(self.fp16_rows, k, columns)
        n, device = rows.batch_size * rows.n_samples, rows.device
        # All addresses are multiples of 16 bytes, whatever n is: with others Triton would compile
        # the kernels once more.
        self.scores = torch.empty((2, ceil_div(n, 4) * 4), device=device, dtype=torch.float32)
        self.found = torch.empty(n, device=device, dtype=torch.int32)
        self.ambiguous = torch.empty_like(self.found)
        if not self.small:
            self.unresolved = torch.empty_like(self.ambiguous)
            self.candidates = torch.empty((n, COUNT.value), device=device, dtype=torch.int32)
        if not self.inline_exact:
            self.recheck_exact = RecheckExact(device, rows.batch_size)

    @property
    def best_score(self) -> torch.Tensor:
        return self.scores[0]

    @property
    def second_score(self) -> torch.Tensor:
        return self.scores[1]

    @property
    def packed_scores(self) -> torch.Tensor:
        """The result of :mod:`resident_scan` for each row: int64 of shape (n,)."""
        return self.scores.view(-1).view(torch.int64)

    @property
    def memory(self) -> Scratch:
        """All memory besides the rows, and which of it begins with zeros."""
        centers = self.centers
        parts, zeros = tensors_of(self, centers), [centers.partial, centers.tickets]
        if not self.inline_exact:
            parts += tensors_of(self.recheck_exact)
            zeros.append(self.recheck_exact.tickets)
        return parts, zeros

    def scan(self, centers: torch.Tensor, changes: LabelChanges) -> None:
        """Queue one assignment to `centers`, in the rows' ``wide`` type.

        Centres have shape (k, d), or (batch_size, k, d).
        """
        self.centers.pack(self.fp16_rows, centers, changes.run_state)
        for queue in self.stages(centers, changes):
            queue()

    def stages(self, centers: torch.Tensor, changes: LabelChanges) -> Stages:
        """Return what queues one assignment, as :meth:`scan` does, to centres that are packed."""
        first = self.certifying(changes)
        if self.small:
            return [*first, partial(recheck_all, self.rows, self.centers, self.ambiguous, changes)]
        some = self.ambiguous, self.unresolved, self.candidates
        return [*first, *self.rechecking(self.rows, centers, *some, changes)]

    def certifying(self, changes: LabelChanges) -> Stages:
        """Return what queues the scores and the certification, which lists the ambiguous rows.

        Unless `small`, candidates are searched as well.  The centres are those that are packed.
        """
        nominated = [] if self.small else [partial(self.nominate, changes.run_state)]
        return [self.scoring(changes.run_state), partial(certify, self, changes), *nominated]

    def nominate(self, run_state: torch.Tensor) -> None:
        """Queue the search for candidates of the ambiguous rows."""
        nominate(
            self.fp16_rows, self.centers, self.ambiguous, self.unresolved, self.candidates,
            run_state,
        )  # fmt: skip

    def rechecking(
        self,
        rows: Rows,
        centers: torch.Tensor,
        ambiguous: torch.Tensor,
        unresolved: torch.Tensor,
        candidates: torch.Tensor,
        changes: LabelChanges,
    ) -> Stages:
        """Return what queues the recheck of the ambiguous rows by D; not where `small`.

        `rows` may be some rows only; then the lists and labels go by their numbers.
        """
        last = (self.centers, unresolved) if self.inline_exact else None
        pairs = partial(recheck_pairs, rows, centers, ambiguous, candidates, changes, last)
        if self.inline_exact:
            return [pairs]
        by_column = self.centers.columns.transpose(1, 2)[:, : self.centers.k]
        count = changes.run_state[N_UNRESOLVED.value :]
        return [pairs, partial(self.recheck_exact, rows.X, by_column, unresolved, count, changes)]

    def scoring(self, run_state: torch.Tensor) -> Callable[[], None]:
        """Return what queues the first stage."""
        centers = self.fp16_rows, self.centers
        if self.first is Kernels.RESIDENT:
            return partial(resident_scan, *centers, self.packed_scores, run_state)
        if self.first is Kernels.HOPPER:
            # Imported late: other versions of Triton may lack what it imports.
            from lloydia.backends.cuda.matmul.hopper_scan import hopper_scan

            return partial(hopper_scan, *centers, self.packed_scores, run_state)
        assert self.first in (Kernels.TILED, Kernels.WIDE), f"{self.first} has no launch here."
        return partial(self._score_tiles, run_state)

    def _score_tiles(self, run_state: torch.Tensor) -> None:
        """Queue the first stage, by the kernel of this module."""
        fp16_rows, packed, cut, n = self.fp16_rows, self.centers, self.tiling, self.rows.n_samples
        wide = fp16_rows.width > WIDEST_IN_REGISTERS
        launch(
            scan_kernel, (ceil_div(n, cut.rows), 1, self.rows.batch_size),
            fp16_rows.high, n, fp16_rows.width, packed.high, packed.half_norm,
            packed.half_norm_f32, packed.size // cut.columns, fp16_rows.numbers,
            self.best_score, self.second_score, self.found, run_state,
            WIDE=wide, ONE_LOOP=self.first is Kernels.WIDE,
            CHUNK=CHUNK if wide else fp16_rows.width, GROUP=group_of(fp16_rows.width),
            ROWS=cut.rows, COLUMNS=cut.columns, SLOTS=cut.slots, STAGES=cut.stages,
            num_warps=cut.warps, maxnreg=cut.registers,
        )  # fmt: skip
