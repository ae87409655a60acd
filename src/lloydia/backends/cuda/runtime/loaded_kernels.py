"""Compiled kernels that the driver has loaded, and how one of them is launched.

Triton compiles a launcher in C for each kernel: 0.3 s each with Triton 3.6, in addition to the
kernel.  So kernels are loaded by Triton, and launched by the driver.
"""

from __future__ import annotations

import struct
from ctypes import addressof, c_int64
from functools import cached_property
from typing import Any

from triton.compiler.compiler import max_shared_mem
from triton.runtime import driver as drivers
from triton.runtime.errors import OutOfResources

from lloydia.backends.cuda.runtime.driver import driver, enter, refuse

__all__ = ["HIDDEN", "LoadedKernel", "bits_of"]

# Parameters that Triton adds to a kernel's, for memory that plain ones do not need.
HIDDEN = 2
# Threads of a warp.
WARP = 32
# How floating point parameters are passed.
FLOATS = {"fp32": "<f", "fp64": "<d"}


class LoadedKernel:
    """A compiled kernel on one GPU.

    Parameters
    ----------
    compiled : triton.compiler.CompiledKernel
    function : int
        The driver's handle; of a kernel that is not `plain`, Triton finds it.

    Attributes
    ----------
    metadata : namedtuple
        Triton's.
    """

    def __init__(self, compiled: Any, function: int = 0) -> None:
        self.compiled, self.function, self.metadata = compiled, function, compiled.metadata

    @classmethod
    def load(cls, compiled: Any, device: int) -> LoadedKernel:
        """Load a kernel on the GPU with this number, which is the current device.

        Raises
        ------
        triton.runtime.errors.OutOfResources
            A multiprocessor has too little shared memory, or too few registers.
        """
        kernel = cls(compiled)
        if kernel.plain:
            found = drivers.active.utils.load_binary(
                compiled.name, compiled.kernel, kernel.metadata.shared, device
            )
            kernel.function = found[1]
            about, most = kernel.metadata, max_shared_mem(device)
            if about.shared > most:
                raise OutOfResources(about.shared, most, "shared memory")
            if WARP * about.num_warps > found[4]:
                raise OutOfResources(WARP * about.num_warps, found[4], "threads")
        else:
            run = compiled.run  # Triton loads the binary with its own launcher.
            assert run is not None
            kernel.function = compiled.function
        return kernel

    @property
    def ptx(self) -> str:
        """The PTX code of the kernel."""
        return self.compiled.asm["ptx"]

    @cached_property
    def parameters(self) -> list[tuple[int, str]]:
        """Which arguments the kernel takes when it is launched, by number, and their types."""
        kinds = self.compiled.src.signature.values()
        return [(i, kind) for i, kind in enumerate(kinds) if kind != "constexpr"]

    @cached_property
    def plain(self) -> bool:
        """Whether a launch needs only numbers."""
        about = self.metadata
        scratch = about.global_scratch_size or about.profile_scratch_size
        return not (scratch or about.launch_pdl or about.num_ctas != 1) and all(
            kind[0] in "*iu" or kind in FLOATS for _, kind in self.parameters
        )

    def queue(self, grid: tuple[int, int, int], stream: int, places: Any) -> None:
        """Queue it on the stream with this handle; tensors are given by their addresses."""
        about = self.metadata
        if not self.plain:
            compiled = self.compiled
            compiled.run(
                *grid, stream, self.function, compiled.packed_metadata, None, None, None, *places
            )
            return
        if min(grid) < 1:
            return
        enter()
        count = len(self.parameters) + HIDDEN
        values = (c_int64 * count)(*[bits_of(places[i], kind) for i, kind in self.parameters])
        first = addressof(values)
        each = (c_int64 * count)(*range(first, first + 8 * count, 8))
        shape = *grid, WARP * about.num_warps, 1, 1, about.shared, stream, addressof(each)
        if about.launch_cooperative_grid:
            failed = driver().cuLaunchCooperativeKernel(self.function, *shape)
        else:
            failed = driver().cuLaunchKernel(self.function, *shape, None)
        refuse(failed, "launch a kernel")


def bits_of(value: Any, kind: str) -> int:
    """Return the integer whose first bytes are those of a parameter."""
    if kind in FLOATS:
        return int.from_bytes(struct.pack(FLOATS[kind], value), "little", signed=True)
    return int(value or 0)
