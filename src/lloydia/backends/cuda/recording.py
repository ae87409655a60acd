"""Work that is queued again and again: cheaper each time.

Queueing a kernel by its name costs the host as much as a small kernel costs the device, since the
types of all arguments are looked at.  So work is done by name once, and its launches are noted;
then they are repeated; and when it is worth the trouble they become a CUDA graph, one launch for
all of them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

import torch

from lloydia.backends.cuda.launching import Again, launch_by_kind, stream_of

__all__ = ["Recording", "launch"]

# What making a graph takes, half a millisecond, pays after so many times; until then the device has
# work, too.
REPEATED = 24

Launches = list[Again]

# The collector is everyone's: one capture at a time.
_capturing = Lock()

_noted: ContextVar[Launches | None] = ContextVar("noted", default=None)


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    """Queue a kernel; arguments known at compile time come by name, as launch options do."""
    again = launch_by_kind(kernel, (*grid, 1, 1)[:3], *args, **options)
    noted = _noted.get()
    if noted is not None and again is not None:
        noted.append(again)


class Recording:
    """A recording of work that is done again and again.

    It holds addresses and numbers: the work must launch the same kernels on the same tensors each
    time, all of them by :func:`launch`, and do nothing else.

    Parameters
    ----------
    repeated : float
        Times after which it becomes a graph, which takes memory of the device.
    """

    def __init__(self, repeated: float = REPEATED) -> None:
        self.times, self.repeated = 0, repeated
        self.launches: Launches = []

    def do(self, work: Callable[[], None], device: torch.device) -> None:
        """Queue the work, always the same."""
        if device.type == "cpu":
            work()
        elif self.times == 0:
            launches: Launches = []
            token = _noted.set(launches)
            try:
                work()
            finally:
                _noted.reset(token)
            # Not before all went well: nothing is launched twice.
            self.launches = launches
        elif self.times < self.repeated:
            self._repeat(stream_of(device.index))
        else:
            if self.times == self.repeated:
                self.graph = self._graph(device)
            self.graph.replay()
        self.times += 1

    def _repeat(self, stream: int) -> None:
        for again in self.launches:
            again(stream)

    def _graph(self, device: torch.device) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # A capture needs a stream of its own, and only notes what is queued on it.
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with _capturing, _uncollected(), torch.cuda.stream(stream):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                self._repeat(stream.cuda_stream)
            finally:
                graph.capture_end()
        torch.cuda.current_stream(device).wait_stream(stream)
        return graph


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector from freeing anything, another graph say: it spoils a capture."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
