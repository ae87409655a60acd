"""The arguments of kernel launches as numbers, so that many launches are queued by one call.

``cuLaunchKernelEx`` takes a launch config (the grid, the threads of a program, shared memory, the
stream and a launch attribute), a kernel and its parameters.  :class:`LaunchConfigs` has these of
several launches in two arrays, which :mod:`launch_loop` passes to the driver.  A launch that needs
more than numbers, such as scratch that Triton allocates for it, is queued by Triton
(:class:`LaunchList`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from ctypes import addressof, c_int64
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cuda import options
from lloydia.backends.cuda.runtime.driver import enter, function, refuse
from lloydia.backends.cuda.runtime.launch_loop import FIELDS, compiled
from lloydia.backends.cuda.runtime.launching import Launch

__all__ = [
    "HIDDEN",
    "ConfigTable",
    "LaunchConfigs",
    "LaunchList",
    "configs_of",
    "is_plain",
    "joined",
    "parameters",
]

# The driver's function that launches kernels.
LAUNCH = "cuLaunchKernelEx"
# The launch attribute (CUlaunchAttributeID).  IGNORE: the kernel begins when the one before has
# ended.  COOPERATIVE: also, all its programs are resident at once.
# PROGRAMMATIC_STREAM_SERIALIZATION: it begins as soon as there is room, and waits inside.
IN_ORDER, COOPERATIVE, EARLY = 0, 2, 6
# The instruction by which such a kernel waits; see
# :func:`lloydia.backends.cuda.device_functions.run_state.wait_for_previous_kernel`.
WAIT = "griddepcontrol.wait"
# Parameters that Triton adds to a kernel, for memory that plain launches do not need.
HIDDEN = 2
FLOATS = {"fp32": "<f", "fp64": "<d"}


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
        """Return some of these launches, given their part of the table."""
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
    if not all(map(is_plain, launches)):
        return LaunchList(launches)
    configs, values = [], []
    for launch in launches:
        compiled, grid = launch.compiled, launch.grid
        about = compiled.metadata
        if min(grid) > 0:
            configs.append(
                (attribute_of(compiled), compiled.function, *grid, 32 * about.num_warps,
                 about.shared, len(values))
            )  # fmt: skip
        values += [number(launch.places[i], kind) for i, kind in parameters(launch)]
        values += [0] * HIDDEN
    keep_alive = [launch.kept for launch in launches]
    table = np.array(configs, dtype=np.int64).reshape(-1, FIELDS)
    return LaunchConfigs(ConfigTable(table), np.array(values, dtype=np.int64), keep_alive)


def attribute_of(compiled: Any) -> int:
    """Return the launch attribute of a kernel."""
    if compiled.metadata.launch_cooperative_grid:
        return COOPERATIVE
    early = options.is_on("early_launch") and WAIT in compiled.asm["ptx"]
    return EARLY if early else IN_ORDER


def is_plain(launch: Launch) -> bool:
    """Return whether numbers are all that a launch needs."""
    about = launch.compiled.metadata
    scratch = about.global_scratch_size or about.profile_scratch_size
    return not (scratch or about.launch_pdl or about.num_ctas != 1) and all(
        kind[0] in "*iu" or kind in FLOATS for _, kind in parameters(launch)
    )


def parameters(launch: Launch) -> list[tuple[int, str]]:
    """Return which arguments a kernel takes when it is launched, by number, and their types."""
    kinds = launch.compiled.src.signature.values()
    return [(i, kind) for i, kind in enumerate(kinds) if kind != "constexpr"]


def number(value: Any, kind: str) -> int:
    """Return the integer whose first bytes are those of a parameter."""
    if kind in FLOATS:
        return int.from_bytes(struct.pack(FLOATS[kind], value), "little", signed=True)
    return int(value or 0)


def address_of(array: NDArray[np.int64]) -> int:
    """Return the address of an array."""
    return addressof(c_int64.from_buffer(array)) if len(array) else 0
