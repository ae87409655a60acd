"""The GPU's driver, asked for what PyTorch and Triton take longer to ask it for."""

from __future__ import annotations

from ctypes import CDLL, byref, c_char_p, c_int, c_int64, c_void_p, cast
from functools import cache
from threading import local

import torch

__all__ = ["driver", "enter", "function", "prefer_shared", "refuse"]

# Addresses, sizes and handles that functions take.
OFTEN = {"cuMemcpyDtoHAsync_v2": 4, "cuEventRecord": 2, "cuEventSynchronize": 1}

# CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT.
CARVEOUT = 9

# What a thread has come to: whether it has entered a context.
_here = local()


@cache
def driver() -> CDLL:
    """Return the GPU's driver; of functions that are called often, what they take is known."""
    library = CDLL("libcuda.so.1")
    for name, count in OFTEN.items():
        getattr(library, name).argtypes = [c_int64] * count
    return library


@cache
def function(name: str) -> int:
    """Return where a function of the driver is."""
    return cast(getattr(driver(), name), c_void_p).value or 0


def enter() -> None:
    """Have this thread in the context of PyTorch's current device, unless it is in one.

    A thread is in none until it has asked the runtime for something, which a launch does not, nor
    does PyTorch where the device is the first.
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
    """Have a kernel take so much of a multiprocessor's shared memory, if that will do."""
    failed = driver().cuFuncSetAttribute(c_void_p(kernel), CARVEOUT, c_int(percent))
    refuse(failed, "share out a multiprocessor's memory")


def refuse(failed: int, what: str) -> None:
    """Raise for an error of the driver."""
    if failed:
        raise RuntimeError(f"The GPU's driver refused to {what}: {reason(failed)}.")


def reason(failed: int) -> str:
    """Return what an error of the driver is called."""
    name = c_char_p()
    driver().cuGetErrorName(failed, byref(name))
    return f"{(name.value or b'an unknown error').decode()} ({failed})"
