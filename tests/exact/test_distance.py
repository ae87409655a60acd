from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydia.exact import distance
from nasty import nasty_rows


def exact_square(x: np.ndarray, c: np.ndarray) -> Fraction:
    return sum(((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(x, c)), Fraction(0))


def one_by_one(x: np.ndarray, c: np.ndarray) -> float:
    total = 0.0
    for a, b in zip(x.tolist(), c.tolist()):
        total += (a - b) * (a - b)
    return total


@given(nasty_rows(), st.data())
@settings(deadline=None, max_examples=150)
def test_distance_is_the_sum_in_feature_order(X, data):
    C = X[data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=5))]
    D = distance.squared_distances(X, C)
    expected = [[one_by_one(x, c) for c in C] for x in X]
    assert D.tolist() == expected
    labels = np.array([data.draw(st.integers(0, len(C) - 1)) for _ in X])
    own = distance.own_distances(X, labels, C)
    assert own.tolist() == [row[label] for row, label in zip(expected, labels)]


@pytest.mark.parametrize("shape", [(40, 3, 2), (3, 40, 2), (3, 40, 60), (1, 2, 2), (2, 1, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_rows_of_many_features_are_summed_in_the_same_order(shape, dtype):
    n, d, k = shape
    X = np.exp(3 * np.random.default_rng(0).normal(size=(n + k, d))).astype(dtype)
    X, C = X[:n], X[n:]
    D = [[one_by_one(x, c) for c in C] for x in X]
    assert distance.squared_distances(X, C).tolist() == D
    assert distance.squared_distances(np.asfortranarray(X), C).tolist() == D
    assert distance.own_distances(X, np.full(n, k - 1), C).tolist() == [row[-1] for row in D]


@given(nasty_rows(), st.data())
@settings(deadline=None, max_examples=150)
def test_distance_is_within_its_relative_error(X, data):
    C = X[data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=3))]
    D = distance.squared_distances(X, C)
    bound = Fraction(distance.relative_error(X.shape[1]))
    underflow = Fraction(2) ** -1074 * X.shape[1]
    for i, x in enumerate(X):
        for j, c in enumerate(C):
            true = exact_square(x, c)
            assert abs(Fraction(float(D[i, j])) - true) <= bound * true + underflow


def test_ties_go_to_the_lowest_index():
    X = np.array([[0.0, 0.0], [1.0, 0.0]])
    C = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    labels, D = distance.nearest(X, C)
    assert labels.tolist() == [0, 0]
    assert labels.dtype == np.int32
    assert D.tolist() == [1.0, 0.0]


def test_movement_adds_in_the_order_of_the_centres():
    old = np.array([[0.0], [0.0], [0.0]])
    new = np.array([[1e8], [1.0], [1.0]])
    shift, move = distance.movement(old, new)
    assert shift == (1e16 + 1.0) + 1.0
    assert move == 1e8


@pytest.mark.parametrize("largest", [1e154, np.inf])
def test_magnitudes_that_overflow_are_refused(largest):
    with pytest.raises(ValueError, match=r"magnitude .* overflow float64 above .*; rescale"):
        distance.check_magnitudes(largest, (), 2)


def test_magnitudes_up_to_the_stated_limit_are_fine():
    distance.check_magnitudes(1e140, np.array([[1e149]]), 1000, 1e6)
    X = np.array([[3e153, -3e153]])
    distance.check_magnitudes(3e153, (), 2)
    assert np.isfinite(distance.squared_distances(X, -X)).all()


def test_centres_count_among_the_magnitudes():
    with pytest.raises(ValueError, match=r"1e\+160"):
        distance.check_magnitudes(1.0, np.array([[1e160, 0.0]]), 2)
