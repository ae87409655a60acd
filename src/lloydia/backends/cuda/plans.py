"""Plans of launches: work that is done the same way in other memory is not worked out again.

What a fit launches depends on the shape and the types of its data, and on where its memory is.  A
*plan* is made of the launches of the first fit of a shape: each address is replaced by the part of
the memory that it lies in and how far in.  For the next fit all addresses are added up at once, and
the launches queued by one call (:mod:`series`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch

from lloydia.backends.cuda.launching import Launch, ceil_div, noted, stream_of
from lloydia.backends.cuda.pieces import ALIGNED
from lloydia.backends.cuda.series import HIDDEN, Apart, Series, is_plain, parameters, series_of

__all__ = ["Layout", "Plan", "Scratch", "planned", "tensors_of"]

# Plans that are kept.
MOST = 128
# Types of values that are part of a key.
PLAIN = int, float, bool, str, tuple, type(None)

_plans: dict[Hashable, Plan] = {}

# Parts of memory, and those of them that begin with zeros.
Scratch = tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]]


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
        Returns further parts, which nothing but this work uses, and those of them that are to begin
        with zeros.  It is asked where there is no plan; a plan takes them of one piece.
    """

    key: Hashable
    parts: Sequence[torch.Tensor]
    scratch: Callable[[], Scratch] = lambda: ((), ())

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
    """Return the tensors that some objects have, or the pieces that those are cut of."""
    out: list[torch.Tensor] = []
    for owner in owners:
        own = getattr(owner, "pieces", None) or vars(owner).values()
        out += [x for x in own if isinstance(x, torch.Tensor)]
    return out


class Plan:
    """The launches of some work, for any memory.

    Parameters
    ----------
    launches : sequence of Launch
        Plain ones.
    parts, scratch, zeros : sequence of torch.Tensor
        See :class:`Layout`.
    """

    def __init__(
        self,
        launches: Sequence[Launch],
        parts: Sequence[torch.Tensor],
        scratch: Sequence[torch.Tensor] = (),
        zeros: Sequence[torch.Tensor] = (),
    ) -> None:
        # Where each part of the scratch is in its piece; all are aligned as torch aligns tensors.
        clean = {id(part) for part in zeros}
        scratch = [*zeros, *(part for part in scratch if id(part) not in clean)]
        sizes = [ceil_div(part.nbytes, ALIGNED) * ALIGNED for part in scratch]
        self.offsets, self.size = [0, *accumulate(sizes)][:-1], sum(sizes)
        self.clean = sum(sizes[: len(zeros)])
        found = series_of(launches)
        assert isinstance(found, Series)
        # Of what was launched with nothing stays.
        self.series = found.with_values(found.values, None)
        every = [*scratch, *parts]
        begins = [part.data_ptr() for part in every]
        ends = [begin + part.nbytes for begin, part in zip(begins, every)]
        # Of each parameter that is an address: which it is, the part it lies in, and how far in.
        moved, first = [], 0
        for launch in launches:
            taken = parameters(launch)
            for slot, (i, _) in enumerate(taken, first):
                argument = launch.kept[i] if i < len(launch.kept) else None
                # What is empty is nowhere.
                if isinstance(argument, torch.Tensor) and argument.numel():
                    at = launch.places[i]
                    within = [p for p, end in enumerate(ends) if begins[p] <= at < end]
                    moved.append((slot, within[0], at - begins[within[0]]))
            first += len(taken) + HIDDEN
        self.moved = np.array(moved, dtype=np.int64).reshape(-1, 3).T

    def launches(self, parts: Sequence[torch.Tensor]) -> Series:
        """Return the launches in other memory, with scratch of their own."""
        begins = [part.data_ptr() for part in parts]
        if self.offsets:
            piece = parts[0].new_empty(self.size, dtype=torch.uint8)
            piece[: self.clean].zero_()
            first, parts = piece.data_ptr(), (*parts, piece)
            begins = [first + offset for offset in self.offsets] + begins
        slots, part, offsets = self.moved
        values = self.series.values.copy()
        values[slots] = np.array(begins)[part] + offsets
        return self.series.with_values(values, parts)


def planned(work: Callable[[], None], device: torch.device, layout: Layout) -> Series | Apart:
    """Do work that launches kernels and nothing else: by the plan for its layout, if there is one.

    Returns what was launched, nothing where kernels are interpreted.
    """
    key = device.index, layout.key
    plan = _plans.get(key)
    if plan is not None:
        found = plan.launches(layout.parts)
        found.queue(stream_of(device.index))
        return found
    launches = noted(work)
    if launches and all(map(is_plain, launches)):
        remember(key, Plan(launches, layout.parts, *layout.scratch()))
    return series_of(launches)


def remember(key: Hashable, plan: Plan) -> None:
    """Keep a plan for a while."""
    if len(_plans) >= MOST:
        _plans.clear()
    _plans[key] = plan
