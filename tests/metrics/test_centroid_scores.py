from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics

from lloydia.metrics import calinski_harabasz_score, davies_bouldin_score

PAIRS = [
    (calinski_harabasz_score, sklearn.metrics.calinski_harabasz_score),
    (davies_bouldin_score, sklearn.metrics.davies_bouldin_score),
]
SHAPES = [(3, 1, 2), (20, 2, 19), (200, 16, 7), (257, 33, 100), (3000, 2, 3), (50, 300, 4)]


def data(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.concatenate([np.arange(k), rng.integers(0, k, n - k)]))
    return rng.normal(size=(n, d)) + 3 * rng.normal(size=(k, d))[labels], labels


def definitions(X, labels):
    """Both scores in extended precision."""
    X = X.astype(np.longdouble)
    groups = [X[labels == label] for label in np.unique(labels)]
    n, k = len(X), len(groups)
    centroids = np.array([rows.mean(axis=0) for rows in groups])
    gaps = [rows - centroid for rows, centroid in zip(groups, centroids)]
    within = sum((gap**2).sum() for gap in gaps)
    between = sum(
        len(rows) * ((centroid - X.mean(axis=0)) ** 2).sum()
        for rows, centroid in zip(groups, centroids)
    )
    spread = [np.sqrt((gap**2).sum(axis=1)).mean() for gap in gaps]
    similar = [
        max(
            (spread[i] + spread[j]) / np.sqrt(((centroids[i] - centroids[j]) ** 2).sum())
            for j in range(k)
            if j != i
        )
        for i in range(k)
    ]
    return float(between / (k - 1) / (within / (n - k))), float(np.mean(similar))


# Without singletons: their distance from their own centroid is 0, but scikit-learn, which expands
# the square, finds up to 1e-8 of their norm.
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize(
    "shape", [(60, 1, 2), (200, 16, 7), (500, 33, 40), (3000, 2, 3), (50, 300, 4)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_scikit_learn_in_float64(ours, theirs, shape, dtype):
    X, labels = data(*shape)
    X = (X * 16).astype(dtype)
    assert ours(X, labels) == pytest.approx(theirs(X.astype(np.float64), labels), rel=1e-12)


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="no floating point wider than float64 here"
)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_offset_costs_no_digits(shape, dtype):
    X, labels = data(*shape)
    X = (X + 1e3).astype(dtype)
    calinski_harabasz, davies_bouldin = definitions(X, labels)
    assert calinski_harabasz_score(X, labels) == pytest.approx(calinski_harabasz, rel=1e-12)
    assert davies_bouldin_score(X, labels) == pytest.approx(davies_bouldin, rel=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize(
    ("X", "labels"),
    [
        (np.zeros((4, 2)), [0, 0, 1, 1]),  # nothing varies
        ([[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1]),  # nothing varies within a cluster
        ([[-1.0], [1.0], [-1.0], [1.0]], [0, 0, 1, 1]),  # the centroids coincide
        ([[-1.0], [1.0], [-2.0], [2.0], [9.0]], [0, 0, 1, 1, 2]),  # two of three coincide
        ([[0.0], [1e-9], [5e-9], [6e-9]], [0, 0, 1, 1]),  # below the tolerance for zero
    ],
)
def test_degenerate_data(ours, theirs, X, labels):
    assert ours(X, labels) == pytest.approx(theirs(X, labels), rel=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_labels_of_any_kind(ours, theirs):
    X, labels = data(60, 3, 4)
    names = np.array(["w", "x", "y", "z"])[labels]
    for same in (labels - 7, names, list(names)):
        assert ours(X, same) == ours(X, labels)
