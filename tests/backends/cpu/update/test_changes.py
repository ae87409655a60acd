from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from lloydia.backends.cpu.update import changes


@njit
def listed(a, b, out):
    return changes.list_differing(a.ctypes.data, b.ctypes.data, len(a), out.ctypes.data)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("vectors", [0, 1, 5])
def test_what_differs_is_listed_in_order(vectors, share):
    n = vectors * changes.WIDTH
    rng = np.random.default_rng(vectors)
    a = rng.integers(-1, 5, n).astype(np.int32)
    b = np.where(rng.random(n) < share, a + 1, a).astype(np.int32)
    out = np.empty(n + changes.WIDTH, dtype=np.int32)
    assert out[: listed(a, b, out)].tolist() == np.flatnonzero(a != b).tolist()
