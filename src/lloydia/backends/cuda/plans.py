"""Plans of launches: work that is done the same way in other memory is not worked out again.

What a fit launches depends on the shape and the types of its data, and on where its memory is.  A
*plan* is made of the launches of the first fit of a shape: each address is replaced by the part of
the memory that it lies in and how far in.  For the next fit a launch takes an addition an address,
a tenth of what it takes by name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from lloydia.backends.cuda.launching import Launch, ceil_div, note, noted, stream_of

__all__ = ["Layout", "Plan", "planned", "queue", "tensors_of"]

# Bytes that torch's tensors begin at multiples of.
ALIGNED = 512
# Plans that are kept.
MOST = 128
# Types of values that are part of a key.
PLAIN = int, float, bool, str, tuple, type(None)

_plans: dict[Hashable, Plan] = {}


class Layout(NamedTuple):
    """What the launches of some work depend on.

    Attributes
    ----------
    key : hashable
        Names the work, and determines all numbers and types that it launches kernels with, the
        sizes of the parts, and which of their addresses are multiples of 16 bytes.
    parts : sequence of torch.Tensor
        The memory: each tensor that is launched with is, or is a view of, one of them.
    scratch : callable
        Returns further parts, which nothing but this work uses, and which may begin with zeros.  It
        is asked where there is no plan; a plan takes them of one piece.
    """

    key: Hashable
    parts: Sequence[torch.Tensor]
    scratch: Callable[[], Sequence[torch.Tensor]] = tuple

    @classmethod
    def of(cls, work: str, X: torch.Tensor, *owners: Any, more: tuple = ()) -> Layout:
        """Return that of work with rows, with all tensors and plain values that some objects have.

        `more` is what is to be in the key, too.
        """
        key = [work, *X.shape, X.dtype, X.data_ptr() % 16, *more]
        for owner in owners:
            key += [value for value in vars(owner).values() if type(value) in PLAIN]
        return cls(tuple(key), [X, *tensors_of(*owners)])


def tensors_of(*owners: Any) -> list[torch.Tensor]:
    """Return the tensors that some objects have."""
    return [x for owner in owners for x in vars(owner).values() if isinstance(x, torch.Tensor)]


class Plan:
    """The launches of some work, for any memory.

    Parameters
    ----------
    launches : sequence of Launch
    parts, scratch : sequence of torch.Tensor
        See :class:`Layout`.
    """

    def __init__(
        self,
        launches: Sequence[Launch],
        parts: Sequence[torch.Tensor],
        scratch: Sequence[torch.Tensor] = (),
    ) -> None:
        # Where each part of the scratch is in its piece; all are aligned as torch aligns tensors.
        sizes = [ceil_div(part.nbytes, ALIGNED) * ALIGNED for part in scratch]
        self.offsets, self.size = [0, *accumulate(sizes)][:-1], sum(sizes)
        every = [*scratch, *parts]
        begins = [part.data_ptr() for part in every]
        ends = [begin + part.nbytes for begin, part in zip(begins, every)]
        # Of each launch: the kernel, the grid, all arguments, and which of them are addresses.
        self.steps: list[tuple] = []
        for launch in launches:
            moved = []
            for i, argument in enumerate(launch.kept):
                # What is empty is nowhere.
                if isinstance(argument, torch.Tensor) and argument.numel():
                    at = launch.places[i]
                    within = [p for p, end in enumerate(ends) if begins[p] <= at < end]
                    moved.append((i, within[0], at - begins[within[0]]))
            self.steps.append((launch.compiled, launch.grid, launch.places, moved))

    def launches(self, parts: Sequence[torch.Tensor]) -> list[Launch]:
        """Return the launches in other memory, with scratch of their own."""
        begins = [part.data_ptr() for part in parts]
        if self.offsets:
            piece = parts[0].new_zeros(self.size, dtype=torch.uint8)
            first, parts = piece.data_ptr(), (*parts, piece)
            begins = [first + offset for offset in self.offsets] + begins
        out = []
        for compiled, grid, places, moved in self.steps:
            own = list(places)
            for i, part, offset in moved:
                own[i] = begins[part] + offset
            out.append(Launch(compiled, grid, own, parts))
        return out


def planned(work: Callable[[], None], device: torch.device, layout: Layout) -> list[Launch]:
    """Do work that launches kernels and nothing else: by the plan for its layout, if there is one.

    Returns what was launched, nothing where kernels are interpreted.
    """
    key = device.index, layout.key
    plan = _plans.get(key)
    if plan is None:
        launches = noted(work)
        if launches:
            remember(key, Plan(launches, layout.parts, layout.scratch()))
    else:
        launches = plan.launches(layout.parts)
        queue(launches, stream_of(device.index))
    note(launches)
    return launches


def queue(launches: Sequence[Launch], stream: int) -> None:
    """Queue some launches on the stream of this handle."""
    for launch in launches:
        launch.queue(stream)


def remember(key: Hashable, plan: Plan) -> None:
    """Keep a plan for a while."""
    if len(_plans) >= MOST:
        _plans.clear()
    _plans[key] = plan
