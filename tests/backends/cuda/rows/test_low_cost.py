"""The inertia of rows of few features, whether its grid was guessed or not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends import choose
from lloydia.backends.cuda.rows.low_cost import low_cost
from lloydia.backends.cuda.runtime.launching import place
from lloydia.exact import sums


def plain(rng, n):
    return rng.normal(size=(n, 2))


def far_at_the_end(rng, n):
    """Return rows whose largest term is far beyond what the first rows let expect."""
    X = plain(rng, n)
    X[-1] *= 1e6
    return X


def nearly_at_the_center(rng, n):
    """Return rows one of which has a term far below the last place of the guessed grid."""
    X = plain(rng, n)
    X[0] = 0.0
    X[-1] = 1e-40
    return X


def of_all_sizes(rng, n):
    return plain(rng, n) * 10.0 ** rng.uniform(-140, 140, size=(n, 1))


def the_same(rng, n):
    return np.ones((n, 2))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 600, 2000])
@pytest.mark.parametrize(
    "make", [plain, far_at_the_end, nearly_at_the_center, of_all_sizes, the_same]
)
def test_the_inertia_is_that_of_the_oracle(make, n, weighted):
    rng = np.random.default_rng(n)
    X = make(rng, n)
    weights = rng.random(n) if weighted else None
    engine = choose("cuda", X, weights, None)
    there = place("cuda")
    labels = torch.zeros(n, dtype=torch.int32, device=there)
    center = torch.as_tensor(X[:1].copy(), device=there)
    terms = (X[:, 0] - X[0, 0]) ** 2 + (X[:, 1] - X[0, 1]) ** 2
    expected = sums.total(terms if weights is None else weights * terms)
    assert float(low_cost(engine.data, labels, center, engine.data.weights)) == expected
