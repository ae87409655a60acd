"""Direct calls of the GPU's driver, where PyTorch and Triton take longer."""

from __future__ import annotations

from ctypes import CDLL, byref, c_char_p, c_int, c_int64, c_uint, c_void_p, cast
from functools import cache
from threading import local
from typing import Any

import torch

__all__ = ["driver", "enter", "function", "prefer_shared", "refuse"]

# Addresses, sizes and handles that functions take.
OFTEN = {"cuMemcpyDtoHAsync_v2": 4, "cuEventRecord": 2, "cuEventSynchronize": 1}
# What a launch takes: the kernel; the axes of the grid and of its programs, and shared memory; the
# stream, and where the parameters are.
LAUNCH: list[Any] = [c_void_p, *[c_uint] * 7, c_void_p, c_void_p]

# CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT.
CARVEOUT = 9

# The state of a thread: whether it has entered a context.
_here = local()


@cache
def driver() -> CDLL:
    """Return the GPU's driver, with argument types for functions that are called often."""
    library = CDLL("libcuda.so.1")
    for name, count in OFTEN.items():
        getattr(library, name).argtypes = [c_int64] * count
    library.cuLaunchCooperativeKernel.argtypes = LAUNCH
    library.cuLaunchKernel.argtypes = [*LAUNCH, c_void_p]
    return library


@cache
def function(name: str) -> int:
    """Return the address of a function of the driver."""
    return cast(getattr(driver(), name), c_void_p).value or 0


def enter() -> None:
    """Make the context of PyTorch's current device current in this thread, unless one is.

    A thread has no context before its first call of the runtime; a launch is no such call, nor is
    what PyTorch does for the first device.
    """
    if getattr(_here, "entered", False):
        return
    context, device, library = c_void_p(), c_int(), driver()
    refuse(library.cuCtxGetCurrent(byref(context)), "name a thread's context")
    if not context.value:
        refuse(library.cuDeviceGet(byref(device), torch.cuda.current_device()), "name a device")
        refuse(library.cuDevicePrimaryCtxRetain(byref(context), device), "give a device's context")
        refuse(library.cuCtxSetCurrent(context), "enter a device's context")
    _here.entered = True


def prefer_shared(kernel: int, percent: int) -> None:
    """Let a kernel prefer this percentage of a multiprocessor's shared memory."""
    failed = driver().cuFuncSetAttribute(c_void_p(kernel), CARVEOUT, c_int(percent))
    refuse(failed, "share out a multiprocessor's memory")


def refuse(failed: int, what: str) -> None:
    """Raise an error if the driver returned one."""
    if failed:
        raise RuntimeError(f"The GPU driver failed to {what}: {reason(failed)}.")


def reason(failed: int) -> str:
    """Return the driver's name of an error."""
    name = c_char_p()
    driver().cuGetErrorName(failed, byref(name))
    return f"{(name.value or b'an unknown error').decode()} ({failed})"
