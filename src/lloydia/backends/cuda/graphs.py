"""Work that is queued again and again, as a CUDA graph: one launch for all of its kernels."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

__all__ = ["Recording"]


class Recording:
    """A recording of work that is done again and again.

    The first time it is done plainly, which compiles and loads kernels; the second time it is
    recorded.  The recording holds addresses: the work must read and write the same tensors each
    time, allocate none and not wait for the device.
    """

    def __init__(self) -> None:
        self.times = 0

    def do(self, work: Callable[[], None], device: torch.device) -> None:
        """Queue the work, always the same."""
        if device.type == "cpu" or self.times == 0:
            work()
        else:
            if self.times == 1:
                self.graph = _recorded(work, device)
            self.graph.replay()
        self.times += 1


def _recorded(work: Callable[[], None], device: torch.device) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    # A capture needs a stream of its own, and only notes what is queued on it.
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    collecting = gc.isenabled()
    # What the collector might free, another graph say, would spoil the capture.
    gc.disable()
    try:
        with torch.cuda.stream(stream):
            graph.capture_begin(capture_error_mode="thread_local")
            work()
            graph.capture_end()
    finally:
        if collecting:
            gc.enable()
    torch.cuda.current_stream(device).wait_stream(stream)
    return graph
