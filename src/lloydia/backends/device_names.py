"""What a device may be called, and what may be meant where it is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from lloydia.spelling import meant

__all__ = ["DEVICES", "ONE", "check_device", "one_gpu_name", "several_gpus", "unknown_device"]

# Those that messages list; "reference" is for tests and study.
ONE = ("auto", "cpu", "cuda", "cuda:N")
DEVICES = (*ONE, "cuda:N,M", "cuda:all")

ONE_GPU = re.compile(r"cuda:\d+")
GPUS = re.compile(r"cuda:(all|\d+(,\d+)+)")

# Other words for a GPU, and numbers written in another way: gpu, NVIDIA, cuda0, GPU:0, cuda 0.
MEANT_GPU = re.compile(r"(?:cuda|gpu|nvidia)[\s:_-]*(\d*)", re.IGNORECASE)


@lru_cache
def one_gpu_name(device: str) -> str:
    """Return the name of a device if it is that of one GPU, else an empty string."""
    return device if device == "cuda" or ONE_GPU.fullmatch(device) else ""


def several_gpus(device: object) -> bool:
    """Return whether a device is several GPUs of this host."""
    return GPUS.fullmatch(str(device)) is not None


def check_device(device: str) -> None:
    """Refuse what is no name of a device; whether the device is there is another question.

    Raises
    ------
    ValueError
        Lists the names, and says which one may be meant.
    """
    if device not in ("auto", "cpu", "reference") and not (
        one_gpu_name(device) or several_gpus(device)
    ):
        raise unknown_device(device)


def unknown_device(device: object, known: Sequence[str] = DEVICES) -> ValueError:
    """Return the error for a device that is none of the known ones."""
    listed = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
    return ValueError(f"Unknown device {device!r}: use {listed}{_meant(device)}")


def _meant(device: object) -> str:
    if isinstance(device, str) and (found := MEANT_GPU.fullmatch(device.strip())):
        gpu = f"cuda:{found[1]}" if found[1] else "cuda"
        return meant(gpu, [gpu])
    # What begins as a name of a GPU is near that, whatever follows: the list above says more.
    named = isinstance(device, str) and device.startswith("cuda:")
    return "." if named else meant(device, ("auto", "cpu", "cuda"))
