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
    "launch_by_kind",
    "launch_known",
    "next_power",
    "place",
    "processors",
    "stream_of",
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

# What kernels are compiled for of integers beside the type: whether they are 1, or multiples of 16.
ALONE, SIXTEENS, PLAIN = 1, 2, 3
MOST = 2**31


def launch_by_kind(
    kernel: Any, grid: tuple[int, int, int], *args: Any, **options: Any
) -> Again | None:
    """Queue a kernel whose compiled form is known by the kinds of its arguments.

    Parameters and what is returned are those of :func:`launch_known`.
    """
    if INTERPRETED:
        kernel[grid](*args, **options)
        return None
    # Done here, in one loop: functions that did the parts would take as long as queueing.
    places, kinds = [], [*options.values()]
    for argument in args:
        place, kind = argument, type(argument)
        if isinstance(argument, torch.Tensor):
            place, kind = argument.data_ptr(), argument.dtype
            if place % 16:
                kind = str(kind)
        elif kind is int:
            kind = ALONE if argument == 1 else PLAIN if argument % 16 else SIXTEENS
            if not -MOST <= argument < MOST:
                kind = -kind
        places.append(place)
        kinds.append(kind)
    return _queue_known(kernel, tuple(kinds), grid, places, args, options)


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
    places = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
    return _queue_known(kernel, key, grid, places, args, options)


def _queue_known(
    kernel: Any, key: Hashable, grid: tuple, places: list, args: tuple, options: dict
) -> Again:
    device = torch.cuda.current_device()
    # By its identity: kernels stay, and to hash one takes longer.
    known = (id(kernel), key, device)
    compiled = _found.get(known)
    queued = compiled is None
    if compiled is None:
        compiled = _found[known] = kernel[grid](*args, **options)
    constants = [options[name] for name in kernel.arg_names[len(args) :]]
    # The tensors are kept: what is repeated finds them where they were.
    again = partial(repeat, compiled, grid, (*places, *constants), args)
    if not queued:
        again(stream_of(device))
    return again


def repeat(compiled: Any, grid: tuple, places: tuple, kept: Sequence, stream: int) -> None:
    """Queue a compiled kernel as Triton does, but for its hooks before and after a launch.

    Where a tensor is comes as a number: of a tensor the driver is asked what it is each time.
    """
    no_hooks = None, None, None
    compiled.run(*grid, stream, compiled.function, compiled.packed_metadata, *no_hooks, *places)


def stream_of(device: int) -> int:
    """Return the handle of the current stream of the GPU of this number."""
    return driver.active.get_current_stream(device)
