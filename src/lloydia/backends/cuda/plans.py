"""Plans of launches: work that is done the same way in other memory is not worked out again.

What a fit launches depends on the shape and the types of its data, and on where its memory is.  A
*plan* is made of the launches of the first fit of a shape: each address is replaced by the part of
the memory that it lies in and how far in.  For the next fit a launch takes an addition an address,
a tenth of what it takes by name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch

from lloydia.backends.cuda.launching import Launch, note, noted, stream_of

__all__ = ["Layout", "Plan", "planned", "queue"]

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
    """

    key: Hashable
    parts: Sequence[torch.Tensor]

    @classmethod
    def of(cls, work: str, X: torch.Tensor, *owners: Any, more: tuple = ()) -> Layout:
        """Return that of work with rows, with all tensors and plain values that some objects have.

        `more` is what is to be in the key, too.
        """
        key, parts = [work, *X.shape, X.dtype, X.data_ptr() % 16, *more], [X]
        for owner in owners:
            for value in vars(owner).values():
                if isinstance(value, torch.Tensor):
                    parts.append(value)
                elif type(value) in PLAIN:
                    key.append(value)
        return cls(tuple(key), parts)


class Plan:
    """The launches of some work, for any memory.

    Parameters
    ----------
    launches : sequence of Launch
    parts : sequence of torch.Tensor
        See :class:`Layout`.
    """

    def __init__(self, launches: Sequence[Launch], parts: Sequence[torch.Tensor]) -> None:
        begins = [part.data_ptr() for part in parts]
        ends = [begin + part.nbytes for begin, part in zip(begins, parts)]
        # Of each launch: the kernel, the grid, all arguments, and which of them are addresses.
        self.steps: list[tuple] = []
        for launch in launches:
            moved = []
            for i, argument in enumerate(launch.kept):
                if isinstance(argument, torch.Tensor):
                    at = launch.places[i]
                    within = [p for p, end in enumerate(ends) if begins[p] <= at < end]
                    moved.append((i, within[0], at - begins[within[0]]))
            self.steps.append((launch.compiled, launch.grid, launch.places, moved))

    def launches(self, parts: Sequence[torch.Tensor]) -> list[Launch]:
        """Return the launches in other memory."""
        begins = [part.data_ptr() for part in parts]
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
            remember(key, Plan(launches, layout.parts))
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
