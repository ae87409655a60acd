"""Streams of one device that items of a batch take turns in.

Small kernels of one item, which leave most of the device idle, run at the same time as large ones
of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial

import torch

from lloydia.backends import StreamContext
from lloydia.backends.cuda.runtime.launching import place

__all__ = ["streams_of"]

# Each has an engine, and rows that the cache should hold.
COUNT = 4


@contextmanager
def streams_of(device: str) -> Iterator[Sequence[StreamContext]]:
    """Open the streams of a device; the current stream waits for them at the end.

    A tensor made before may be used in all of them; one that is made in a stream stays there.
    """
    home = place(device)
    if home.type == "cpu":
        yield [nullcontext] * COUNT
        return
    caller = torch.cuda.current_stream(home)
    opened = [torch.cuda.Stream(home) for _ in range(COUNT)]
    for stream in opened:
        stream.wait_stream(caller)
    try:
        yield [partial(torch.cuda.stream, stream) for stream in opened]
    finally:
        for stream in opened:
            caller.wait_stream(stream)
