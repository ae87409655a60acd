"""Work that is queued again and again: cheaper each time.

Queueing a kernel by its name costs the host as much as a small kernel costs the device, since the
types of all arguments are looked at.  So work is done by name once, and its launches are noted;
then they are repeated; and when it is worth the trouble they become a CUDA graph, one launch for
all of them.  Work that was done before in other memory (:mod:`plans`) is not done by name at all.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_void_p
from functools import cache
from math import inf
from threading import Lock

import torch

from lloydia.backends.cuda import options
from lloydia.backends.cuda.runtime.driver import driver, enter, refuse
from lloydia.backends.cuda.runtime.launching import INTERPRETED, launch, noted, stream_of
from lloydia.backends.cuda.runtime.plans import Layout, planned
from lloydia.backends.cuda.runtime.series import Apart, Series, joined, series_of

__all__ = ["Recording", "launch"]

# What making a graph takes, half a millisecond, pays after so many times; until then the device has
# work, too.
REPEATED = 24

# A stream that waits for no other, and for which no other waits.
NON_BLOCKING = 1

# The collector is everyone's, and so is a device's stream for captures: one capture at a time.
_capturing = Lock()


class Recording:
    """A recording of work that is done again and again.

    It holds addresses and numbers: the work must launch the same kernels on the same tensors each
    time, all of them by :func:`launch`, and do nothing else.

    Parameters
    ----------
    repeated : float
        Times after which it becomes a graph, which takes memory of the device.
    """

    times = 0
    series: Series | Apart = Apart(())
    graph: torch.cuda.CUDAGraph | None = None

    def __init__(self, repeated: float = REPEATED) -> None:
        self.repeated = repeated if options.is_on("graphs") else inf

    def do(
        self,
        work: Callable[[], None],
        device: torch.device,
        layout: Callable[[], Layout] | None = None,
        times: int = 1,
    ) -> None:
        """Queue the work, always the same, so often; `layout` says by what plan, if any."""
        if INTERPRETED or not options.is_on("recorded_launches"):
            for _ in range(times):
                work()
            self.times += times
            return
        if times == 0:
            return
        if self.times == 0:
            # Not before all went well: nothing is launched twice.
            self.did(series_of(noted(work)) if layout is None else planned(work, device, layout()))
            times -= 1
        self._repeat(device, times)

    def did(self, series: Series | Apart) -> None:
        """Take what was launched as the work was done for the first time."""
        self.series, self.times = series, 1

    def _repeat(self, device: torch.device, times: int) -> None:
        """Queue the work so often again."""
        listed = int(min(times, max(0, self.repeated - self.times)))
        if listed:
            self.series.queue(stream_of(device.index), listed)
        for _ in range(times - listed):
            if self.graph is None:
                self.graph = self._graph(device)
            self.graph.replay()
        self.times += times

    def then(self, other: Recording) -> Recording:
        """Return a recording of this work and another after it, both of which were done."""
        out = Recording(self.repeated)
        out.times, out.series = min(self.times, other.times), joined(self.series, other.series)
        return out

    def _graph(self, device: torch.device) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with _capturing, _uncollected(), torch.cuda.stream(capture_stream(device)):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                self.series.queue(stream_of(device.index))
            finally:
                graph.capture_end()
        return graph


@cache
def capture_stream(device: torch.device) -> torch.cuda.ExternalStream:
    """Return the stream of a device, the current one, that captures are on, and nothing else is.

    PyTorch's own streams come round: another thread may work on any of them, and what it queues
    then would be captured.
    """
    enter()
    made = c_void_p()
    refuse(driver().cuStreamCreate(byref(made), NON_BLOCKING), "make a stream")
    return torch.cuda.ExternalStream(made.value, device=device)


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
