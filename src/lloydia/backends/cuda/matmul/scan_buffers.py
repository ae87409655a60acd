"""What the stages of a scan pass on: scores, and the list of ambiguous rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from lloydia.backends.cuda.device_functions.fp16_scores import WIDEST_IN_REGISTERS, group_of
from lloydia.backends.cuda.matmul.fp16_centers import Fp16Centers
from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows

__all__ = ["ScanBuffers", "Tiling"]


@dataclass(frozen=True)
class Tiling:
    """How the scan is tiled; `registers` lets several programs share a multiprocessor."""

    rows: int
    columns: int
    slots: int
    warps: int
    stages: int
    registers: int | None = None

    @staticmethod
    def choose(width: int) -> Tiling:
        """Return the fastest tiling measured on an H200 for a width of rows."""
        if width <= 64:
            return Tiling(128, 64, 32, warps=8, stages=3, registers=80)
        if width <= WIDEST_IN_REGISTERS:
            return Tiling(128, 128, 32, warps=8, stages=2, registers=128)
        return Tiling(128, 128 if group_of(width) else 256, 64, warps=8, stages=3)


class ScanBuffers(Protocol):
    """What later stages read of a :class:`matmul.scan.TensorScan`; see there."""

    ambiguous: torch.Tensor
    candidates: torch.Tensor
    found: torch.Tensor
    fp16_rows: Fp16Rows
    centers: Fp16Centers
    tiling: Tiling
    small: bool
    resident: bool

    @property
    def rows(self) -> WholeRows: ...
    @property
    def best_score(self) -> torch.Tensor: ...
    @property
    def second_score(self) -> torch.Tensor: ...
    @property
    def packed_scores(self) -> torch.Tensor: ...
