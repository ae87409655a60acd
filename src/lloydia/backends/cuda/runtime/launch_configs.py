"""The arguments of kernel launches as numbers, so that many launches are queued by one call.

``cuLaunchKernelEx`` takes a launch config (the grid, the threads of a program, shared memory, the
stream and a launch attribute), a kernel and its parameters.  :class:`LaunchConfigs` has these of
several launches in two arrays, which :mod:`launch_loop` passes to the driver.  A launch that needs
more than numbers, such as scratch that Triton allocates for it, is queued by Triton
(:class:`LaunchList`).
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_int64
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cuda import options
from lloydia.backends.cuda.runtime.driver import enter, function, refuse
from lloydia.backends.cuda.runtime.launch_loop import FIELDS, compiled
from lloydia.backends.cuda.runtime.launching import Launch
from lloydia.backends.cuda.runtime.loaded_kernels import HIDDEN, LoadedKernel, bits_of

__all__ = [
    "ConfigTable",
    "LaunchConfigs",
    "LaunchList",
    "configs_of",
    "joined",
]

# The driver's function that launches kernels.
LAUNCH = "cuLaunchKernelEx"
# The launch attribute (CUlaunchAttributeID).  IN_ORDER is CU_LAUNCH_ATTRIBUTE_IGNORE: the kernel
# begins when the one before has ended.  COOPERATIVE: also, all its programs are resident at once.
# PROGRAMMATIC_STREAM_SERIALIZATION: it begins as soon as there is room, and waits inside.
IN_ORDER, COOPERATIVE, EARLY = 0, 2, 6
# The instruction by which such a kernel waits; see
# :func:`lloydia.backends.cuda.device_functions.run_state.wait_for_previous_kernel`.
WAIT = "griddepcontrol.wait"


class ConfigTable:
    """Launches without their parameters: int64 of shape (count, FIELDS)."""

    __slots__ = "address", "count", "table"

    def __init__(self, table: NDArray[np.int64]) -> None:
        self.table, self.count, self.address = table, len(table), address_of(table)


class LaunchConfigs:
    """Some launches.

    Parameters
    ----------
    configs : ConfigTable
    values : int64 ndarray
        The parameters of all launches, one after the other.
    keep_alive : sequence
        The tensors that the parameters point to.
    address : int, optional
        That of `values`, if it is known.
    """

    __slots__ = "address", "configs", "keep_alive", "values"

    def __init__(
        self,
        configs: ConfigTable,
        values: NDArray[np.int64],
        keep_alive: Any,
        address: int | None = None,
    ) -> None:
        self.configs, self.values, self.keep_alive = configs, values, keep_alive
        self.address = address_of(values) if address is None else address

    def with_values(self, values: NDArray[np.int64], keep_alive: Any) -> LaunchConfigs:
        """Return the same launches with other parameters."""
        return LaunchConfigs(self.configs, values, keep_alive)

    def keeping_alive(self, tensors: Any) -> LaunchConfigs:
        """Return the same launches with the same parameters, which point to these tensors."""
        return LaunchConfigs(self.configs, self.values, tensors, self.address)

    def followed_by(self, other: LaunchConfigs) -> LaunchConfigs:
        """Return these launches and, after them, others."""
        table = np.concatenate([self.configs.table, other.configs.table])
        table[len(self.configs.table) :, -1] += len(self.values)
        values = np.concatenate([self.values, other.values])
        return LaunchConfigs(ConfigTable(table), values, (self.keep_alive, other.keep_alive))

    def subset(self, configs: ConfigTable) -> LaunchConfigs:
        """Return those of these launches that are in a part of the table."""
        return LaunchConfigs(configs, self.values, self.keep_alive, self.address)

    def queue(self, stream: int, times: int = 1) -> None:
        """Queue all launches, several times, on the stream with this handle."""
        configs = self.configs
        if configs.count == 0:
            return
        enter()
        failed = compiled()(
            function(LAUNCH), configs.address, configs.count, self.address, len(self.values),
            stream, times,
        )  # fmt: skip
        refuse(failed, "launch a kernel")


class LaunchList(NamedTuple):
    """Launches that are queued one by one, or several groups of launches."""

    parts: Sequence[Launch | LaunchConfigs | LaunchList]

    def queue(self, stream: int, times: int = 1) -> None:
        """Queue all launches, several times, on the stream with this handle."""
        for _ in range(times):
            for part in self.parts:
                part.queue(stream)


def joined(
    first: LaunchConfigs | LaunchList, second: LaunchConfigs | LaunchList
) -> LaunchConfigs | LaunchList:
    """Return launches and, after them, others."""
    if isinstance(first, LaunchConfigs) and isinstance(second, LaunchConfigs):
        return first.followed_by(second)
    return LaunchList([first, second])


def configs_of(launches: Sequence[Launch]) -> LaunchConfigs | LaunchList:
    """Return some launches as numbers, if all of them are plain."""
    if not all(launch.kernel.plain for launch in launches):
        return LaunchList(launches)
    configs, values = [], []
    for launch in launches:
        kernel, grid = launch.kernel, launch.grid
        about = kernel.metadata
        if min(grid) > 0:
            configs.append(
                (attribute_of(kernel), kernel.function, *grid, 32 * about.num_warps,
                 about.shared, len(values))
            )  # fmt: skip
        values += [bits_of(launch.places[i], kind) for i, kind in kernel.parameters]
        values += [0] * HIDDEN
    keep_alive = [launch.arguments for launch in launches]
    table = np.array(configs, dtype=np.int64).reshape(-1, FIELDS)
    return LaunchConfigs(ConfigTable(table), np.array(values, dtype=np.int64), keep_alive)


def attribute_of(kernel: LoadedKernel) -> int:
    """Return the launch attribute of a kernel."""
    if kernel.metadata.launch_cooperative_grid:
        return COOPERATIVE
    early = options.is_on("early_launch") and WAIT in kernel.ptx
    return EARLY if early else IN_ORDER


def address_of(array: NDArray[np.int64]) -> int:
    """Return the address of an array."""
    return addressof(c_int64.from_buffer(array)) if len(array) else 0
