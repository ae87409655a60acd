"""Arrays on their way to the host while both sides go on."""

from __future__ import annotations

from ctypes import byref, c_int64
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.driver import driver, enter, refuse
from lloydia.backends.cuda.launching import stream_of

__all__ = ["Fetched"]

# Bytes that go by way of a seat: to make memory and an event for them takes longer than to copy.
SEAT = 1 << 15
# How the driver makes an event that is not timed.
UNTIMED = 2
# Types of what goes that way.
TYPES = {
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.uint8: np.uint8,
    torch.float64: np.float64,
}


class Seat:
    """Memory on the host that the device reaches, and an event: used again and again.

    Attributes
    ----------
    free : list of Seat
        Where it waits for its next use.
    taken : bool
        Whether the last copy to it was queued and perhaps not waited for.
    """

    __slots__ = "address", "bytes", "event", "free", "taken"

    def __init__(self, free: list[Seat]) -> None:
        memory = torch.empty(SEAT, dtype=torch.uint8, pin_memory=True)
        self.bytes, self.address = memory.numpy(), memory.data_ptr()
        event = c_int64()
        refuse(driver().cuEventCreate(byref(event), UNTIMED), "make an event")
        self.event, self.free, self.taken = event.value, free, False

    def fetch(self, source: int, size: int, stream: int) -> None:
        """Queue a copy of so many bytes from an address on the device."""
        if self.taken:  # Nobody has asked for what it was used for before.
            self.wait()
        library = driver()
        refuse(library.cuMemcpyDtoHAsync_v2(self.address, source, size, stream), "copy to the host")
        self.taken = True
        refuse(library.cuEventRecord(self.event, stream), "note an event")

    def wait(self) -> None:
        """Wait for the copy."""
        refuse(driver().cuEventSynchronize(self.event), "wait for a copy to the host")
        self.taken = False


# Of each device.
_free: dict[int, list[Seat]] = {}


class Fetched:
    """A copy of a tensor, queued on the current stream; it is waited for when it is asked for.

    Parameters
    ----------
    source : torch.Tensor
        Contiguous.
    first, last : int, optional
        Entries along its first axis: from one, and up to another, exclusive; by default all.
    """

    # What is copied by way of PyTorch, and what tells when it has come.
    host: torch.Tensor | None = None
    come: torch.cuda.Event | None = None
    seat: Seat | None = None
    found: NDArray[Any] | None = None

    def __init__(self, source: torch.Tensor, first: int = 0, last: int | None = None) -> None:
        count, device = source.shape[0], source.device.index
        last = count if last is None else last
        size = source.nbytes // max(count, 1)
        self.n_bytes = (last - first) * size
        ordinary = source.is_cuda and self.n_bytes <= SEAT and source.dtype in TYPES
        if not ordinary or device != torch.cuda.current_device():
            self._copy(source[first:last])
            return
        enter()
        self.kind, self.shape = TYPES[source.dtype], (last - first, *source.shape[1:])
        free = _free.setdefault(device, [])
        try:
            seat = free.pop()
        except IndexError:
            seat = Seat(free)
        seat.fetch(source.data_ptr() + first * size, self.n_bytes, stream_of(device))
        self.seat = seat

    def _copy(self, source: torch.Tensor) -> None:
        """Queue a copy to memory of its own."""
        self.host = torch.empty(source.shape, dtype=source.dtype, pin_memory=source.is_cuda)
        self.host.copy_(source, non_blocking=True)
        if source.is_cuda:
            self.come = torch.cuda.Event()
            self.come.record()

    def numpy(self) -> NDArray[Any]:
        """Wait for it; the array is the caller's own, and the same each time."""
        if self.found is None:
            self.found = self._own() if self.seat is None else self._seated()
        return self.found

    def _own(self) -> NDArray[Any]:
        assert self.host is not None
        if self.come is not None:
            self.come.synchronize()
        return self.host.numpy()

    def _seated(self) -> NDArray[Any]:
        assert self.seat is not None
        self.seat.wait()
        found = self.seat.bytes[: self.n_bytes].view(self.kind).reshape(self.shape).copy()
        self.leave()
        return found

    def leave(self) -> None:
        """Give the seat to others."""
        seat, self.seat = self.seat, None
        if seat is not None:
            seat.free.append(seat)

    def __del__(self) -> None:
        self.leave()
