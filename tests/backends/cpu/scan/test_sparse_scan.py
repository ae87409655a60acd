"""The scan of CSR rows: rows that the farthest centre's errors would leave in doubt."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from lloydia import KMeans
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan.sparse_scan import near_error, sparse_scan
from lloydia.exact.distance import squared_distances


def scanned(X, centers, bounds=True):
    """Return labels, bounds on distances to these and to the others, and how many were in doubt."""
    rows, wide = sp.csr_matrix(X), centers.astype(np.float64)
    squares = np.square(wide).sum(axis=1)
    labels, out = np.empty(len(X), np.int32), np.empty((2, len(X) if bounds else 0))
    parts = rows.data, rows.indices, rows.indptr
    reach = float(np.sqrt(squares.max())) * (1 + 2.0**-20)
    ambiguous = sparse_scan(
        parts, EVERY, 0, len(X), np.ascontiguousarray(wide.T), 0.5 * squares, reach, labels, *out
    )
    return labels, *out, ambiguous


def between(far, dtype, d=30, k=40):
    """Return centres, a few far away, and rows between two others, by all gaps down to none."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((k, d)) * (rng.random((k, d)) < 0.4)
    n = 3000
    a, b = rng.integers(5, k, size=(2, n))
    step = 2.0 ** rng.uniform(-60, -1, n)[:, None]
    X = centers[a] * (0.5 + step) + centers[b] * (0.5 - step)
    centers[:5] *= far
    return X.astype(dtype), centers.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("far", [1.0, 1e4, 1e6, 1e12])
def test_labels_and_bounds_whatever_the_farthest_centre_is(far, dtype):
    X, centers = between(far, dtype)
    D = squared_distances(X, centers)
    usual = scanned(*between(1.0, dtype))[-1]
    for bounds in (True, False):
        labels, *_, ambiguous = scanned(X, centers, bounds)
        assert (labels == D.argmin(axis=1)).all()
        # Five of the centres are not near any row.
        assert 0 < ambiguous < 1.3 * usual
    _, best, second, _ = scanned(X, centers)
    two = np.sort(D, axis=1)
    assert (best == two[:, 0]).all()
    assert (second <= two[:, 1] * (1 + 1e-14)).all()
    assert (second >= two[:, 1] * (1 - 1e-9)).all()


def test_lower_bounds_hold_amid_centres_as_far_as_each_other():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((10, 20))
    half /= np.linalg.norm(half, axis=1)[:, None]
    centers = np.vstack([half, -half, 1e6 * half[:1]])
    X = rng.standard_normal((300, 20)) * 2.0 ** -rng.uniform(30, 40, (300, 1))
    _, _, second, ambiguous = scanned(X, centers)
    assert ambiguous == 0
    for x, found in zip(X, second):
        D = [sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, c)) for c in centers]
        assert Fraction(found) <= sorted(D)[1]


@pytest.mark.parametrize("d", [1, 30, 10**4, 2**31])
def test_a_score_as_wrong_as_can_be_still_bounds_its_own_error(d):
    relative = (d + 8) * 2.0**-52
    lengths = [0.0, *np.ldexp(1.0, range(-40, 30)), *np.linspace(0.5, 3.0, 40)]
    for radius, away in itertools.product(lengths, lengths):
        # No centre whose D is no larger has a larger norm.
        away *= 1.0 + 0.5 * relative
        error = relative * (2 * radius + away) ** 2
        score = 0.5 * (away**2 - radius**2) - error
        assert near_error.py_func(radius, score, relative) >= error * (1 - 2.0**-50)


def test_what_is_not_a_number_proves_nothing():
    for bad in (np.nan, np.inf):
        assert not near_error.py_func(bad, 1.0, 1e-14) < np.inf
        assert not near_error.py_func(1.0, bad, 1e-14) < np.inf


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_far_rows_cost_no_more_than_others(dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 50)) * (rng.random((4000, 50)) < 0.2)
    X[:3] *= 1e8
    X = X.astype(dtype)
    of = {"n_clusters": 30, "init": X[:30], "n_init": 1, "max_iter": 5, "tol": 0.0}
    right = KMeans(**of, device="reference").fit(X)
    for algorithm in ("lloyd", "hamerly", "elkan", "yinyang"):
        found = KMeans(**of, algorithm=algorithm, device="cpu").fit(sp.csr_matrix(X))
        assert (found.labels_ == right.labels_).all(), algorithm
        assert (found.cluster_centers_ == right.cluster_centers_).all(), algorithm
        assert found.n_rechecked_ < 100, algorithm
