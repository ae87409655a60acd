"""One step of mini-batch k-means, against arithmetic without rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lloydia.backends import choose
from lloydia.exact import distance
from lloydia.loop.minibatch_step import Centers, Draw, Smoothed, reassigned, stepped
from table import blobs, weights_of


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighting", ["none", "wide"])
def test_centres_are_the_means_of_all_they_have_seen(dtype, weighting):
    X, weights = blobs(60, 3, dtype), weights_of(weighting, 60)
    old = Centers(X[:5] + dtype_of(0.1, dtype), np.array([0.0, 3.0, 1e6, 0.5, 7.0]))
    old.values[0] = 1e3  # so far away that no row is near it
    engine = choose("cpu", X, weights, 1)
    new, inertia = stepped(engine, weights, old)
    labels, D = distance.nearest(X, old.values)
    w = np.ones(60) if weights is None else weights
    assert inertia == pytest.approx((w * D).sum(), rel=1e-14)
    assert (new.values[0] == old.values[0]).all()
    assert new.counts[0] == 0
    for j in range(1, 5):
        mine = np.flatnonzero(labels == j)
        seen = Fraction(old.counts[j]) + sum(Fraction(x) for x in w[mine].tolist())
        assert new.counts[j] == pytest.approx(float(seen), rel=1e-14)
        for f in range(3):
            terms = [Fraction(w[i]) * Fraction(float(X[i, f])) for i in mine.tolist()]
            start = Fraction(old.counts[j]) * Fraction(float(old.values[j, f]))
            exact = (start + sum(terms)) / seen
            size = float(max(abs(start), *map(abs, terms)) / seen)
            assert abs(float(new.values[j, f]) - float(exact)) <= 4 * np.finfo(dtype).eps * max(
                size, abs(float(exact))
            )


def dtype_of(value, dtype):
    return np.dtype(dtype).type(value)


def test_a_centre_of_nothing_becomes_the_mean_of_its_batch_wherever_it_was():
    X = np.array([[1.0], [2.0], [4.5]])
    new, _ = stepped(choose("cpu", X, None, 1), None, Centers(np.array([[1e140]]), np.zeros(1)))
    assert new.values.tolist() == [[2.5]]
    assert new.counts.tolist() == [3.0]


def test_rows_are_drawn_by_their_weights():
    weights = np.array([0.0, 1.0, 0.0, 3.0, 0.0])
    rows = Draw(5, weights).rows(np.array([0.0, 0.2499, 0.25, 0.999, 1 - 2.0**-53]))
    assert rows.tolist() == [1, 1, 3, 3, 3]
    fractions = np.random.RandomState(0).random_sample(100_000)
    shares = np.bincount(Draw(5, np.arange(5.0)).rows(fractions)) / 1e5
    np.testing.assert_allclose(shares, np.arange(5) / 10, atol=0.005)


@pytest.mark.parametrize("n", [1, 3, 7, 2**20 - 1, 2**31 + 3])
def test_rows_are_drawn_without_weights(n):
    fractions = np.array([0.0, 0.5, 1 - 2.0**-53])
    assert Draw(n, None).rows(fractions).tolist() == [0, n // 2, n - 1]


def test_rows_are_those_that_scikit_learn_draws():
    weights = np.random.default_rng(0).random(1000)
    theirs = np.random.RandomState(1).choice(1000, 500, p=weights / weights.sum())
    ours = Draw(1000, weights).rows(np.random.RandomState(1).random_sample(500))
    assert (ours == theirs).all()


def case(counts, ratio, weights=None, seed=0):
    X = np.arange(10.0)[:, None] + 100
    centers = Centers(np.zeros((len(counts), 1)), np.array(counts))
    engine = choose("cpu", X, weights, 1)
    return reassigned(engine, weights, centers, ratio, np.random.RandomState(seed))


def test_centres_of_few_rows_are_moved():
    new, moved = case([100.0, 0.5, 30.0, 0.0], 0.01)
    assert moved == 2
    assert (new.values[[0, 2]] == 0).all()
    assert len(np.unique(new.values[[1, 3]])) == 2
    assert (new.values[[1, 3]] >= 100).all()
    assert new.counts.tolist() == [100.0, 30.0, 30.0, 30.0]


def test_at_most_half_as_many_as_there_are_rows_are_moved_the_least_first():
    new, moved = case([9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0], 10.0)
    assert moved == 5
    assert np.flatnonzero(new.values[:, 0]).tolist() == [1, 3, 5, 7, 8]
    assert new.counts.min() == 6.0


def test_no_centre_is_moved_without_need_and_never_all():
    assert case([5.0, 5.0], 0.5)[1] == 0
    assert case([5.0, 0.0], 0.0)[1] == 0
    assert case([5.0, 5.0], 7.0)[1] == 0


def test_rows_of_weight_0_become_no_centres():
    weights = np.zeros(10)
    weights[[2, 6]] = 1.0
    for seed in range(20):
        new, moved = case([5.0, 0.0], 0.1, weights, seed)
        assert moved == 1
        assert new.values[1, 0] in (102.0, 106.0)


def test_the_smoothed_inertia_forgets_by_the_share_of_a_batch():
    smoothed = Smoothed(0.25)
    for value, expected, since in ((8.0, 8.0, 0), (4.0, 6.0, 0), (8.0, 7.0, 1), (7.0, 7.0, 2)):
        smoothed.add(value)
        assert (smoothed.value, smoothed.since) == (expected, since)
    whole = Smoothed(1.0)
    for value in (8.0, 4.0):
        whole.add(value)
    assert whole.value == 4.0
