"""Recorded launches that are repeated in other memory, for later fits of the same shape.

The kernels that a fit launches, and their arguments, follow from the shape and the types of its
data (the key), except for addresses.  The first fit with a key launches each kernel by its name,
and its launches are noted.  Each pointer among their parameters is then written as a buffer and an
offset in it, as a linker writes a relocation: this is a :class:`Relocation`.  A later fit with the
same key passes its own buffers in the same order (a :class:`BufferMap`).  One addition of arrays
gives all parameters, and one call queues all launches (:mod:`launch_configs`).  If its buffers have
the addresses of an earlier fit, as freed memory that is used again has, the addition is skipped as
well.  Scratch, which only the launches use, is allocated as one buffer, in which the parts that
begin as zeros are zeroed.  Where kernels are interpreted nothing is recorded, and the switch
`recorded_launches` (:mod:`lloydia.backends.cuda.options`) turns recording off.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from lloydia.backends.cuda import options
from lloydia.backends.cuda.runtime.arena import aligned
from lloydia.backends.cuda.runtime.forms import collected
from lloydia.backends.cuda.runtime.launch_configs import (
    ConfigTable,
    LaunchConfigs,
    LaunchList,
    configs_of,
)
from lloydia.backends.cuda.runtime.launching import Launch, noting, stream_of
from lloydia.backends.cuda.runtime.loaded_kernels import HIDDEN

__all__ = [
    "ZEROED_BYTES",
    "BufferMap",
    "Owner",
    "Relocation",
    "Scratch",
    "StagedWork",
    "Stages",
    "overlap",
    "replay",
    "replay_steps",
    "replay_times",
    "tensors_of",
]

# Zeroed bytes of a run that scratch may use: enough for most scratch that begins with zeros.
ZEROED_BYTES = 1 << 15
# The most relocations kept, and the most sets of addresses that each has parameters for.
MAX_RECORDED, MAX_ADDRESSES = 128, 8
_recorded: dict[Hashable, Relocation] = {}

# Functions that queue the kernels of some work, one after the other.
Stages = Sequence[Callable[[], object]]
# Returns the stages, and may allocate scratch for them.  It is called only if no launches of the
# work are recorded, since recorded launches bring their own scratch.
StagedWork = Callable[[], Stages]

# Buffers, and those of them that begin with zeros.
Scratch = tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]]
# Consecutive launches: the number of the first, and that after the last.
Span = tuple[int, int]
# Consecutive works, in the same way.
WorkSpan = tuple[int, int]


class Owner(Protocol):
    """An object whose memory launches use."""

    @property
    def key(self) -> Hashable:
        """What the launches depend on of it, except addresses; see :class:`BufferMap`."""

    @property
    def buffers(self) -> Sequence[torch.Tensor]:
        """Its memory, always in the same order: tensors, or the arenas that they are parts of."""


class BufferMap(NamedTuple):
    """What the launches of some work depend on.

    Attributes
    ----------
    key : hashable
        Names the work.  It determines the kernels, all numbers and types among their arguments, the
        number of buffers, their sizes, and which of their addresses are multiples of 16 bytes.
    buffers : sequence of torch.Tensor
        Each tensor that is launched with is, or is a view of, one of them.  Whether one buffer lies
        inside another follows from the key.
    scratch : callable
        Returns the scratch of the first time.
    zeros_address : int
        The address of ZEROED_BYTES zeros that scratch may use, or 0.
    """

    key: Hashable
    buffers: Sequence[torch.Tensor]
    scratch: Callable[[], Scratch] = lambda: ((), ())
    zeros_address: int = 0

    @classmethod
    def of(
        cls, work: str, X: torch.Tensor, *owners: Owner, more: tuple = (), **rest: Any
    ) -> BufferMap:
        """Return the buffer map of work on rows, with the memory of some objects.

        `more` is added to the key; `rest` are attributes besides the buffers.
        """
        key, buffers = [work, X.shape, X.dtype, X.data_ptr() % 16, more], [X]
        for owner in owners:
            key.append(owner.key)
            buffers += owner.buffers
        return cls(tuple(key), buffers, **rest)

    def with_buffers(self, *more: torch.Tensor) -> BufferMap:
        """Return the buffer map of the same work with more buffers."""
        return self._replace(buffers=[*more, *self.buffers])

    def after(self, other: BufferMap) -> BufferMap:
        """Return the buffer map of this work after another work, which has no scratch.

        Whether a buffer of the other lies inside one of this follows from the keys.
        """
        key, buffers = (other.key, self.key), [*self.buffers, *other.buffers]
        return self._replace(key=key, buffers=buffers)


def tensors_of(*owners: Any) -> list[torch.Tensor]:
    """Return the tensors that some objects have as attributes."""
    return [x for owner in owners for x in vars(owner).values() if isinstance(x, torch.Tensor)]


class Relocation:
    """The launches of some work, for any addresses of its buffers.

    Parameters
    ----------
    launches : sequence of Launch
        Plain ones.
    buffers : sequence of torch.Tensor
        See :class:`BufferMap`.
    scratch, zeros : sequence of torch.Tensor
        The two results of :attr:`BufferMap.scratch`: buffers, and those of them that begin with
        zeros.
    spans : sequence of two int
        Launches that are also queued separately.
    """

    def __init__(
        self,
        launches: Sequence[Launch],
        buffers: Sequence[torch.Tensor],
        scratch: Sequence[torch.Tensor] = (),
        zeros: Sequence[torch.Tensor] = (),
        spans: Sequence[Span] = (),
    ) -> None:
        zeroed = {id(buffer) for buffer in zeros}
        others = [buffer for buffer in scratch if id(buffer) not in zeroed]
        self.zero_offsets, self.scratch_offsets = offsets_of(zeros), offsets_of(others)
        found = configs_of(launches)
        assert isinstance(found, LaunchConfigs)
        # The memory of the recorded launches is not kept alive.
        self.configs = found.keeping_alive(None)
        # Launches without programs are not in the table.
        counts = [*accumulate((min(one.grid) > 0 for one in launches), initial=0)]
        table = found.configs.table
        self.spans = [ConfigTable(table[counts[first] : counts[last]]) for first, last in spans]
        self.n_buffers = len(buffers)
        # The parameters by the addresses of all buffers.
        self.by_addresses: dict[tuple[int, ...], LaunchConfigs] = {}
        every = [*zeros, *others, *buffers]
        begins = [buffer.data_ptr() for buffer in every]
        ends = [begin + buffer.nbytes for begin, buffer in zip(begins, every)]
        # For each parameter, the number of the buffer that it points into, and its offset there.
        # One that is no pointer has the number after the last buffer, and is its own offset.
        self.buffer_numbers = np.full(len(found.values), len(every))
        self.offsets = found.values.copy()
        first = 0
        for launch in launches:
            taken = launch.kernel.parameters
            for slot, (i, _) in enumerate(taken, first):
                argument = launch.arguments[i] if i < len(launch.arguments) else None
                # An empty tensor has no address.
                if isinstance(argument, torch.Tensor) and argument.numel():
                    at = launch.places[i]
                    inside = [b for b, end in enumerate(ends) if begins[b] <= at < end]
                    self.buffer_numbers[slot] = inside[0]
                    self.offsets[slot] = at - begins[inside[0]]
            first += len(taken) + HIDDEN

    def launches(self, buffers: Sequence[torch.Tensor], zeros_address: int = 0) -> LaunchConfigs:
        """Return the launches in other buffers, with new scratch."""
        if len(buffers) != self.n_buffers:
            raise RuntimeError(
                f"Launches were recorded with {self.n_buffers} buffers and are repeated with "
                f"{len(buffers)}: different kinds of work need different keys."
            )
        begins = [buffer.data_ptr() for buffer in buffers]
        keep_alive = [*buffers]
        others = 0
        if self.scratch_offsets:
            size = self.scratch_offsets[-1]
            keep_alive.append(buffers[0].new_empty(size, dtype=torch.uint8))
            others = keep_alive[-1].data_ptr()
        if self.zero_offsets and not (zeros_address and self.zero_offsets[-1] <= ZEROED_BYTES):
            keep_alive.append(buffers[0].new_zeros(self.zero_offsets[-1], dtype=torch.uint8))
            zeros_address = keep_alive[-1].data_ptr()
        addresses = *begins, others, zeros_address
        configs = self.by_addresses.get(addresses)
        if configs is None:
            scratch = [zeros_address + offset for offset in self.zero_offsets[:-1]]
            scratch += [others + offset for offset in self.scratch_offsets[:-1]]
            if len(self.by_addresses) >= MAX_ADDRESSES:
                self.by_addresses.clear()
            values = np.array([*scratch, *begins, 0])[self.buffer_numbers] + self.offsets
            configs = self.by_addresses[addresses] = self.configs.with_values(values, None)
        return configs.keeping_alive(keep_alive)


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two contiguous tensors share memory."""
    first, second = a.data_ptr(), b.data_ptr()
    return first < second + b.nbytes and second < first + a.nbytes


def offsets_of(buffers: Sequence[torch.Tensor]) -> list[int]:
    """Return the offsets of buffers in one allocation, as torch aligns tensors, and its size."""
    if not buffers:
        return []
    return [*accumulate((aligned(buffer.nbytes) for buffer in buffers), initial=0)]


def replay(
    work: StagedWork, device: torch.device, buffer_map: BufferMap
) -> LaunchConfigs | LaunchList:
    """Do work that launches kernels and nothing else: by recorded launches, if there are any.

    Returns what was launched, nothing where kernels are interpreted.
    """
    key = key_of(buffer_map, device)
    recorded = recorded_for(key)
    if recorded is not None:
        found = recorded.launches(buffer_map.buffers, buffer_map.zeros_address)
        found.queue(stream_of(device.index))
        return found
    with noting() as launches:
        for queue in work():
            queue()
    record(key, launches, buffer_map, [(0, len(launches))])
    return configs_of(launches)


def replay_steps(
    works: Sequence[StagedWork],
    device: torch.device,
    buffer_map: BufferMap,
    spans: Sequence[WorkSpan],
) -> list[LaunchConfigs | LaunchList]:
    """Do several works, one after the other, as :func:`replay` does.

    Returns the launches of each span: those of the works from one number to another, exclusive.
    """
    key = key_of(buffer_map, device)
    recorded = recorded_for(key)
    if recorded is not None:
        found = recorded.launches(buffer_map.buffers, buffer_map.zeros_address)
        found.queue(stream_of(device.index))
        return [found.subset(span) for span in recorded.spans]
    each = []
    for work in works:
        with noting() as noted:
            for queue in work():
                queue()
        each.append(noted)
    launches = [*chain(*each)]
    edges = [*accumulate(map(len, each), initial=0)]
    inside = [(edges[first], edges[last]) for first, last in spans]
    record(key, launches, buffer_map, inside)
    return [configs_of(launches[first:last]) for first, last in inside]


def replay_times(
    works: Sequence[StagedWork],
    times: Sequence[int],
    device: torch.device,
    buffer_map: BufferMap,
) -> None:
    """Do several works, one after the other, as :func:`replay` does, and each several times.

    The records do not depend on how often.
    """
    key = key_of(buffer_map, device)
    recorded = recorded_for(key)
    if recorded is not None:
        found = recorded.launches(buffer_map.buffers, buffer_map.zeros_address)
        stream = stream_of(device.index)
        for span, count in zip(recorded.spans, times):
            found.subset(span).queue(stream, count)
        return
    each = []
    for work, count in zip(works, times):
        stages = work()
        with noting() as launches:
            for queue in stages:
                queue()
        each.append(launches)
        if launches and options.is_on("recorded_launches"):
            configs_of(launches).queue(stream_of(device.index), count - 1)
            continue
        for _ in range(count - 1):
            for queue in stages:
                queue()
    edges = [*accumulate(map(len, each), initial=0)]
    record(key, [*chain(*each)], buffer_map, [*pairwise(edges)])


def key_of(buffer_map: BufferMap, device: torch.device) -> Hashable:
    """Return the key of recorded launches: switches change what is launched."""
    return device.index, buffer_map.key, options.state()


def recorded_for(key: Hashable) -> Relocation | None:
    """Return the recorded launches of a key, if there are any."""
    # A rehearsal must see all launches.
    repeats = options.is_on("recorded_launches") and collected() is None
    return _recorded.get(key) if repeats else None


def record(
    key: Hashable, launches: Sequence[Launch], buffer_map: BufferMap, spans: Sequence[Span]
) -> None:
    """Record the launches of a key, if all of them are plain."""
    plain = all(launch.kernel.plain for launch in launches)
    if launches and plain and options.is_on("recorded_launches"):
        every, zeros = buffer_map.scratch()
        store(key, Relocation(launches, buffer_map.buffers, every, zeros, spans))


def store(key: Hashable, recorded: Relocation) -> None:
    """Store recorded launches; a full store is emptied first."""
    if len(_recorded) >= MAX_RECORDED:
        _recorded.clear()
    _recorded[key] = recorded
