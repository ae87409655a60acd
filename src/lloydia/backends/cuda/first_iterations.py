"""The first iterations over more features, where another run of their form was before.

As in :mod:`first_launch`: rows are stored, a start is taken over and some iterations are queued
before anything is made of the run, by addresses alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from lloydia.backends.cuda.launching import stream_of
from lloydia.backends.cuda.pieces import aligned
from lloydia.backends.cuda.plans import CLEAN, plan_of
from lloydia.backends.cuda.regions import Within, within
from lloydia.backends.cuda.series import Heads, Series
from lloydia.backends.cuda.starting import Start

if TYPE_CHECKING:
    from lloydia.backends.cuda.tensor_run import TensorRun

__all__ = ["STEPS", "FirstIterations", "KnownIterations"]

# Of what a first iteration queues, start, packing, assignment and update, which belong together.
FIRST, AHEAD = (1, 4), (2, 4)
STEPS = (1, 3), (2, 3), FIRST, AHEAD


class KnownIterations(NamedTuple):
    """What first iterations of a form have in common.

    Attributes
    ----------
    storing, first : Within
        The storing of the rows, by them, their bounds and what is stored of them; and what follows
        up to the end of the first iteration, also by the start, the centres, the labels, and the
        rest of the run's memory.
    following : Heads
        Of the launches of the first, those of an iteration that follows.
    n_iterations, n_limbs : int
        How many there are, and the limbs of the sums that they are launched with.
    sizes : sequence of int
        Of the last three regions, and of the scratch of the first iteration, in bytes.
    zeros : int
        How far in the last region zeros begin, as many as it wants.
    """

    storing: Within
    first: Within
    following: Heads
    n_iterations: int
    n_limbs: int
    sizes: Sequence[int]
    zeros: int

    @staticmethod
    def of(run: TensorRun, begun: torch.Tensor, n_iterations: int) -> KnownIterations | None:
        """Return what is known of so many first iterations of runs like this, from a start.

        None where the first was not planned with the start and the storing of the rows, or wants
        more zeros than there are.
        """
        rows, halves = run.rows, run.rows.halves
        if not run.early or halves is None or rows.measured is None:
            return None
        own = rows.measured, halves.piece.whole, run.piece.whole
        of_rows = rows.X, *own[:2]
        regions = *of_rows, begun, run.current, run.labels, own[2]
        before, after = halves.layout(own[0]), run.first_layout(Start(begun, own[0]))
        storing = within(plan_of(rows.device, before), before.parts, of_rows)
        first = within(plan_of(rows.device, after), after.parts, regions)
        if storing is None or first is None:
            return None
        plan = first.plan
        if plan.zeros and plan.zeros[-1] > CLEAN:
            return None
        following = plan.spans[STEPS.index(AHEAD if run.ahead else FIRST)]
        sizes = *(region.nbytes for region in own), plan.rest[-1] if plan.rest else 0
        zeros = run.piece.begin("update")
        return KnownIterations(storing, first, following, n_iterations, run.n_limbs, sizes, zeros)


def room_for(first: int, second: int, device: torch.device) -> torch.Tensor:
    """Return room for two regions of so many bytes, one after the other."""
    return torch.empty(aligned(first) + second, dtype=torch.uint8, device=device)


class FirstIterations:
    """Some that are queued as this is made.

    Parameters
    ----------
    known : KnownIterations
    X : torch.Tensor of shape (n, d)
    begun : torch.Tensor of shape (k, d)
        The start: both of the form's types, on the current device, and multiples of 16 bytes.

    Attributes
    ----------
    labels, current : torch.Tensor
        As of :class:`~lloydia.backends.cuda.tensor_run.TensorRun`.
    series : Series
        The launches up to the end of the first iteration; it keeps their memory.
    """

    def __init__(self, known: KnownIterations, X: torch.Tensor, begun: torch.Tensor) -> None:
        self.known = known
        bounds, stored, piece, scratch = known.sizes
        stream = stream_of(X.device.index)
        # Apart: a run that begins again gives back what is its own, but not what is of the rows.
        self.of_rows = room_for(bounds, stored, X.device)
        at_rows = self.of_rows.data_ptr()
        of_rows = X.data_ptr(), at_rows, at_rows + aligned(bounds)
        # The device begins while there is room made for the rest.
        known.storing.at(of_rows).queue(stream)
        self.current = torch.empty_like(begun)
        self.labels = torch.empty(X.shape[0], dtype=torch.int32, device=X.device)
        self.of_run = room_for(piece, scratch, X.device)
        at_run = self.of_run.data_ptr()
        own = begun.data_ptr(), self.current.data_ptr(), self.labels.data_ptr(), at_run
        regions = *of_rows, *own
        series = known.first.at(regions, at_run + aligned(piece), at_run + known.zeros)
        series.queue(stream)
        if known.n_iterations > 1:
            series.some(known.following).queue(stream, known.n_iterations - 1)
        kept = X, begun, self.current, self.labels, self.of_rows, self.of_run
        self.series = series.keeping(kept)

    @property
    def bounds(self) -> torch.Tensor:
        """See :func:`lloydia.backends.cuda.extent.new_bounds`."""
        return self.of_rows[: self.known.sizes[0]].view(torch.int64).view(1, 2, -1)

    @property
    def stored(self) -> torch.Tensor:
        """The piece of :class:`~lloydia.backends.cuda.half_rows.HalfRows`."""
        begin = aligned(self.known.sizes[0])
        return self.of_rows[begin : begin + self.known.sizes[1]]

    @property
    def piece(self) -> torch.Tensor:
        """That of the run."""
        return self.of_run[: self.known.sizes[2]]

    def steps(self) -> list[Series]:
        """Return the spans of the plan, as where these were queued."""
        return [self.series.some(span) for span in self.known.first.plan.spans]
