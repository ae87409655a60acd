"""The memory of a run over rows of more features: labels, lists, sums and centres."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import torch

from lloydia.backends.cuda.entries import Entries
from lloydia.backends.cuda.flow import SIZE
from lloydia.backends.cuda.means import HEAD
from lloydia.backends.cuda.pieces import Piece
from lloydia.backends.cuda.plans import CLEAN
from lloydia.backends.cuda.tensor_scan import TensorScan

if TYPE_CHECKING:
    from lloydia.backends.cuda.engine import CUDA

__all__ = ["TensorMemory"]


class TensorMemory:
    """Tensors, most of which are parts of one; plans have those of the scan and of the entries.

    Attributes
    ----------
    labels : int32 (n,)
        -1 before the first assignment.
    changed_rows, changed_old : int32 (n,)
        The rows that changed in an iteration, and their old labels.
    current : (k, d)
    history : (n_slots, k, d)
        The centres after iteration i in slot i modulo n_slots; those before the first in slot 0.
    report : int64 (n_slots, HEAD + k)
    flow : int32 (SIZE,)
        See :mod:`lloydia.backends.cuda.flow`.
    limit : float64 (1,), or None
        The sum of squares of movements that the run ends at, once it is on its way.
    shape : tuple of int
        n_slots, k, d.
    n_limbs : int
        For which the piece has room.
    piece : Piece
        Up to the history it begins with zeros.
    """

    rows: CUDA
    shape: tuple[int, int, int]
    n_limbs: int
    limit: torch.Tensor | None = None

    def _take(self) -> None:
        """Take the memory; nothing of it is written."""
        rows, n = self.rows, self.rows.n_samples
        n_slots, k, d = self.shape
        whole, long, clean = torch.int32, torch.int64, (torch.uint8, (CLEAN,))
        # These outlive a run.
        self.current = torch.empty((k, d), dtype=rows.wide, device=rows.device)
        self.labels = torch.empty(n, dtype=whole, device=rows.device)
        self.piece = Piece(
            rows.device, report=(long, (n_slots, HEAD.value + k)), flow=(whole, (SIZE,)),
            scan=clean, update=clean, sums=(long, (1, self.n_limbs, k, d + 1)),
            history=(rows.wide, self.shape), rows=(whole, (n,)), old=(whole, (n,)),
        )  # fmt: skip

    @property
    def pieces(self) -> list[torch.Tensor]:
        """All memory that recordings need, but for what follows."""
        limit = [] if self.limit is None else [self.limit]
        return [self.current, self.labels, self.piece.whole, *limit]

    @cached_property
    def changed_rows(self) -> torch.Tensor:
        return self.piece.rows

    @cached_property
    def changed_old(self) -> torch.Tensor:
        return self.piece.old

    @cached_property
    def history(self) -> torch.Tensor:
        return self.piece.history

    @cached_property
    def report(self) -> torch.Tensor:
        return self.piece.report

    @cached_property
    def flow(self) -> torch.Tensor:
        return self.piece.flow

    @cached_property
    def scan(self) -> TensorScan:
        """What assigns rows."""
        return TensorScan(self.rows, self.shape[1])

    @cached_property
    def entries(self) -> Entries:
        """The entries of the rows that changed."""
        return Entries(self.rows.n_samples, self.shape[1], self.rows.device)

    @cached_property
    def sums(self) -> torch.Tensor:
        """The sums of the clusters: int64 (1, n_limbs, k, d + 1); waits for the grid."""
        n_limbs = self.rows.lattice.grid.n_limbs
        if self.n_limbs == n_limbs:
            return self.piece.sums
        _, k, d = self.shape
        return torch.zeros((1, n_limbs, k, d + 1), dtype=torch.int64, device=self.rows.device)

    def slot(self, iteration: int) -> int:
        """Return where the centres and the report of an iteration are."""
        return iteration % self.shape[0]

    def before(self, iteration: int) -> torch.Tensor:
        """Return the centres that rows were assigned to in an iteration."""
        return self.history[self.slot(iteration - 1)]
