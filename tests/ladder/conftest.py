"""The ladder's CUDA kernels run in numba-cuda's simulator where there is no GPU."""

import ctypes
import os
import sys
import threading

import numba
import numpy as np
import pytest

asking = threading.Lock()


def has_gpu():
    """Ask the driver: numba-cuda decides once, when it is imported."""
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


def shfl_down_sync(module, mask, number, delta):
    """Return the number of the lane `delta` further on; past the last lane one's own.

    The simulator has threads of the host for lanes, and no shuffles.
    """
    thread = threading.current_thread()
    warp, lane = divmod(thread.thread_id, 32)
    fresh = threading.Barrier(32), [None] * 32
    barrier, numbers = vars(thread._manager).setdefault(f"warp{warp}", fresh)
    numbers[lane] = number
    barrier.wait()
    found = numbers[lane + delta] if lane + delta < 32 else number
    barrier.wait()
    return found


def shared_array(shared, shape, dtype, alignment=None):
    """Return the shared array of the line that asks, the same one to all threads of the block.

    The simulator looks for it and then makes it: two threads that ask at once get one each.
    """
    if shape == 0:
        return simulated(shared, shape, dtype, alignment)
    asker = sys._getframe(1)
    place = asker.f_code.co_filename, asker.f_lineno
    with asking:
        if place not in shared._allocations:
            shared._allocations[place] = np.empty(shape, dtype)
        return shared._allocations[place]


if not has_gpu():
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # of processes that tests start
    numba.config.ENABLE_CUDASIM = True  # read when numba.cuda is imported; nothing else asks
    try:
        from numba.cuda.simulator.kernelapi import FakeCUDAModule, FakeCUDAShared
    except ImportError:
        pass  # Without numba-cuda the tests of its rungs are skipped.
    else:
        FakeCUDAModule.shfl_down_sync = shfl_down_sync
        simulated, FakeCUDAShared.array = FakeCUDAShared.array, shared_array


@pytest.fixture
def swift():
    """Have threads of the host take turns sooner: the simulator polls for those at a barrier."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)
