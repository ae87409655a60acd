"""What numba-cuda's simulator lacks for the rungs: warps, and shared arrays without a race.

A thread of the host stands for a thread of the GPU.  The simulator has no warps, so shuffles and
barriers of a warp are added here; and it looks for the static shared array of a line and then makes
it, so two threads that come at the same time get one each, which is mended here.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from lloydia.imports import load

__all__ = ["complete"]

LANES = 32
_making = threading.Lock()


def complete() -> None:
    """Give the simulator of this process what it lacks; a second call changes nothing."""
    api: Any = load("numba.cuda.simulator.kernelapi")
    api.FakeCUDAModule.shfl_down_sync = _shuffle_down
    api.FakeCUDAModule.syncwarp = _sync_warp
    shared = api.FakeCUDAShared
    if shared.array is not _shared_array:
        shared.dynamic_array, shared.array = shared.array, _shared_array


def _warp() -> tuple[threading.Barrier, list[Any], int]:
    """Return the barrier of the caller's warp, room for a number a lane, and the caller's lane."""
    thread: Any = threading.current_thread()
    warp, lane = divmod(thread.thread_id, LANES)
    fresh = threading.Barrier(LANES), [None] * LANES
    barrier, numbers = vars(thread._manager).setdefault(f"warp{warp}", fresh)
    return barrier, numbers, lane


def _shuffle_down(module: Any, mask: int, number: Any, delta: int) -> Any:
    """Return the number of the lane `delta` further on; past the last lane one's own."""
    barrier, numbers, lane = _warp()
    numbers[lane] = number
    barrier.wait()
    found = numbers[lane + delta] if lane + delta < LANES else number
    barrier.wait()
    return found


def _sync_warp(module: Any, mask: int = 0xFFFFFFFF) -> None:
    """Wait for all lanes of the warp."""
    _warp()[0].wait()


def _shared_array(shared: Any, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
    """Return the shared array of the line that asks, the same one to all threads of the block."""
    if shape == 0:
        return shared.dynamic_array(shape, dtype, alignment)
    asker = sys._getframe(1)
    place = asker.f_code.co_filename, asker.f_lineno
    with _making:
        if place not in shared._allocations:
            shared._allocations[place] = np.empty(shape, dtype)
        return shared._allocations[place]
