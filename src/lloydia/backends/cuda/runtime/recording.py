"""Work that is queued repeatedly in the same memory: its launches are recorded once.

To launch a kernel by its name takes the host as long as a small kernel takes the device, since the
types of all arguments are looked up.  So the first time work is done by name and its launches are
recorded, and later they are repeated.  If the same work was done before in other memory, its
launches are known from the start (:mod:`relocation`).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from lloydia.backends.cuda import options
from lloydia.backends.cuda.runtime.forms import collected
from lloydia.backends.cuda.runtime.launch_configs import (
    LaunchConfigs,
    LaunchList,
    configs_of,
    joined,
)
from lloydia.backends.cuda.runtime.launching import INTERPRETED, noting, stream_of
from lloydia.backends.cuda.runtime.relocation import BufferMap, StagedWork, replay

__all__ = ["Recording"]


class Recording:
    """A recording of work that is done repeatedly.

    It holds addresses and numbers: the work must launch the same kernels on the same tensors each
    time, all of them by :func:`~lloydia.backends.cuda.runtime.launching.launch`, and do nothing
    else.

    Attributes
    ----------
    times : int
        How often the work was queued.
    launches : LaunchConfigs or LaunchList
        Its launches, once it was queued.
    """

    def __init__(self) -> None:
        self.times = 0
        self.launches: LaunchConfigs | LaunchList = LaunchList(())

    def do(
        self,
        work: StagedWork,
        device: torch.device,
        buffer_map: Callable[[], BufferMap] | None = None,
        times: int = 1,
    ) -> None:
        """Queue the work, always the same, several times.

        With a `buffer_map` the launches of earlier fits are used, if there are any.
        """
        if times == 0:
            return
        if collected() is not None:
            # Its launches are the same each time: the first one has all their forms.
            if self.times == 0:
                for queue in work():
                    queue()
            self.times += times
            return
        if INTERPRETED or not options.is_on("recorded_launches"):
            for queue in [*work()] * times:
                queue()
            self.times += times
            return
        if self.times == 0:
            # Stored only after all of it succeeded, so that nothing is launched twice.
            if buffer_map is None:
                with noting() as launches:
                    for queue in work():
                        queue()
                self.set(configs_of(launches))
            else:
                self.set(replay(work, device, buffer_map()))
            times -= 1
        if times:
            self.launches.queue(stream_of(device.index), times)
            self.times += times

    def set(self, launches: LaunchConfigs | LaunchList) -> None:
        """Take the launches of the work, which was queued once."""
        self.launches, self.times = launches, 1

    def followed_by(self, other: Recording) -> Recording:
        """Return a recording of this work and, after it, another one, both of which were queued."""
        out = Recording()
        out.times = min(self.times, other.times)
        out.launches = joined(self.launches, other.launches)
        return out
