"""Centroids and rows that are equal, or nearly, judged by exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydia.metrics import calinski_harabasz_score, coincidence, davies_bouldin_score
from lloydia.metrics.coincidence import ExactCentroids, exact_sum


def root(value):
    """Return the square root of a fraction to more than 53 bits."""
    scale = 1 << 400
    return Fraction(math.isqrt(int(value * scale * scale)), scale)


def exact_scores(X, labels):
    """Return the scores by their definitions in rational numbers."""
    rows = [[Fraction(float(x)) for x in row] for row in np.asarray(X)]
    groups = [[row for row, label in zip(rows, labels) if label == j] for j in sorted(set(labels))]
    means = [[sum(x) / len(group) for x in zip(*group)] for group in groups]
    whole = [sum(x) / len(rows) for x in zip(*rows)]

    def square(a, b):
        return sum((x - y) ** 2 for x, y in zip(a, b))

    within = sum(square(row, mean) for group, mean in zip(groups, means) for row in group)
    between = sum(len(group) * square(mean, whole) for group, mean in zip(groups, means))
    n, k = len(rows), len(groups)
    ratio = Fraction(1) if within == 0 else between * (n - k) / (within * (k - 1))
    spread = [
        sum(root(square(row, mean)) for row in group) / len(group)
        for group, mean in zip(groups, means)
    ]
    apart = [[square(a, b) for b in means] for a in means]
    tiny = Fraction(1, 10**8)
    if max(spread) <= tiny or root(max(map(max, apart))) <= tiny:
        return float(ratio), 0.0
    similar = [
        max((spread[i] + spread[j]) / root(apart[i][j]) if apart[i][j] else 0 for j in range(k))
        for i in range(k)
    ]
    return float(ratio), float(sum(similar) / k)


def check(X, labels, rel=1e-12):
    ratio, similar = exact_scores(X, labels)
    assert davies_bouldin_score(X, labels) == pytest.approx(similar, rel=rel)
    assert calinski_harabasz_score(X, labels) == pytest.approx(ratio, rel=rel, abs=1e-20)


PAIRS = {
    "issue": ([[0.0], [2], [-1], [3], [9], [10]], [0, 0, 1, 1, 2, 2]),
    "tenths": ([[0.1], [0.5], [0.2], [0.4], [9.7], [0.9]], [0, 0, 1, 1, 2, 2]),
    "three to two": ([[0.0], [3], [6], [2], [4], [9.1], [7.3]], [0, 0, 0, 1, 1, 2, 2]),
    "all the same": ([[0.0, 1], [2, 7], [-1, 3], [3, 5], [1, 4], [1, 4]], [0, 0, 1, 1, 2, 2]),
    "an ulp apart": ([[0.0], [2], [-1], [3 + 2**-51], [9], [10]], [0, 0, 1, 1, 2, 2]),
    "1e-9 apart": ([[0.0], [2], [-1], [3 + 2e-9], [9], [10]], [0, 0, 1, 1, 2, 2]),
    "one feature": ([[0.0, 5], [2, 5], [-1, 5], [3, 6], [9, 7], [10, 1]], [0, 0, 1, 1, 2, 2]),
    "subnormal": ([[0.0], [2e-310], [-1e-310], [3e-310], [9], [10]], [0, 0, 1, 1, 2, 2]),
}


@pytest.mark.parametrize("offset", [0.0, 0.1, -3.7, 1e6, 2.0**40])
@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_centroids_that_coincide_or_nearly(case, offset, dtype):
    X, labels = PAIRS[case]
    X = (np.array(X) + offset).astype(dtype)
    check(X, labels)


def test_the_pair_of_the_same_centroid_is_left_out():
    X, labels = PAIRS["issue"]
    assert davies_bouldin_score(X, labels) == pytest.approx(0.2549019607843137, rel=1e-15)


@pytest.mark.parametrize("n", [1000, 100_000])
def test_many_rows_of_the_same_centroid(n):
    half = np.random.default_rng(0).normal(size=(n, 2)) + 0.3
    mirrored = 2.5 - half
    apart = np.random.default_rng(1).normal(size=(n, 2)) + 40
    # Both have exactly the centroid (1.25, 1.25), where 2.5 - x is exact: take such rows only.
    half = half[(2.5 - mirrored == half).all(axis=1)]
    X = np.vstack([half, 2.5 - half, np.full((2, 2), 1.25), apart])
    labels = np.repeat([0, 1, 2], [2 * len(half), 2, n])
    rows = [X[labels == j] for j in range(3)]
    assert ExactCentroids(lambda j: rows[j], (3, 2)).distance(0, 1) == 0.0
    assert davies_bouldin_score(X, labels) < 1


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-20, 1e9 + 0.1])
def test_rows_that_lie_on_their_centroids(value):
    X = np.array([[value]] * 3 + [[value + 1]] * 7 + [[value * 3 + 2]] * 6)
    labels = np.repeat([0, 1, 2], [3, 7, 6])
    assert calinski_harabasz_score(X, labels) == 1.0
    assert davies_bouldin_score(X, labels) == 0.0


def test_rows_that_only_nearly_lie_on_their_centroids():
    for near in ([1e-20, 2e-20], [1e-17, 9e-17], [-1e-140, 1e-140]):
        X = [[near[0]], [near[1]], [1.0], [1.0], [2.0], [2.0]]
        check(X[:4], [0, 0, 1, 1])
        check(X, [0, 0, 1, 1, 2, 2])


NUMBERS = st.one_of(
    st.integers(-4, 4).map(float),
    st.sampled_from([0.1, 0.2, 0.3, 1 / 3, 1e-9, 1e-16, 1e6, 1e6 + 0.1, 5e-324]),
    st.floats(-1e3, 1e3),
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=6, max_size=9))
def test_davies_bouldin_of_anything(rows):
    labels = [0, 1, 2, 0, 1, 2, 0, 1, 1][: len(rows)]
    _, similar = exact_scores(rows, labels)
    found = davies_bouldin_score(np.array(rows), labels)
    assert found == pytest.approx(similar, rel=1e-9, abs=1e-300)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=30))
def test_exact_sums(values):
    found = Fraction(exact_sum(np.array(values, dtype=float)), 1 << 1074)
    assert found == sum(map(Fraction, values))


@given(
    st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=5),
    st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=5),
)
def test_exact_distances(one, other):
    rows = [np.array(one)[:, None], np.array(other)[:, None]]
    gap = sum(map(Fraction, one)) / len(one) - sum(map(Fraction, other)) / len(other)
    assert ExactCentroids(lambda j: rows[j], (2, 1)).distances(0, [1])[0] == pytest.approx(
        float(abs(gap)), rel=1e-15
    )


def test_centroids_far_from_the_origin_of_all_rows():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(40, 2))
    X = np.repeat(centers, 3, axis=0) + rng.normal(size=(120, 2)) / 100
    labels = np.repeat(np.arange(40), 3)
    # One cluster far away takes the mean of all rows with it.
    X = np.vstack([X, np.add(1e13, [[0.0] * 2, [1] * 2, [2] * 2])])
    check(X, [*labels.tolist(), 40, 40, 40])


def test_centroids_that_lie_apart_need_no_exact_sums(monkeypatch):
    X, labels = PAIRS["issue"]
    asked = []
    monkeypatch.setattr(coincidence, "exact_sum", lambda x: asked.append(len(x)) or exact_sum(x))
    davies_bouldin_score([[0.0], [2], [5], [6], [9], [10]], labels)
    assert asked == []
    davies_bouldin_score(X, labels)
    assert asked == [2, 2]
