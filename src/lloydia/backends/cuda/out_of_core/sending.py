"""Rows that are sent to a GPU in every pass, while the rows before are computed.

Two blocks are in flight.  A thread of the host lets torch fill a pinned buffer, on all cores, and
queues its copy on a separate stream.  By events, the stream of the computation waits for the copy,
and the next copy to the same memory waits for the computation.  The host waits for neither:
filling, copying and computing run in parallel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.out_of_core.gathered import Gathered
from lloydia.backends.cuda.out_of_core.room import AT_ONCE
from lloydia.backends.cuda.runtime.upload import pinned_view
from lloydia.backends.passes import Host
from lloydia.data.chunks.reader import mingled
from lloydia.progress.stages import steps

__all__ = ["Array", "Sender"]


# What may be sent.
Rows = NDArray | Gathered


class Array:
    """An array on the host in blocks; see :class:`lloydia.backends.passes.Host`.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    rows : int
        Rows of a block.
    """

    def __init__(self, X: NDArray, rows: int) -> None:
        self.source = X
        self.edges = np.append(np.arange(0, len(X), rows), len(X))
        self.lengths = np.diff(self.edges).tolist()

    def blocks(self, wanted: Iterable[int]) -> Iterator[tuple[int, NDArray]]:
        edges = list(pairwise(self.edges.tolist()))
        for p in sorted(wanted):
            start, stop = edges[p]
            yield p, self.source[start:stop]


class Place:
    """Memory for a block in flight: the same bytes in pinned memory and on the device.

    Attributes
    ----------
    arrived, used : torch.cuda.Event
        Recorded after the last copy to the device; after the last computation with it, or with what
        was in that memory before.
    """

    def __init__(self, size: int, device: torch.device, copying: torch.cuda.Stream | None) -> None:
        self.there = torch.empty(size, dtype=torch.uint8, device=device)
        self.host = self.there
        if copying is not None:
            self.host = torch.empty(size, dtype=torch.uint8, pin_memory=True, device="cpu")
            self.arrived, self.used = torch.cuda.Event(), torch.cuda.Event()
            self.used.record(torch.cuda.current_stream(device))
            # Its memory is not reused before the last copy has finished.
            self.there.record_stream(copying)


class Sender:
    """Sends the rows of a host to a device, block by block.

    Parameters
    ----------
    host : Host
    device : torch.device

    Attributes
    ----------
    resident : dict
        Blocks on the device, by number; those in `keeping` stay once they arrive.
    types : dict
        Types in which blocks are sent, by number, without loss; others are sent in the host's type.
    n_bytes : int
        Bytes that were sent so far.
    """

    def __init__(self, host: Host, device: torch.device) -> None:
        self.host, self.device = host, device
        self.resident: dict[int, torch.Tensor] = {}
        self.keeping: set[int] = set()
        self.types: dict[int, torch.dtype] = {}
        self.n_bytes = 0
        self.own = getattr(torch, host.source.dtype.name)
        size = max(host.lengths) * host.source.shape[1] * self.own.itemsize
        self.copying = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.places = [Place(size, device, self.copying) for _ in range(AT_ONCE)]

    def keep(self, numbers: set[int]) -> None:
        """Keep these blocks from when they arrive, and release all others."""
        self.keeping = numbers
        self.resident = {p: X for p, X in self.resident.items() if p in numbers}

    def blocks(self, wanted: Iterable[int]) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield some blocks with their numbers, on the current stream.

        A block that was sent is valid until the next one is requested.
        """
        wanted = sorted(wanted)
        on_device, absent = (
            [p for p in wanted if (p in self.resident) == resident] for resident in (True, False)
        )
        order = [p if p in self.resident else None for p in mingled(on_device, absent)]
        return self._given(self.host.blocks(absent), order)

    def send(
        self, fresh: Iterator[tuple[int, Rows]], count: int
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield blocks, or some of their rows, that an iterator on the host supplies."""
        return self._given(fresh, [None] * count)

    def _given(
        self, fresh: Iterator[tuple[int, Rows]], order: Sequence[int | None]
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield resident blocks by number, and the next block that arrives where there is None."""
        more = order.count(None)
        with ThreadPoolExecutor(1, "lloydia-sender") as thread:
            coming: deque[Future] = deque()

            def send_next(place: Place) -> None:
                nonlocal more
                if more:
                    more -= 1
                    coming.append(thread.submit(self._send, fresh, place))

            for place in self.places:
                send_next(place)
            for p in steps("blocks", order):
                if p is not None:
                    yield p, self.resident[p]
                    continue
                # Hosts may supply blocks in another order.
                number, X, place = coming.popleft().result()
                if self.copying is not None:
                    torch.cuda.current_stream(self.device).wait_event(place.arrived)
                if number in self.keeping and number not in self.resident:
                    X = self.resident[number] = X.clone()
                yield number, X
                if self.copying is not None:
                    place.used.record(torch.cuda.current_stream(self.device))
                send_next(place)

    def _send(
        self, fresh: Iterator[tuple[int, Rows]], place: Place
    ) -> tuple[int, torch.Tensor, Place]:
        """Queue the copy of the next block; in the sender's thread."""
        p, rows = next(fresh)
        dtype = self.types.get(p, self.own)
        size = prod(rows.shape) * dtype.itemsize
        self.n_bytes += size
        host, there = (
            memory[:size].view(dtype).view(rows.shape) for memory in (place.host, place.there)
        )
        if self.copying is not None:
            # The last copy has read the buffer.
            place.arrived.synchronize()
        if isinstance(rows, Gathered):
            rows.fill(host)
        else:
            host.copy_(pinned_view(rows))
        if self.copying is not None:
            with torch.cuda.stream(self.copying):
                self.copying.wait_event(place.used)
                there.copy_(host, non_blocking=True)
                place.arrived.record(self.copying)
        return p, there, place
