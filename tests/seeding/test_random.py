from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from lloydia.backends import choose
from lloydia.seeding.random import random, uniform_choice
from lloydia.seeding.running_sums import RunningSums


def sums_of(term, count):
    return np.cumsum(np.full(count, term))


@pytest.mark.parametrize(
    "counts",
    [
        range(1, 400),
        [2**j + e for j in range(9, 21) for e in (-1, 0, 1)],
        [10**5, 999_983, 10**6, 3_141_592],
    ],
)
def test_running_sums_of_reciprocals_are_those_of_numpy(counts):
    for n in counts:
        assert (RunningSums(1 / n, n).at(np.arange(1, n + 1)) == sums_of(1 / n, n)).all()


@pytest.mark.parametrize("significand", [1, 2, 3, 511, 512, 2**52 - 2, 2**52 - 1])
def test_running_sums_that_lie_halfway_between_two_numbers(significand):
    # The last bits of the term are soon half of the distance of two neighbouring sums, or less.
    term, count = 2.0**52 + significand, 50_000
    assert (RunningSums(term, count).at(np.arange(1, count + 1)) == sums_of(term, count)).all()


def test_running_sums_of_random_terms():
    rng = np.random.default_rng(0)
    for _ in range(200):
        term = float(rng.random() * 2.0 ** rng.integers(-60, 60))
        count = int(rng.integers(1, 5000))
        assert (RunningSums(term, count).at(np.arange(1, count + 1)) == sums_of(term, count)).all()


def test_fractions_that_are_running_sums_go_to_the_next():
    n = 1000
    sums, total = sums_of(1 / n, n), sums_of(1 / n, n)[-1]
    fractions = np.concatenate([[0.0], (sums / total)[:-1]])
    below, above = (np.nextafter(fractions[1:], to) for to in (0.0, 1.0))
    found = RunningSums(1 / n, n)
    assert found.first_above(fractions, n).tolist() == list(range(1, n + 1))
    assert found.first_above(below, n).tolist() == list(range(1, n))
    assert found.first_above(above, n).tolist() == list(range(2, n + 1))


def agree(n, size, seed):
    ours, theirs = np.random.RandomState(seed), np.random.RandomState(seed)
    expected = theirs.choice(n, size, replace=False, p=np.ones(n) / np.ones(n).sum())
    rows = uniform_choice(n, size, ours)
    assert rows.dtype == np.int64
    assert rows.tolist() == expected.tolist()
    # As many random numbers were drawn.
    assert ours.random_sample() == theirs.random_sample()


def test_every_size_of_a_small_choice():
    for n in range(1, 31):
        for size in range(1, n + 1):
            agree(n, size, 100 * n + size)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.9, 1.0])
def test_choices_of_a_share_of_the_rows(share):
    # The larger the share, the more rows are drawn twice, and the more often NumPy draws again.
    rng = np.random.default_rng(0)
    for seed in range(40):
        n = int(10 ** rng.uniform(0, 4.3))
        agree(n, max(1, int(share * n)), seed)


@pytest.mark.parametrize(("n", "size"), [(10**6, 1), (10**6, 3000), (10**7, 16), (10**7, 5000)])
def test_choices_of_many_rows(n, size):
    agree(n, size, size)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_weights_of_one_draw_the_rows_of_no_weights(device, convert):
    X = convert(np.random.default_rng(0).normal(size=(300, 2)))
    for k in (1, 7, 299, 300, 310):
        with_weights, without = (
            random(choose(device, X, weights, 2), k, np.random.RandomState(k))
            for weights in (np.ones(300), None)
        )
        assert with_weights.tolist() == without.tolist()
        assert len(without) == k
