"""The end of a run: the inertia, and which labels occur."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.distances import own_distances
from lloydia.backends.cuda.rows.totals import cost_limbs, join_cost
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.launching import ceil_div
from lloydia.backends.cuda.runtime.relocation import BufferMap, Stages, replay

__all__ = ["Ending"]

# The limbs of the inertia and their exponent; then the largest term.
TOTAL = 4


class Ending:
    """The inertia and the labels that occur, copied to the host.

    ``float()`` and :meth:`full` wait for the copy.

    Parameters
    ----------
    rows : WholeRows
    labels : torch.Tensor of shape (n,), int32
    centers : torch.Tensor of shape (k, d)
        The centres that the rows were assigned to.
    """

    def __init__(self, rows: WholeRows, labels: torch.Tensor, centers: torch.Tensor) -> None:
        self.n, self.k = rows.n_samples, len(centers)
        found = torch.zeros(TOTAL + 1 + ceil_div(self.k, 2), dtype=torch.int64, device=rows.device)
        D = torch.empty(self.n, dtype=torch.float64, device=rows.device)
        parts = [x for x in (labels, centers, found, D, rows.weights) if x is not None]
        buffer_map = BufferMap.of("ending", rows.X, more=(self.k, rows.weights is None))
        work = partial(stages_of_ending, rows, labels, centers, found, D)
        replay(work, rows.device, buffer_map.with_buffers(*parts))
        self.found = AsyncCopy(found)

    def __float__(self) -> float:
        return join_cost(self.found.numpy()[:TOTAL].tolist(), self.n)

    def full(self) -> bool:
        """Return whether every cluster has a row."""
        return int(np.count_nonzero(self.found.numpy()[TOTAL + 1 :].view(np.int32))) == self.k


def stages_of_ending(
    rows: WholeRows,
    labels: torch.Tensor,
    centers: torch.Tensor,
    found: torch.Tensor,
    D: torch.Tensor,
) -> Stages:
    """Return what queues an :class:`Ending`; `found` are zeros, `D` has room for each row."""
    largest = found[TOTAL : TOTAL + 1].view(torch.float64)
    seen = found[TOTAL + 1 :].view(torch.int32)[: len(centers)]
    return [
        partial(own_distances, rows, labels, centers, out=D, largest=largest, seen=seen),
        partial(cost_limbs, D, rows.weights, largest, found[:TOTAL], labels=labels, seen=seen),
    ]
