"""Farthest-first seeding on one thread, on several and on a GPU: the same rows."""

import numba
import numpy as np
import pytest

from lloydia.ladder.farthest import farthest_first, threaded_farthest_first

SHAPES = [(50, 2, 7), (33, 3, 33), (1, 1, 1), (2, 1, 2)]


def wanted(X, first, k):
    rows = [first]
    for _ in range(k - 1):
        D = np.square(X[:, None] - X[rows]).sum(axis=2).min(axis=1)
        rows.append(int(D.argmax()))
    return rows


def whole_numbers(n, d):
    """Return points with many ties."""
    return np.random.default_rng(n).integers(0, 4, (n, d)).astype(float)


@pytest.mark.parametrize(("n", "d", "k"), SHAPES)
def test_threads_take_the_same_rows(n, d, k):
    X, first = whole_numbers(n, d), n // 2
    rows = wanted(X, first, k)
    assert farthest_first(X, first, k).tolist() == rows
    for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
        assert threaded_farthest_first(X, first, k, threads).tolist() == rows


@pytest.mark.interpreter
@pytest.mark.usefixtures("swift")
@pytest.mark.parametrize(("n", "d", "k"), SHAPES)
def test_a_gpu_takes_the_same_rows(n, d, k):
    pytest.importorskip("numba_cuda")
    from lloydia.ladder.farthest_cuda import cuda_farthest_first

    X, first = whole_numbers(n, d), n // 2
    assert cuda_farthest_first(X, first, k, 32).tolist() == wanted(X, first, k)
