"""The first launch of a run over few features, where another run of its form was before it.

All that it depends on beside addresses was found by that one.  So the device begins before anything
is made of the run here, and where that launch was all of it, nothing needs to be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.fetching import Fetched
from lloydia.backends.cuda.flow import HALT, ITERATION
from lloydia.backends.cuda.launching import stream_of
from lloydia.backends.cuda.low_grid import desk_of
from lloydia.backends.cuda.low_shape import LowShape
from lloydia.backends.cuda.means import HEAD, MOVE, RECHECKED
from lloydia.backends.cuda.regions import Within
from lloydia.backends.cuda.totals import join_cost

__all__ = ["FirstLaunch", "KnownLaunch", "Outcome"]

# The bits of a move whose square does not underflow.
LEAST_MOVE = int(np.float64(2.0**-500).view(np.int64))
# A flow begins with HALT, and then the iteration, as the halves of an integer.
ITERATED = 32
assert (HALT.value, ITERATION.value) == (0, 1)


class KnownLaunch(NamedTuple):
    """What first launches of a form have in common.

    Attributes
    ----------
    launches : Within
        By the desk, the rows, the start, the piece, the centres, the labels, and the host's memory.
    launched : tuple of (int, bool, bool)
        How many iterations; whether an assignment follows, and the inertia.
    shape : LowShape
    k : int
    all_seen : list of int
        What is told where every label occurs: 1 for each, as the halves of integers.
    """

    launches: Within
    launched: tuple[int, bool, bool]
    shape: LowShape
    k: int
    all_seen: list[int]

    @staticmethod
    def of(
        launches: Within, launched: tuple[int, bool, bool], shape: LowShape, k: int
    ) -> KnownLaunch:
        """Return what is known of these launches."""
        all_seen = np.array([1] * k + [0] * (k % 2), dtype=np.int32).view(np.int64).tolist()
        return KnownLaunch(launches, launched, shape, k, all_seen)


class Outcome(NamedTuple):
    """What a run came to that only its number of iterations has ended.

    Attributes
    ----------
    labels, centers : torch.Tensor
    inertia : float
    rechecked : int
        Rows that were checked again, in all iterations.
    full : bool
        Whether every cluster has a row.
    """

    labels: torch.Tensor
    centers: torch.Tensor
    inertia: float
    rechecked: int
    full: bool


class FirstLaunch:
    """One that is queued as this is made.

    Parameters
    ----------
    known : KnownLaunch
    X : torch.Tensor of shape (n, d)
    begun : torch.Tensor of shape (k, d)
        The start: both of the form's types, on the current device, and multiples of 16 bytes.

    Attributes
    ----------
    labels, current, piece : torch.Tensor
        As of :class:`~lloydia.backends.cuda.low_run.LowRun`.
    coming : Fetched
        What it tells.
    """

    def __init__(self, known: KnownLaunch, X: torch.Tensor, begun: torch.Tensor) -> None:
        device, shape = X.device, known.shape
        self.known, self.d = known, X.shape[1]
        self.current = torch.empty_like(begun)
        self.labels = torch.empty(X.shape[0], dtype=torch.int32, device=device)
        self.piece = torch.empty(shape.places[-1], dtype=torch.uint8, device=device)
        coming = Fetched.written(shape.edges[-1], device)
        assert coming is not None
        self.coming = coming
        regions = [
            part.data_ptr()
            for part in (
                desk_of(device), X, begun, self.piece, self.current, self.labels, coming.memory
            )
        ]  # fmt: skip
        try:
            known.launches.at(regions).queue(stream_of(device.index))
        finally:
            coming.note()

    def outcome(self, most_bits: int) -> Outcome | None:
        """Wait for it; return what it came to, or None if that is for the loop to say.

        The run ends with these iterations, by no rule but that nothing changes or moves.  It is for
        the loop where that happened, a cluster is to be filled, or numbers are to be refused.

        Parameters
        ----------
        most_bits : int
            The bits of a float64 number that magnitudes of rows are to be below; those of float32
            rows, which are told by their own 32 bits, always are.
        """
        known, found = self.known, self.coming.numpy()
        _, at_bounds, at_cost, at_seen, at_flow, at_reports, *_ = known.shape.edges
        # Lists of Python's: there is too little of it for NumPy.
        begin = found[:at_reports].tolist()
        # It halts where rows are refused, have no room, do not change, or clusters are empty.
        if begin[at_flow] != known.launched[0] << ITERATED:
            return None
        if max(begin[at_bounds : at_bounds + self.d]) >= most_bits:
            return None
        rechecked = 0
        for head in self._reports(found[at_reports:]):
            if head[MOVE.value] < LEAST_MOVE:
                return None
            rechecked += head[RECHECKED.value]
        cost = begin[at_cost:at_seen]
        full = begin[at_seen : at_seen + len(known.all_seen)] == known.all_seen
        inertia = join_cost(cost[:4], self.labels.shape[0])
        return Outcome(self.labels, self.current, inertia, rechecked, full)

    def _reports(self, slots: NDArray[np.int64]) -> list[list[int]]:
        """Return the first numbers of each report."""
        known, size = self.known, HEAD.value + self.known.k
        # That of iteration i is in slot i, from 1 on: there are more slots than iterations.
        reports = slots[size : (known.launched[0] + 1) * size].reshape(-1, size)
        return reports[:, : HEAD.value].tolist()
