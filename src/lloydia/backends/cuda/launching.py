"""How kernels are written and launched.

Kernels are Triton's.  With ``TRITON_INTERPRET=1`` they run in Triton's interpreter, on the host and
on tensors in its memory: the same code, slowly, so that it can be tested where there is no GPU.
Programs then run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial
from typing import Any

import torch
import triton
from triton.runtime import driver

__all__ = [
    "EXACT",
    "INTERPRETED",
    "Again",
    "ceil_div",
    "launch_known",
    "next_power",
    "place",
    "processors",
]

INTERPRETED = bool(triton.knobs.runtime.interpret)

# How kernels that compute canonical numbers are launched: no product may be fused with a sum.
EXACT = {"enable_fp_fusion": False}


def place(device: str) -> torch.device:
    """Return where tensors live for ``"cuda"`` or ``"cuda:N"``; the host where interpreted."""
    if INTERPRETED:
        return torch.device("cpu")
    index = torch.device(device).index
    return torch.device("cuda", torch.cuda.current_device() if index is None else index)


@cache
def processors(device: torch.device) -> int:
    """Return the number of multiprocessors; programs of a persistent grid are multiples of it."""
    if device.type == "cpu":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count


def ceil_div(a: int, b: int) -> int:
    """Return the least number of steps of `b` that reach `a`."""
    return -(-a // b)


def next_power(n: int, least: int = 1) -> int:
    """Return the least power of two of at least `n` and `least`."""
    return max(least, 1 << (n - 1).bit_length())


_found: dict[Hashable, Any] = {}

# Queues something again, on the stream of this handle.
Again = Callable[[int], None]


def launch_known(
    kernel: Any, key: Hashable, grid: tuple[int, int, int], *args: Any, **options: Any
) -> Again | None:
    """Queue a kernel whose compiled form is known by a key: finding it takes longer than queueing.

    Parameters
    ----------
    kernel : triton kernel
    key : hashable
        All that the compiled form depends on, which it does on what is known of addresses too:
        those that the key says nothing of are multiples of 16 bytes.
    grid : tuple of three int
    args, options
        Arguments known at compile time come by name, as launch options do.

    Returns
    -------
    callable or None
        Queues the same again; None where kernels are interpreted.
    """
    if INTERPRETED:
        kernel[grid](*args, **options)
        return None
    device = torch.cuda.current_device()
    # By its identity: kernels stay, and to hash one takes longer.
    known = (id(kernel), key, device)
    compiled = _found.get(known)
    queued = compiled is None
    if compiled is None:
        compiled = _found[known] = kernel[grid](*args, **options)
    constants = [options[name] for name in kernel.arg_names[len(args) :]]
    again = repeated(compiled, grid, [*args, *constants])
    if not queued:
        again(driver.active.get_current_stream(device))
    return again


def repeated(compiled: Any, grid: tuple[int, int, int], args: Sequence) -> Again:
    """Return what queues a compiled kernel: as Triton does, but all is looked up beforehand.

    Where a tensor is comes as a number: of a tensor the driver is asked what it is each time.
    Triton's hooks, which it calls before and after a launch, are left out.
    """
    places = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
    no_hooks = None, None, None
    rest = compiled.function, compiled.packed_metadata, *no_hooks, *places
    # The tensors are kept, too: what is repeated finds them where they were.
    return partial(_queue, compiled.run, grid, rest, args)


def _queue(
    run: Callable, grid: tuple[int, int, int], rest: tuple, kept: Sequence, stream: int
) -> None:
    run(*grid, stream, *rest)
