"""Where the time of ten iterations goes: the device's kernels, and the gaps between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import inf
from statistics import median
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from lloydia.bench.device.cases import DeviceCase
from lloydia.bench.device.clock import timed
from lloydia.bench.device.contenders import Contender, FlashKMeans, Ours
from lloydia.bench.peers import Task

__all__ = ["kernels", "profiles", "shares"]

PROFILED = (Ours.name, FlashKMeans.name)
# Fits before those that are timed: the first of a shape are slower.
WARM, RUNS = 3, 5
# What kernels have in their names that score every row against every centre, and little else.
ASSIGN = ("assign", "hopper_kernel", "resident_kernel", "scan_kernel")


def profiles(
    case: DeviceCase,
    contenders: list[Contender],
    X: torch.Tensor,
    start: torch.Tensor,
    rates: dict[str, float],
    step: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Return a row for each kernel of a run of ours, and of flash-kmeans', by their time.

    Attributes of a row: `calls`, `us` (in all), `share` (of the time in kernels), `busy` (that of
    the run's time without the profiler, which kernels may exceed under it), and `tflops`, with
    `of_gemm`, its share of a half-precision product's: 2 n d k operations over the time of a call,
    for kernels that :data:`ASSIGN` names.
    """
    rows = []
    operations = 2.0 * case.batch * case.n * case.d * case.k
    for contender in contenders:
        if (
            contender.name not in PROFILED
            or not contender.version()
            or contender.refuses(case, "profile")
        ):
            continue
        step(f"{contender.name}: profile")
        placed, task = contender.place(X), Task(case.k, start, case.iterations[1], 0.0, 0)
        device = str(X.device)
        n_iter = [contender.fit(placed, task) for _ in range(WARM)][-1].n_iter
        whole = median(
            timed(lambda: contender.fit(placed, task), device)[0]  # noqa: B023 - called at once
            for _ in range(RUNS)
        )
        found = kernels(lambda: contender.fit(placed, task), device)  # noqa: B023
        total = sum(us for _, us in found.values())
        for name, (calls, us) in sorted(found.items(), key=lambda item: -item[1][1]):
            row: dict[str, Any] = {
                "peer": contender.name,
                "status": "ok",
                "reason": "",
                "kernel": name,
            }
            row |= {"calls": calls, "us": us, "share": us / total, "n_iter": int(n_iter)}
            row |= {"ms_whole": 1e3 * whole, "busy": total / 1e6 / whole}
            if any(part in name.lower() for part in ASSIGN):
                row["tflops"] = operations * calls / us / 1e6
                row["of_gemm"] = row["tflops"] / rates["gemm_float16_tflops"]
            rows.append(row)
    return rows


def kernels(function: Callable[[], Any], device: str) -> dict[str, tuple[int, float]]:
    """Return how often each kernel ran on the device in a call, and for how many µs in all.

    Copies and fills count as kernels; on a CPU, PyTorch's operations do.  Times are those of
    :func:`shares`.
    """
    kind = "CUDA" if device.startswith("cuda") else "CPU"
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities[: 1 + (kind == "CUDA")]) as profile:
        function()
        if kind == "CUDA":
            torch.cuda.synchronize()
    events = [
        event
        for event in profile.events() or ()
        if event.device_type.name == kind and not event.is_user_annotation
    ]
    ranges = [(event.time_range.start, event.time_range.end) for event in events]
    found: dict[str, list[float]] = defaultdict(list)
    for event, time in zip(events, shares(ranges)):
        found[event.name].append(time)
    return {name: (len(times), sum(times)) for name, times in found.items()}


def shares(ranges: Sequence[tuple[float, float]]) -> list[float]:
    """Return how much of the time that some work took each piece has for itself.

    Of pieces that overlap, one begins when the one that ends before it has ended: kernels that may
    begin early wait for the one ahead of them.

    Parameters
    ----------
    ranges : sequence of (float, float)
        When each begins, and ends.
    """
    out, last = [0.0] * len(ranges), -inf
    for i in sorted(range(len(ranges)), key=lambda i: ranges[i][1]):
        begin, end = ranges[i]
        out[i] = end - max(begin, last)
        last = end
    return out
