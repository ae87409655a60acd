"""The state of one run on the device."""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.flow import MOST_FEATURES, SIZE
from lloydia.backends.cuda.means import HEAD
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.sums import Lattice

__all__ = ["SPARE", "Run"]

SPARE = 1 << 19


class Run:
    """Labels, sums and centres; what kernels read and write.

    Parameters
    ----------
    rows : Placed
    lattice : Lattice
    centers : ndarray of shape (k, d)
    n_slots : int
        Iterations whose centres and reports are kept.
    settles : bool
        Whether iterations end at one with empty clusters.

    Attributes
    ----------
    labels : int32 (n,)
        -1 before the first assignment; for few features, not known then.
    changed_rows, changed_old : int32 (n or more,)
        The rows that changed in an iteration, and their old labels.
    doubts : int32 (n or more,)
        Rows in doubt; only for few features.
    table : float32 (at least k (d + 1),)
        See :func:`lloydia.backends.cuda.low_scores.tabulate`; only for few features.
    sums : int64 (n_replicas, n_limbs, k, d + 1)
    current : (k, d)
    history : (n_slots, k, d)
        The centres after iteration i in slot i modulo n_slots; those before the first in slot 0.
    report : int64 (n_slots, HEAD + k)
    flow : int32 (SIZE,)
        See :mod:`lloydia.backends.cuda.flow`.
    arrivals : int32 (2,)
        Of programs that wait for each other.
    """

    def __init__(
        self,
        rows: Placed,
        lattice: Lattice,
        centers: NDArray,
        n_slots: int,
        settles: bool,
    ) -> None:
        device = rows.device
        k, d = centers.shape
        self.rows, self.lattice, self.settles = rows, lattice, int(settles)
        low = d <= MOST_FEATURES
        # From memory that is not pinned, the host goes on when the driver has its own copy.
        start = torch.from_numpy(np.ascontiguousarray(centers))
        self.current = torch.empty((k, d), dtype=rows.wide, device=device)
        self.current.copy_(start, non_blocking=True)
        self.history = torch.empty((n_slots, k, d), dtype=rows.wide, device=device)
        self.history[0] = self.current
        self.labels = torch.empty(rows.n_samples, dtype=torch.int32, device=device)
        if not low:
            self.labels.fill_(-1)
        # Programs that keep lists of their own have room to spare.
        listed = rows.n_samples + (SPARE if low else 0)
        lists = torch.empty((3 if low else 2, listed), dtype=torch.int32, device=device)
        self.changed_rows, self.changed_old, self.doubts = lists[0], lists[1], lists[-1]
        n_replicas = lattice.replicas(rows.n_samples, k) if low else 1
        sums, report = (n_replicas, lattice.grid.n_limbs, k, d + 1), (n_slots, HEAD.value + k)
        if low:
            self.table = torch.empty((k + 7) * (d + 1), dtype=torch.float32, device=device)
        # All that starts at zero.
        zeros = torch.zeros(prod(sums) + prod(report) + SIZE, dtype=torch.int64, device=device)
        self.sums = zeros[: prod(sums)].view(sums)
        self.report = zeros[prod(sums) : -SIZE].view(report)
        self.flow = zeros[-SIZE:].view(torch.int32)[:SIZE]
        self.arrivals = zeros[-SIZE:].view(torch.int32)[SIZE:]

    def slot(self, iteration: int) -> int:
        """Return where the centres and the report of an iteration are."""
        return iteration % len(self.history)

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current; labels and sums must be those of it."""
        self.current.copy_(self.history[self.slot(iteration)])
        self.report.zero_()
        self.flow.zero_()
        self.flow[1] = iteration

    def begin_again(self, centers: NDArray) -> None:
        """Make this the state before the first iteration from other centres."""
        self.history[0] = torch.from_numpy(np.ascontiguousarray(centers))
        self.labels.fill_(-1)
        self.sums.zero_()
        self.go_back(0)
