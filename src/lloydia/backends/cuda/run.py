"""The state of one run on the device."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.flow import MOST_FEATURES, SIZE
from lloydia.backends.cuda.means import HEAD
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.sums import Lattice

__all__ = ["SPARE", "Run"]

SPARE = 1 << 20


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
        -1 before the first assignment.
    changed_rows, changed_old : int32 (n,)
        The rows that changed in an iteration, and their old labels.
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
        self.current = torch.from_numpy(np.ascontiguousarray(centers)).to(device, copy=True)
        self.history = torch.empty((n_slots, k, d), dtype=rows.wide, device=device)
        self.history[0] = self.current
        self.labels = torch.full((rows.n_samples,), -1, dtype=torch.int32, device=device)
        # Programs that keep lists of their own have room to spare.
        listed = rows.n_samples + SPARE
        self.changed_rows = torch.empty(listed, dtype=torch.int32, device=device)
        self.changed_old = torch.empty(listed, dtype=torch.int32, device=device)
        n_replicas = 1 if d > MOST_FEATURES else lattice.replicas(rows.n_samples, k)
        shape = (n_replicas, lattice.grid.n_limbs, k, d + 1)
        self.sums = torch.zeros(shape, dtype=torch.int64, device=device)
        self.report = torch.zeros((n_slots, HEAD.value + k), dtype=torch.int64, device=device)
        self.flow = torch.zeros(SIZE, dtype=torch.int32, device=device)
        self.arrivals = torch.zeros(2, dtype=torch.int32, device=device)

    def slot(self, iteration: int) -> int:
        """Return where the centres and the report of an iteration are."""
        return iteration % len(self.history)

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current; labels and sums must be those of it."""
        self.current.copy_(self.history[self.slot(iteration)])
        self.report.zero_()
        self.flow.zero_()
        self.flow[1] = iteration
