"""Plans of launches: work that is done the same way in other memory is not worked out again.

What a fit launches depends on the shape and the types of its data, and on where its memory is.  A
*plan* is made of the launches of the first fit of a shape: each address is replaced by the part of
the memory that it lies in and how far in.  For the next fit all addresses are added up at once,
unless its memory is that of one before, and the launches queued by one call (:mod:`series`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from lloydia.backends.cuda import options
from lloydia.backends.cuda.runtime.arena import aligned
from lloydia.backends.cuda.runtime.launching import Launch, noted, stream_of
from lloydia.backends.cuda.runtime.series import (
    HIDDEN,
    Apart,
    Heads,
    Series,
    is_plain,
    parameters,
    series_of,
)

__all__ = [
    "CLEAN",
    "Layout",
    "Owner",
    "Plan",
    "Scratch",
    "overlap",
    "planned",
    "planned_steps",
    "planned_times",
    "tensors_of",
]

# Bytes that hold, mostly, what of a plan's scratch begins with zeros.
CLEAN = 1 << 15
# Plans that are kept, and places of each.
MAX_PLANS, PLACES = 128, 8
_plans: dict[Hashable, Plan] = {}

# Parts of memory, and those of them that begin with zeros.
Scratch = tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]]
# Some of several things, one after the other: the number of the first, and that after the last.
Span = tuple[int, int]


class Owner(Protocol):
    """What has memory that launches work with."""

    @property
    def key(self) -> Hashable:
        """What they depend on of it, beside where its memory is; see :class:`Layout`."""

    @property
    def buffers(self) -> Sequence[torch.Tensor]:
        """The memory, the same way each time: tensors, or the arenas that they are cut from."""


class Layout(NamedTuple):
    """What the launches of some work depend on.

    Attributes
    ----------
    key : hashable
        Names the work, and determines all numbers and types that it launches kernels with, how many
        parts there are, their sizes, and which of their addresses are multiples of 16 bytes.
    parts : sequence of torch.Tensor
        The memory: each tensor that is launched with is, or is a view of, one of them.  If a part
        lies in another it does so for this key always.
    scratch : callable
        Returns further parts, which nothing but this work uses, and those of them that are to begin
        with zeros.  It is asked where there is no plan; a plan takes them of one piece.
    """

    key: Hashable
    parts: Sequence[torch.Tensor]
    scratch: Callable[[], Scratch] = lambda: ((), ())
    zeros: int = 0

    @classmethod
    def of(
        cls, work: str, X: torch.Tensor, *owners: Owner, more: tuple = (), **rest: Any
    ) -> Layout:
        """Return that of work with rows, and with the memory of some objects.

        `more` is what is to be in the key, too, and `rest` what else there is beside the parts.
        """
        key, parts = [work, X.shape, X.dtype, X.data_ptr() % 16, more], [X]
        for owner in owners:
            key.append(owner.key)
            parts += owner.buffers
        return cls(tuple(key), parts, **rest)

    def after(self, other: Layout) -> Layout:
        """Return that of this work, done with another before it that has no scratch.

        Parts of the other that lie in parts of this do so for its key always.
        """
        key, parts = (other.key, self.key), [*self.parts, *other.parts]
        return self._replace(key=key, parts=parts)


def tensors_of(*owners: Any) -> list[torch.Tensor]:
    """Return the tensors that some objects have as attributes."""
    return [x for owner in owners for x in vars(owner).values() if isinstance(x, torch.Tensor)]


class Plan:
    """The launches of some work, for any memory.

    Parameters
    ----------
    launches : sequence of Launch
        Plain ones.
    parts, scratch, zeros : sequence of torch.Tensor
        See :class:`Layout`.
    spans : sequence of two int
        The first of some launches, and the first after them: for each that is wanted by itself.
    """

    def __init__(
        self,
        launches: Sequence[Launch],
        parts: Sequence[torch.Tensor],
        scratch: Sequence[torch.Tensor] = (),
        zeros: Sequence[torch.Tensor] = (),
        spans: Sequence[Span] = (),
    ) -> None:
        # Where each part of the scratch is in its piece; all are aligned as torch aligns tensors.
        clean = {id(part) for part in zeros}
        rest = [part for part in scratch if id(part) not in clean]
        self.zeros, self.rest = offsets_of(zeros), offsets_of(rest)
        found = series_of(launches)
        assert isinstance(found, Series)
        # Of what was launched with nothing stays.
        self.series = found.keeping(None)
        # None is queued of what has no programs.
        counts = [*accumulate((min(one.grid) > 0 for one in launches), initial=0)]
        table = found.heads.table
        self.spans = [Heads(table[counts[first] : counts[last]]) for first, last in spans]
        self.n_parts = len(parts)
        # The same launches at addresses that an earlier fit had: freed memory is used again.
        self.by_addresses: dict[tuple[int, ...], Series] = {}
        every = [*zeros, *rest, *parts]
        begins = [part.data_ptr() for part in every]
        ends = [begin + part.nbytes for begin, part in zip(begins, every)]
        # Of each parameter, the part that it is an address in, or nowhere, after all parts; what is
        # added to where that begins is how far in it lies, or the parameter itself.
        self.part = np.full(len(found.values), len(every))
        self.added = found.values.copy()
        first = 0
        for launch in launches:
            taken = parameters(launch)
            for slot, (i, _) in enumerate(taken, first):
                argument = launch.kept[i] if i < len(launch.kept) else None
                # What is empty is nowhere.
                if isinstance(argument, torch.Tensor) and argument.numel():
                    at = launch.places[i]
                    within = [p for p, end in enumerate(ends) if begins[p] <= at < end]
                    self.part[slot] = within[0]
                    self.added[slot] = at - begins[within[0]]
            first += len(taken) + HIDDEN

    def launches(self, parts: Sequence[torch.Tensor], zeros: int = 0) -> Series:
        """Return the launches in other memory, with scratch of their own."""
        if len(parts) != self.n_parts:
            raise RuntimeError(
                f"A plan made for {self.n_parts} parts of memory was given {len(parts)}: these are "
                "two kinds of work and need two keys."
            )
        begins = [part.data_ptr() for part in parts]
        kept = [*parts]
        rest = 0
        if self.rest:
            kept.append(parts[0].new_empty(self.rest[-1], dtype=torch.uint8))
            rest = kept[-1].data_ptr()
        if self.zeros and not (zeros and self.zeros[-1] <= CLEAN):
            kept.append(parts[0].new_zeros(self.zeros[-1], dtype=torch.uint8))
            zeros = kept[-1].data_ptr()
        where = *begins, rest, zeros
        series = self.by_addresses.get(where)
        if series is None:
            scratch = [zeros + offset for offset in self.zeros[:-1]]
            scratch += [rest + offset for offset in self.rest[:-1]]
            if len(self.by_addresses) >= PLACES:
                self.by_addresses.clear()
            values = np.array([*scratch, *begins, 0])[self.part] + self.added
            series = self.by_addresses[where] = self.series.with_values(values, None)
        return series.keeping(kept)


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two contiguous tensors share memory."""
    first, second = a.data_ptr(), b.data_ptr()
    return first < second + b.nbytes and second < first + a.nbytes


def offsets_of(parts: Sequence[torch.Tensor]) -> list[int]:
    """Return where each part is in a piece, aligned as torch aligns tensors, and the size of it."""
    return [*accumulate((aligned(part.nbytes) for part in parts), initial=0)] if parts else []


def planned(work: Callable[[], None], device: torch.device, layout: Layout) -> Series | Apart:
    """Do work that launches kernels and nothing else: by the plan for its layout, if there is one.

    Returns what was launched, nothing where kernels are interpreted.
    """
    plan = plan_for(layout, device)
    if plan is None:
        return first_time([work], device, layout, [(0, 1)])[0]
    found = plan.launches(layout.parts, layout.zeros)
    found.queue(stream_of(device.index))
    return found


def planned_steps(
    works: Sequence[Callable[[], None]],
    device: torch.device,
    layout: Layout,
    spans: Sequence[Span],
) -> list[Series | Apart]:
    """Do several works as one, one after the other; return what some of them have launched.

    Those of each span: from one to another that is not part of it.
    """
    plan = plan_for(layout, device)
    if plan is None:
        return first_time(works, device, layout, spans)
    found = plan.launches(layout.parts, layout.zeros)
    found.queue(stream_of(device.index))
    return [found.some(span) for span in plan.spans]


def key_of(layout: Layout, device: torch.device) -> Hashable:
    """Return what a plan is kept by: work that is launched otherwise has another one."""
    return device.index, layout.key, options.state()


def plan_for(layout: Layout, device: torch.device) -> Plan | None:
    """Return the plan of work with this layout, if it was done before."""
    return _plans.get(key_of(layout, device)) if options.is_on("recorded_launches") else None


def first_time(
    works: Sequence[Callable[[], None]],
    device: torch.device,
    layout: Layout,
    spans: Sequence[Span],
) -> list[Series | Apart]:
    """Do several works by name, and keep the plan of them; return as :func:`planned_steps`."""
    each = [noted(work) for work in works]
    launches = [*chain(*each)]
    edges = [*accumulate(map(len, each), initial=0)]
    within = [(edges[first], edges[last]) for first, last in spans]
    if launches and all(map(is_plain, launches)) and options.is_on("recorded_launches"):
        plan = Plan(launches, layout.parts, *layout.scratch(), spans=within)
        remember(key_of(layout, device), plan)
    return [series_of(launches[first:last]) for first, last in within]


def planned_times(
    works: Sequence[Callable[[], None]],
    times: Sequence[int],
    device: torch.device,
    layout: Layout,
) -> None:
    """Do several works, one after the other, each so many times: as :func:`planned` does.

    How often is no part of the plan.
    """
    repeats = options.is_on("recorded_launches")
    key = device.index, layout.key, options.state()
    plan = _plans.get(key) if repeats else None
    if plan is not None:
        found, stream = plan.launches(layout.parts, layout.zeros), stream_of(device.index)
        for span, count in zip(plan.spans, times):
            found.some(span).queue(stream, count)
        return
    each = []
    for work, count in zip(works, times):
        each.append(noted(work))
        if each[-1] and repeats:
            series_of(each[-1]).queue(stream_of(device.index), count - 1)
            continue
        for _ in range(count - 1):
            work()
    launches = [*chain(*each)]
    if launches and all(map(is_plain, launches)) and repeats:
        edges = [*accumulate(map(len, each), initial=0)]
        spans = [*pairwise(edges)]
        remember(key, Plan(launches, layout.parts, *layout.scratch(), spans=spans))


def remember(key: Hashable, plan: Plan) -> None:
    """Keep a plan for a while."""
    if len(_plans) >= MAX_PLANS:
        _plans.clear()
    _plans[key] = plan
