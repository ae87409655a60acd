"""Whether a GPU is a Hopper, and Triton has the Gluon that :mod:`matmul.hopper_scan` needs."""

from __future__ import annotations

from functools import cache

import torch
import triton

__all__ = ["first_capability", "fits_triton", "has_gluon"]

# Versions of Triton whose Gluon that kernel is written for, and the GPUs: Hopper.
VERSIONS = ("3.6", "3.7", "3.8", "3.9")
HOPPER = 9


@cache
def has_gluon(device: torch.device) -> bool:
    """Return whether a device and Triton can run that kernel."""
    if device.type == "cpu" or not finds_nvidia():
        return False
    # Rows on the device "meta" stand for rows on the current device.
    here = None if device.type == "meta" else device
    return fits_triton(torch.cuda.get_device_capability(here))


def finds_nvidia() -> bool:
    """Return whether PyTorch finds GPUs of NVIDIA; those of AMD have other capabilities."""
    return torch.version.hip is None and torch.cuda.is_available()


def fits_triton(capability: tuple[int, int]) -> bool:
    """Return whether a GPU is a Hopper, and Triton has the Gluon for it."""
    known = ".".join(triton.__version__.split(".")[:2]) in VERSIONS
    return known and capability[0] == HOPPER


def first_capability() -> tuple[int, int]:
    """Return the compute capability of the first GPU of NVIDIA here, or else a Hopper's."""
    return torch.cuda.get_device_capability(0) if finds_nvidia() else (HOPPER, 0)
