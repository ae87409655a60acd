"""Asynchronous copies to the host, which waits for them when it needs them."""

from __future__ import annotations

from ctypes import byref, c_int64
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.runtime.arena import NUMPY
from lloydia.backends.cuda.runtime.driver import driver, enter, refuse
from lloydia.backends.cuda.runtime.launching import stream_of
from lloydia.backends.cuda.runtime.own_device import current

__all__ = ["AsyncCopy"]

# The most bytes that are copied through a pinned slot: creating memory and an event takes longer.
SLOT_BYTES = 1 << 15
# The driver's flag for an event without timing.
UNTIMED = 2


class PinnedSlot:
    """Pinned memory on the host, and an event; both are reused.

    Parameters
    ----------
    device : torch.device
        The current one.
    free : list of PinnedSlot
        The free slots of the device, first those that no one has waited for.
    """

    __slots__ = "address", "bytes", "device", "event", "free", "memory", "taken"

    def __init__(self, device: torch.device, free: list[PinnedSlot]) -> None:
        self.memory = torch.empty(SLOT_BYTES // 8, dtype=torch.int64, pin_memory=True, device="cpu")
        self.bytes, self.address = self.memory.numpy().view(np.uint8), self.memory.data_ptr()
        event = c_int64()
        refuse(driver().cuEventCreate(byref(event), UNTIMED), "make an event")
        self.event, self.device, self.free = event.value, device, free
        # Whether the slot is in use: from just before a copy is queued until its end was awaited.
        self.taken = False

    @staticmethod
    def of(device: torch.device) -> PinnedSlot:
        """Return a slot that no copy is in flight to."""
        free = _free.setdefault(device.index, [])
        try:
            slot = free.pop()
        except IndexError:
            return PinnedSlot(device, free)
        if slot.taken:
            slot.wait()
        return slot

    def fetch(self, source: int, size: int, stream: int) -> None:
        """Queue a copy of this many bytes from an address on the device."""
        refuse(
            driver().cuMemcpyDtoHAsync_v2(self.address, source, size, stream), "copy to the host"
        )
        self.record_event(stream)

    def record_event(self, stream: int) -> None:
        """Record the event after everything that was queued to write to the slot."""
        self.taken = True
        refuse(driver().cuEventRecord(self.event, stream), "record an event")

    def wait(self) -> None:
        """Wait for the event, in any thread."""
        with current(self.device):
            enter()
            refuse(driver().cuEventSynchronize(self.event), "wait for a copy to the host")
        self.taken = False

    def leave(self) -> None:
        """Return the slot to the free ones."""
        if self.taken:
            self.free.insert(0, self)
        else:
            self.free.append(self)


# The free slots of each device, by its number.
_free: dict[int, list[PinnedSlot]] = {}


def is_here(device: torch.device) -> bool:
    """Return whether a device is the current GPU, whose context driver calls use."""
    return device.type == "cuda" and device.index == torch.cuda.current_device()


class AsyncCopy:
    """A copy to the host, queued on the current stream and waited for when it is used.

    It copies a tensor, or it receives what kernels write to pinned memory (:meth:`written`).  Of a
    tensor on the device ``"meta"``, which has no numbers, the host gets zeros.

    Parameters
    ----------
    source : torch.Tensor
    first, last : int, optional
        The range along its first axis, `last` exclusive; by default all.

    Attributes
    ----------
    slot : PinnedSlot, optional
        The destination, if the copy is small; `kind` and `shape` are those of the result.
    memory : int64 tensor, optional
        The memory that kernels write to.
    host, event : tensor and event, optional
        The destination otherwise, and the event that follows the copy.
    found : ndarray, optional
        The result, once it was waited for.
    """

    memory: torch.Tensor
    host: torch.Tensor | None = None
    event: torch.cuda.Event | None = None
    slot: PinnedSlot | None = None
    found: NDArray[Any] | None = None

    def __init__(self, source: torch.Tensor, first: int = 0, last: int | None = None) -> None:
        count, device = source.shape[0], source.device
        last = count if last is None else last
        if source.is_meta:
            self.found = torch.zeros(
                (last - first, *source.shape[1:]), dtype=source.dtype, device="cpu"
            ).numpy()
            return
        size = source.nbytes // max(count, 1)
        small = (last - first) * size <= SLOT_BYTES and source.dtype in NUMPY
        if not (small and is_here(device) and source.is_contiguous()):
            self._copy(source[first:last])
            return
        enter()
        self.kind, self.shape = NUMPY[source.dtype], (last - first, *source.shape[1:])
        self.slot = PinnedSlot.of(device)
        address = source.data_ptr() + first * size
        self.slot.fetch(address, (last - first) * size, stream_of(device.index))

    @classmethod
    def written(cls, count: int, device: torch.device) -> AsyncCopy | None:
        """Return a copy whose `memory`, of this many int64, kernels that are queued now write to.

        It is None if it would be too large, or the device is not the current one.
        """
        there = device.type in ("cpu", "meta") or is_here(device)
        if 8 * count > SLOT_BYTES or not there:
            return None
        out = cls.__new__(cls)
        if device.type == "meta":
            out.memory = torch.empty(count, dtype=torch.int64, device=device)
            out.found = np.zeros(count, dtype=np.int64)
            return out
        if device.type == "cpu":
            out.host = out.memory = torch.empty(count, dtype=torch.int64, device="cpu")
            return out
        enter()
        out.kind, out.shape, out.slot = np.int64, (count,), PinnedSlot.of(device)
        out.memory, out.slot.taken = out.slot.memory, True
        return out

    def record_event(self) -> None:
        """Record the event after those kernels, even if an error followed."""
        if self.slot is not None:
            self.slot.record_event(stream_of(self.slot.device.index))

    def _copy(self, source: torch.Tensor) -> None:
        """Queue a copy to newly allocated memory."""
        self.host = torch.empty(
            source.shape, dtype=source.dtype, pin_memory=source.is_cuda, device="cpu"
        )
        self.host.copy_(source, non_blocking=True)
        if source.is_cuda:
            self.event = torch.cuda.Event()
            # The copy was queued there, whatever the current device is.
            self.event.record(torch.cuda.current_stream(source.device))

    def numpy(self) -> NDArray[Any]:
        """Wait for the copy; the array belongs to the caller, and is the same each time."""
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
        """Release the slot."""
        slot, self.slot = self.slot, None
        if slot is not None:
            slot.leave()

    def __del__(self) -> None:
        self.leave()
