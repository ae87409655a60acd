"""The ladder's CUDA kernels run in numba-cuda's simulator where there is no GPU."""

import ctypes
import os
import sys

import numba
import pytest


def has_gpu():
    """Ask the driver: numba-cuda decides once, when it is imported."""
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


if not has_gpu():
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # of processes that tests start
    numba.config.ENABLE_CUDASIM = True  # read when numba.cuda is imported; nothing else asks


@pytest.fixture
def swift():
    """Have threads of the host take turns sooner: the simulator polls for those at a barrier."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)
