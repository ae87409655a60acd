"""Arrays on their way to the host while both sides go on."""

from __future__ import annotations

from ctypes import byref, c_int64
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.runtime.driver import driver, enter, refuse
from lloydia.backends.cuda.runtime.launching import stream_of
from lloydia.backends.cuda.runtime.own_device import current

__all__ = ["AsyncCopy"]

# Bytes that go by way of a slot: to make memory and an event for them takes longer than to copy.
SLOT_BYTES = 1 << 15
# How the driver makes an event that is not timed.
UNTIMED = 2
# Types of what goes that way.
TYPES = {
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.uint8: np.uint8,
    torch.float64: np.float64,
}


class PinnedSlot:
    """Memory on the host that a device reaches, and an event: used again and again.

    Parameters
    ----------
    device : torch.device
        The current one.
    free : list of PinnedSlot
        Where those of the device wait for their next use: first those that nobody has waited for.
    """

    __slots__ = "address", "bytes", "device", "event", "free", "memory", "taken"

    def __init__(self, device: torch.device, free: list[PinnedSlot]) -> None:
        self.memory = torch.empty(SLOT_BYTES // 8, dtype=torch.int64, pin_memory=True)
        self.bytes, self.address = self.memory.numpy().view(np.uint8), self.memory.data_ptr()
        event = c_int64()
        refuse(driver().cuEventCreate(byref(event), UNTIMED), "make an event")
        self.event, self.device, self.free = event.value, device, free
        # Whether something that nobody has waited for was queued, or is being, that writes to it.
        self.taken = False

    @staticmethod
    def of(device: torch.device) -> PinnedSlot:
        """Return one that nothing is on its way to."""
        free = _free.setdefault(device.index, [])
        try:
            slot = free.pop()
        except IndexError:
            return PinnedSlot(device, free)
        if slot.taken:
            slot.wait()
        return slot

    def fetch(self, source: int, size: int, stream: int) -> None:
        """Queue a copy of so many bytes from an address on the device."""
        refuse(
            driver().cuMemcpyDtoHAsync_v2(self.address, source, size, stream), "copy to the host"
        )
        self.note(stream)

    def note(self, stream: int) -> None:
        """Note that all that is written to it has been queued."""
        self.taken = True
        refuse(driver().cuEventRecord(self.event, stream), "note an event")

    def wait(self) -> None:
        """Wait for all that was noted, in any thread."""
        with current(self.device):
            enter()
            refuse(driver().cuEventSynchronize(self.event), "wait for a copy to the host")
        self.taken = False

    def leave(self) -> None:
        """Wait for the next use."""
        if self.taken:
            self.free.insert(0, self)
        else:
            self.free.append(self)


# Of each device, by its number.
_free: dict[int, list[PinnedSlot]] = {}


def is_here(device: torch.device) -> bool:
    """Return whether a device is the current GPU, in whose context the driver is asked."""
    return device.type == "cuda" and device.index == torch.cuda.current_device()


class AsyncCopy:
    """What comes to the host, queued on the current stream; it is waited for when it is asked for.

    A copy of a tensor, or what kernels write to the host's memory by themselves (:meth:`written`).

    Parameters
    ----------
    source : torch.Tensor
    first, last : int, optional
        Entries along its first axis: from one, and up to another, exclusive; by default all.

    Attributes
    ----------
    slot : PinnedSlot, optional
        Where it comes to, if it is small; `kind` and `shape` are those of what it comes as.
    memory : int64 tensor, optional
        What kernels write to.
    host, event : tensor and event, optional
        Where it comes to otherwise, and what tells that it has.
    found : ndarray, optional
        It, once it was waited for.
    """

    memory: torch.Tensor
    host: torch.Tensor | None = None
    event: torch.cuda.Event | None = None
    slot: PinnedSlot | None = None
    found: NDArray[Any] | None = None

    def __init__(self, source: torch.Tensor, first: int = 0, last: int | None = None) -> None:
        count, device = source.shape[0], source.device
        last = count if last is None else last
        size = source.nbytes // max(count, 1)
        small = (last - first) * size <= SLOT_BYTES and source.dtype in TYPES
        if not (small and is_here(device) and source.is_contiguous()):
            self._copy(source[first:last])
            return
        enter()
        self.kind, self.shape = TYPES[source.dtype], (last - first, *source.shape[1:])
        self.slot = PinnedSlot.of(device)
        address = source.data_ptr() + first * size
        self.slot.fetch(address, (last - first) * size, stream_of(device.index))

    @classmethod
    def written(cls, count: int, device: torch.device) -> AsyncCopy | None:
        """Return what kernels that are queued now write to `memory`: so many int64.

        None where it is too much, or the device is not the current one.
        """
        if 8 * count > SLOT_BYTES or not (device.type == "cpu" or is_here(device)):
            return None
        out = cls.__new__(cls)
        if device.type == "cpu":
            out.host = out.memory = torch.empty(count, dtype=torch.int64)
            return out
        enter()
        out.kind, out.shape, out.slot = np.int64, (count,), PinnedSlot.of(device)
        out.memory, out.slot.taken = out.slot.memory, True
        return out

    def note(self) -> None:
        """Note that those kernels were queued, or those before an error."""
        if self.slot is not None:
            self.slot.note(stream_of(self.slot.device.index))

    def _copy(self, source: torch.Tensor) -> None:
        """Queue a copy to memory of its own."""
        self.host = torch.empty(source.shape, dtype=source.dtype, pin_memory=source.is_cuda)
        self.host.copy_(source, non_blocking=True)
        if source.is_cuda:
            self.event = torch.cuda.Event()
            # That is where the copy was queued, whatever device is the current one.
            self.event.record(torch.cuda.current_stream(source.device))

    def numpy(self) -> NDArray[Any]:
        """Wait for it; the array is the caller's own, and the same each time."""
        if self.found is None:
            self.found = self._from_host() if self.slot is None else self._from_slot(self.slot)
        return self.found

    def _from_host(self) -> NDArray[Any]:
        assert self.host is not None
        if self.event is not None:
            self.event.synchronize()
        return self.host.numpy()

    def _from_slot(self, slot: PinnedSlot) -> NDArray[Any]:
        slot.wait()
        kind = np.dtype(self.kind)
        n_bytes = kind.itemsize * prod(self.shape)
        found = slot.bytes[:n_bytes].view(kind).reshape(self.shape).copy()
        self.leave()
        return found

    def leave(self) -> None:
        """Give the slot to others."""
        slot, self.slot = self.slot, None
        if slot is not None:
            slot.leave()

    def __del__(self) -> None:
        self.leave()
