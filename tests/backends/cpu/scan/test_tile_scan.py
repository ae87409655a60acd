"""Rows that matrix units leave ambiguous: their labels and bounds, on any processor."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.runtime.compiled import kernel
from lloydia.backends.cpu.scan.centers import aligned, pack
from lloydia.backends.cpu.scan.nearest import frame_rows
from lloydia.backends.cpu.scan.scanners import full_scanner
from lloydia.backends.cpu.scan.tile_scan import rescore
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import DEEP, GROUP
from lloydia.exact.distance import squared_distances
from nasty import rows_of


@kernel
def framed(X, shape, origin, scale, y, squares):
    frame_rows(X, EVERY, 0, len(X), shape, origin, scale, y, squares, 0, 0)


def rescored(X, centers):
    """Return labels, bounds on distances to these and the others, and how many needed rechecks."""
    p = pack(centers, False, lambda task, cost, n: task(0, 0, n))
    n, d = X.shape
    groups = -(-n // GROUP)
    y, squares = aligned((groups, d, GROUP)), aligned((groups * GROUP,))
    deep = True if d > DEEP else None
    framed(X, deep, *p.frame, y, squares)
    labels, (best, second) = np.empty(n, np.int32), np.empty((2, n))
    n_rechecked = rescore(
        X, EVERY, y, squares, 0, np.arange(n), n, p.scores, p.centers, p.frame, p.errors, deep,
        labels, best, second,
    )  # fmt: skip
    return labels, best, second, n_rechecked


def between(n, d, k, share, far, dtype):
    """Return centres, some of them far away, and rows of which a share is as near to two."""
    rng = np.random.default_rng(d + k)
    centers = rng.standard_normal((k, d))
    a, b = rng.integers(k // 2, k, size=(2, n))
    step = np.where(rng.random(n) < share, 2.0**-26, 0.2)[:, None]
    X = centers[a] * (0.5 + step) + centers[b] * (0.5 - step)
    centers[: k // 3] *= far
    centers[-1] = centers[-2]
    return X.astype(dtype), centers.astype(dtype)


def check(X, centers, found):
    labels, best, second, _ = found
    D = squared_distances(X, centers)
    two = np.sort(D, axis=1)
    assert (labels == D.argmin(axis=1)).all()
    assert (best >= two[:, 0] * (1 - 1e-12)).all()
    assert (second <= two[:, 1] * (1 + 1e-12)).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("far", [1.0, 1e4, 1e9])
@pytest.mark.parametrize(("d", "k"), [(9, 7), (40, 100), (DEEP + 9, 30)])
def test_few_and_many_rows_of_a_group_in_doubt(d, k, far, dtype):
    for share in (0.03, 0.9):
        X, centers = between(500, d, k, share, far, dtype)
        found = rescored(X, centers)
        check(X, centers, found)
        assert 0 < found[-1] < (0.5 if share < 0.5 else 1.01) * len(X)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", ["outlier", "duplicates", "grid", "subnormal", "offset"])
def test_nasty_rows(flavour, dtype):
    X = rows_of(flavour, 300, 12, dtype, 0)
    check(X, X[:20], rescored(X, X[:20]))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bounds_hold_for_centres_whose_scores_are_just_too_low_to_be_listed(dtype):
    rng = np.random.default_rng(0)
    half = rng.standard_normal((10, 20))
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    # Amid centres as far as each other, nothing but the error of a score is between it and a bound.
    centers = np.vstack([half, -half]).astype(dtype)
    X = rng.standard_normal((20000, 20)) * 2.0 ** -rng.uniform(17, 20, (20000, 1))
    X = X.astype(dtype)
    check(X, centers, rescored(X, centers))
    labels, (best, second) = np.empty(len(X), np.int32), np.empty((2, len(X)))
    scan = full_scanner(X, pack(centers, False, lambda task, cost, n: task(0, 0, n)), False)
    assert scan(EVERY, 0, len(X), labels, best, second) > 100
    check(X, centers, (labels, best, second, 0))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bounds_hold_where_only_some_of_the_centres_that_are_as_far_are_listed(dtype):
    rng = np.random.default_rng(0)
    half = rng.standard_normal((12, 20)) * (np.arange(20) > 0)
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    top = np.eye(20)[:1]
    centers = np.vstack([top, half, -top, -half]).astype(dtype)
    # The first centre leads all others by the same, in some rows by just what is listed.
    X = np.sort(2.0 ** -rng.uniform(16, 20, (40000, 1)), axis=0) * top
    X = X.astype(dtype)
    found = rescored(X, centers)
    assert 0 < found[-1] < len(X)
    check(X, centers, found)
