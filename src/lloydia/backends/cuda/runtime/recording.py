"""Work that is queued again and again: only the first time is it done by name.

To queue a kernel by its name costs the host as much as a small kernel costs the device, since the
types of all arguments are looked at.  So work is done by name once, its launches are noted, and
then they are repeated.  Work that was done before in other memory (:mod:`plans`) is not done by
name at all.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from lloydia.backends.cuda import options
from lloydia.backends.cuda.runtime.launching import INTERPRETED, noted, stream_of
from lloydia.backends.cuda.runtime.plans import Layout, planned
from lloydia.backends.cuda.runtime.series import Apart, Series, joined, series_of

__all__ = ["Recording"]


class Recording:
    """A recording of work that is done again and again.

    It holds addresses and numbers: the work must launch the same kernels on the same tensors each
    time, all of them by :func:`~lloydia.backends.cuda.runtime.launching.launch`, and do nothing
    else.

    Attributes
    ----------
    times : int
        How often the work was queued.
    series : Series or Apart
        Its launches, once it was queued.
    """

    def __init__(self) -> None:
        self.times = 0
        self.series: Series | Apart = Apart(())

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
        if times:
            self.series.queue(stream_of(device.index), times)
            self.times += times

    def did(self, series: Series | Apart) -> None:
        """Take what was launched as the work was done for the first time."""
        self.series, self.times = series, 1

    def then(self, other: Recording) -> Recording:
        """Return a recording of this work and another after it, both of which were done."""
        out = Recording()
        out.times, out.series = min(self.times, other.times), joined(self.series, other.series)
        return out
