"""Time on a device, by its own events, and what it can do: copies and matrix products.

An iteration reads X once and takes ``2 n d k`` operations for its scores: a contender that skips
nothing cannot be faster than either at the rates measured here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from lloydia.bench.device.cases import DeviceCase

__all__ = ["floor", "rates", "timed"]

LARGE = 1 << 28  # numbers of 4 bytes: 1 GB, far beyond any cache
ORDER = 8192
REPEATS = 7


def timed(function: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Return the seconds that a call takes, the device's work included, and what it returns."""
    if not device.startswith("cuda"):
        begin = time.perf_counter()
        result = function()
        return time.perf_counter() - begin, result
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    first.record()
    result = function()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3, result


def rates(device: str) -> dict[str, float]:
    """Return copy bandwidth in GB/s (both ways counted) and matrix products in TFLOP/s."""
    source = torch.randn(LARGE, device=device)
    target = torch.empty_like(source)
    seconds = _fastest(partial(target.copy_, source), device)
    found = {"copy_gbs": 2 * 4 * LARGE / seconds / 1e9}
    del source, target
    for dtype in ("float16", "float32", "float64"):
        A = torch.randn((ORDER, ORDER), device=device).to(getattr(torch, dtype))
        B = torch.empty_like(A)
        seconds = _fastest(partial(torch.mm, A, A, out=B), device)
        found[f"gemm_{dtype}_tflops"] = 2 * ORDER**3 / seconds / 1e12
    return found


def floor(case: DeviceCase, rates: dict[str, float]) -> float:
    """Return the seconds below which an iteration with all scores in half precision cannot be."""
    arithmetic = 2 * case.n * case.d * case.k / rates["gemm_float16_tflops"] / 1e12
    traffic = case.n * (case.d * np.dtype(case.dtype).itemsize + 4) / rates["copy_gbs"] / 1e9
    return case.batch * max(arithmetic, traffic)


def _fastest(function: Callable[[], Any], device: str) -> float:
    return min(timed(function, device)[0] for _ in range(REPEATS))
