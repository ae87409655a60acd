"""Which GPUs there are, and how much memory they have."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from lloydia.backends.cuda.runtime.launching import INTERPRETED, number_of
from lloydia.spelling import option

__all__ = [
    "LITTLE",
    "check_memory",
    "find",
    "find_several",
    "free_bytes",
]

# Requests below this many bytes are not checked: the driver takes as long to answer as iterations
# over few rows.
LITTLE = 1 << 24

# The oldest compute capability that the kernels are for.
OLDEST = (8, 0)

# An answer stays valid for this many seconds if this many times the needed memory is free.
HOLDS, PLENTY = 0.1, 4

# The free memory of each device when the driver was last called, and the time of that call.
_answers: dict[torch.device, tuple[int, float]] = {}


def find(device: str, X: Any) -> str:
    """Return the name, with its number, of the GPU that ``"cuda"`` or ``"cuda:N"`` means.

    ``"cuda"`` means the GPU of `X`, or torch's current one.

    Raises
    ------
    ValueError
        If there is no such GPU, `X` is on another one, or the kernels are not for it.
    RuntimeError
        While a CUDA graph is captured.
    """
    asked = number_of(device)
    _check_there(device, asked or 0)
    home = X.device.index if isinstance(X, torch.Tensor) else None
    if asked is not None and home is not None and asked != home:
        raise ValueError(
            f"X is on cuda:{home} and {option('device', device)} is another GPU: use "
            f"{option('device', 'auto')}, or copy X with X.to({device!r})."
        )
    if asked is None:
        asked = home
    if asked is None:
        asked = 0 if INTERPRETED else torch.cuda.current_device()
    _check_age([asked])
    return f"cuda:{asked}"


def find_several(device: str, X: Any) -> list[str]:
    """Return the names of the GPUs that ``"cuda:all"`` or ``"cuda:N,M"`` means.

    Raises
    ------
    ValueError
        If there is no such GPU, one is named twice, `X` is on another one, or the kernels are
        not for one of them.
    """
    listed = device.removeprefix("cuda:")
    numbers = range(_count()) if listed == "all" else [int(part) for part in listed.split(",")]
    _check_there(device, max(numbers, default=0))
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{option('device', device)} names a GPU twice: name each once.")
    home = X.device.index if isinstance(X, torch.Tensor) else None
    if home is not None and home not in numbers:
        raise ValueError(
            f"X is on cuda:{home}, which {option('device', device)} leaves out: name it as well, "
            f"or copy X with X.to('cuda:{numbers[0]}')."
        )
    _check_age(numbers)
    return [f"cuda:{number}" for number in numbers]


def _check_there(device: str, number: int) -> None:
    """Refuse GPUs of another maker, a GPU that is not there, and one that captures a graph."""
    if torch.version.hip is not None and not INTERPRETED:
        raise ValueError(
            f"{option('device', device)} needs an NVIDIA GPU, and this PyTorch is built for AMD's "
            f"(ROCm {torch.version.hip}): use {option('device', 'cpu')}, and copy an array on the "
            "GPU to the CPU (X.cpu() for torch, X.get() for CuPy)."
        )
    count = _count()
    if count == 0:
        raise ValueError(
            f"{option('device', device)} needs a GPU, and PyTorch finds none "
            f"(torch.cuda.is_available() is False): use {option('device', 'cpu')}."
        )
    if number >= count:
        names = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        raise ValueError(
            f"{option('device', device)} is not there: this machine has {names}; use one of them "
            f"or {option('device', 'cpu')}."
        )
    if not INTERPRETED and torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            f"{option('device', device)} cannot be used while a CUDA graph is captured: call "
            "Lloydia outside of the capture."
        )


def _check_age(numbers: Sequence[int]) -> None:
    """Refuse GPUs that are older than the kernels."""
    for number in [] if INTERPRETED else numbers:
        name, capability = _model(number)
        if capability < OLDEST:
            raise ValueError(
                f"cuda:{number} is {name}, of compute capability {spelled(capability)}, and "
                f"Lloydia needs {spelled(OLDEST)} or newer: use {option('device', 'cpu')}."
            )


@cache
def _model(number: int) -> tuple[str, tuple[int, int]]:
    """Return the name of a GPU, and its compute capability."""
    return torch.cuda.get_device_name(number), torch.cuda.get_device_capability(number)


def spelled(capability: tuple[int, int]) -> str:
    """Return a compute capability in words."""
    return ".".join(map(str, capability))


def check_memory(needed: int, device: torch.device) -> None:
    """Refuse work that does not fit, before it starts.

    Parameters
    ----------
    needed : int
        Bytes.
    device : torch.device

    Raises
    ------
    MemoryError
        Names the bytes that are needed and free.
    """
    if needed <= LITTLE:
        return
    free = free_bytes(device, needed)
    if needed > free:
        raise MemoryError(
            f"{needed:,} bytes of GPU memory are needed and {free:,} are free on {device}: free "
            f"some, store the rows in half precision, or use {option('device', 'cpu')}."
        )


def free_bytes(device: torch.device, needed: int) -> int:
    """Return the bytes that this process can still allocate.

    A recent answer is reused if it was much larger than `needed`.

    If the driver has too little, torch's unused reserve counts as well.  The result respects
    ``torch.cuda.set_per_process_memory_fraction``.
    """
    if INTERPRETED or device.type == "meta":
        return sys.maxsize
    share = torch.cuda.get_per_process_memory_fraction(device)
    free, asked = _answers.get(device, (0, 0.0))
    if share == 1.0 and free >= PLENTY * needed and time.monotonic() - asked < HOLDS:
        return free
    free, whole = torch.cuda.mem_get_info(device)
    if free >= needed and share == 1.0:
        _answers[device] = free, time.monotonic()
        return free
    _answers.pop(device, None)
    # torch is called only now: it goes through all its blocks of memory.
    free = _unused(device, int(share * whole))
    if free < needed:
        # Memory of a fit that failed may be in cycles that only the collector frees.
        gc.collect()
        free = _unused(device, int(share * whole))
    return free


def _unused(device: torch.device, most: int) -> int:
    """Return what the driver and torch have left, within the limit of this process."""
    used = torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device) - used
    return min(free, max(most - used, 0))


def _count() -> int:
    # In the interpreter the host counts as one GPU.
    return 1 if INTERPRETED else torch.cuda.device_count()
