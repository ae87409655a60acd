"""Rows that the farthest centre's errors leave ambiguous, and those of near centres do not."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from lloydia import KMeans
from lloydia.algorithms import ALGORITHMS
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan import nearest as scan
from lloydia.backends.cpu.scan.centers import pack
from lloydia.backends.cpu.scan.framed_cache import NOT_CACHED
from lloydia.backends.cpu.scan.panel_scan import panel_scan, scratch_for
from lloydia.backends.cpu.scan.scanners import full_scanner
from lloydia.backends.cpu.simd.microkernel_low_dim import LOW_DIM, SEQUENTIAL_CENTERS
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import DEEP, LANES
from lloydia.estimators.functions import assign
from lloydia.exact.distance import squared_distances

# Numbers of features and centres, of which each scan of panels has some.
SHAPES = [
    (2, 5),
    (2, SEQUENTIAL_CENTERS + 30),
    (LOW_DIM, 40),
    (LOW_DIM + 1, 6),
    (48, 100),
    (DEEP + 9, 20),
]


@njit
def certified(square, high, low, lines, far):
    """Return whether a row with this best score and this second one is; its place is the only."""
    squares, scores = np.full(LANES, square, np.float32), np.full((2, LANES), high, np.float32)
    scores[1] = low
    names, left = np.zeros(LANES, np.int32), np.zeros(1, np.int64)
    count = scan.certify(
        1, squares, squares, scores[0], scores[1], names, 1, lines, far, names.copy(), 0, left
    )
    return count == 0


@njit
def beats(square, high, low, near):
    return high - low > 2.0 * scan.near_error(square, high, near)


def straight(task, cost, n):
    task(0, 0, n)


def between(d, k, dtype, seed=0):
    """Return centres, most of them close together and one far away, and rows between two of them.

    The rows lead by all gaps from far below the errors of near centres to above those of the
    farthest; some are as near to two as to one.
    """
    rng = np.random.default_rng(seed)
    centers = (3.0 + 2.0**-6 * rng.standard_normal((k, d))).astype(dtype)
    centers[-1] += 20.0
    n = 4000
    a, b = rng.integers(k - 1, size=(2, n))
    step = np.where(rng.random(n) < 0.1, 0.0, 2.0 ** rng.uniform(-24, 0, n))[:, None]
    X = (centers[a] * (0.5 + step) + centers[b] * (0.5 - step)).astype(dtype)
    # Centres that are there twice are never told apart by their scores.
    centers[1] = centers[0]
    return X, centers


def scanned(X, centers, near=True, rows=EVERY, old=None):
    """Return the labels, and which rows of the list are ambiguous."""
    p = pack(centers, False, straight, old)
    (n, d), k = X.shape, len(centers)
    m = len(rows) if len(rows) else n
    axes = tuple(range(d))
    shape = ((axes, k) if k <= SEQUENTIAL_CENTERS else axes) if d <= LOW_DIM else (d > DEEP or None)
    errors = p.panel_errors(indexed=not isinstance(shape, tuple))
    errors = errors if near else (*errors[:2], (np.inf,) * 4)
    labels, left = np.empty(m, np.int32), np.empty(m, np.int64)
    scratch = scratch_for(m, d, X.itemsize, False, False)
    found = panel_scan(
        X, rows, 0, m, p.scores[:2], p.frame, errors, shape, NOT_CACHED, scratch, labels, left
    )
    ambiguous = np.zeros(m, dtype=bool)
    ambiguous[left[:found]] = True
    assert ambiguous.sum() == found
    return labels, ambiguous


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("d", "k"), SHAPES)
def test_what_they_certify_is_nearest(d, k, dtype):
    X, centers = between(d, k, dtype)
    D = squared_distances(X, centers)
    two = np.sort(D, axis=1)
    labels, ambiguous = scanned(X, centers)
    assert (labels[~ambiguous] == D.argmin(axis=1)[~ambiguous]).all()
    assert ambiguous[two[:, 0] == two[:, 1]].all()
    # There are rows that only the one or only the other certifies, or neither.
    _, wide = scanned(X, centers, near=False)
    assert not (ambiguous & ~wide).any()
    assert ambiguous.any()
    assert ambiguous.sum() < 0.9 * wide.sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [3, 48])
def test_centres_as_far_from_the_origin_as_from_the_row_count_as_near(d, dtype):
    # The rows' own norms are next to nothing, and so would errors be that followed from them alone.
    rng = np.random.default_rng(0)
    half = rng.standard_normal((30, d))
    half /= np.linalg.norm(half, axis=1)[:, None]
    centers = np.concatenate([half, -half, [[40.0] * d, [-40.0] * d]]).astype(dtype)
    X = (rng.standard_normal((2000, d)) * 2.0 ** rng.uniform(-25, -5, (2000, 1))).astype(dtype)
    labels, ambiguous = scanned(X, centers)
    assert (labels == squared_distances(X, centers).argmin(axis=1))[~ambiguous].all()
    _, wide = scanned(X, centers, near=False)
    assert 0 < ambiguous.sum() < wide.sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("d", "k"), SHAPES)
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_a_few_centres_very_far_away_leave_few_rows_ambiguous(d, k, far, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, d)).astype(dtype)
    centers = X[:k].copy()
    centers[: k // 3] *= far
    labels, ambiguous = scanned(X, centers)
    assert (labels == squared_distances(X, centers).argmin(axis=1))[~ambiguous].all()
    assert ambiguous.mean() < 0.01


@pytest.mark.parametrize("far", [1e3, 1e9])
def test_an_origin_among_centres_far_away_is_not_kept(far):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 20)).astype(np.float32)
    before, centers = X[:10].copy(), X[:10].copy()
    before[:6] *= far
    centers[:2] *= far
    old = pack(before, False, straight)
    labels, ambiguous = scanned(X, centers, old=old)
    assert (labels == squared_distances(X, centers).argmin(axis=1))[~ambiguous].all()
    assert ambiguous.mean() < 0.01


def test_a_list_of_rows():
    X, centers = between(20, 30, "float32")
    rows = np.random.default_rng(1).permutation(len(X))[:999]
    labels, ambiguous = scanned(X, centers)
    listed, uncertain = scanned(X, centers, rows=rows)
    assert (uncertain == ambiguous[rows]).all()
    assert (listed == labels[rows])[~uncertain].all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("d", "k"), SHAPES)
def test_bounds_hold_for_certified_and_rechecked_rows(d, k, dtype):
    X, centers = between(d, k, dtype, seed=3)
    D = squared_distances(X, centers)
    labels, (best, second) = np.empty(len(X), np.int32), np.empty((2, len(X)))
    found = full_scanner(X, pack(centers, False, straight), False)
    assert 0 < found(EVERY, 0, len(X), labels, best, second) < len(X)
    assert (labels == D.argmin(axis=1)).all()
    two = np.sort(D, axis=1)
    assert (best >= two[:, 0] * (1 - 1e-12)).all()
    assert (second <= two[:, 1] * (1 + 1e-12)).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 9, 60])
def test_all_algorithms_answer_as_the_reference(d, dtype):
    X, centers = between(d, 60, dtype)
    X = X[:1500]
    oracle = assign(X, centers, device="reference")
    labels, inertia = assign(X, centers)
    assert (labels == oracle[0]).all()
    assert inertia == oracle[1]
    of = {"n_clusters": 60, "init": centers, "n_init": 1, "max_iter": 4, "tol": 0.0}
    right = KMeans(**of, device="reference").fit(X)
    for name in ALGORITHMS:
        found = KMeans(**of, algorithm=name).fit(X)
        assert (found.labels_ == right.labels_).all(), name
        assert (found.cluster_centers_ == right.cluster_centers_).all(), name
        assert found.inertia_ == right.inertia_, name


def test_what_is_not_a_number_proves_nothing():
    near = (1e-30, 1e-6, 1e-5, 1.0 + 1e-5)
    assert beats(1.0, 0.5, 0.4, near)
    for bad in (np.nan, np.inf):
        assert not beats(bad, 0.5, 0.4, near)
        for i in range(4):
            assert not beats(1.0, 0.5, 0.4, (*near[:i], bad, *near[i + 1 :]))
        assert not beats(1.0, 0.5, 0.4, (bad,) * 4)
        assert not beats(0.0, 1.0, 0.0, (bad,) * 4)
    assert not beats(1.0, np.nan, 0.4, near)
    assert not beats(1.0, 0.5, np.nan, near)


def test_rows_far_away_are_never_certified():
    wide, near = (1e-6, 1e-12, 0.0), (1e-30, 1e-12, 1e-12, 1.0 + 1e-12)
    none = (np.inf, 0.0, 0.0), (np.inf,) * 4
    for lines in ((wide, near), (wide, none[1]), (none[0], near)):
        for far in (2.0**10, 2.0**30):
            assert certified(far * 0.99, far, 0.0, lines, far)
            assert not certified(far * 0.99, far, far, lines, far)
            for square in (far, 2.0 * far, np.inf, np.nan):
                assert not certified(square, far, 0.0, lines, far)
    assert not certified(1.0, 1.0, 0.0, none, 2.0**10)
