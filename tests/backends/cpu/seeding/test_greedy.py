"""k-means++ in one call against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lloydia.backends import choose
from lloydia.backends.cpu.seeding import greedy
from lloydia.backends.cpu.seeding.greedy import MAX_ROWS, fraction_of
from lloydia.backends.cpu.seeding.weights import TILE
from lloydia.exact import sums as exact
from lloydia.seeding.plusplus import plusplus
from nasty import FLAVOURS, nasty_rows, nasty_weights, rows_of


def rows_of_plusplus(device, X, weights, k, seed):
    return plusplus(choose(device, X, weights, 2), k, np.random.RandomState(seed)).tolist()


@given(st.integers(0, 2**53 - 1), st.integers(0, 2**62))
@example(2**53 - 1, 2**62)
@example(2**32, 2**32 - 1)
def test_a_fraction_of_a_total_is_exact(numerator, total):
    u = numerator * 2.0**-53
    assert fraction_of.py_func(u, total) == exact.fraction_of(u, total)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_flavour_gives_the_rows_of_the_oracle(flavour, dtype):
    for n, d, k in ((TILE, 1, 3), (TILE + 1, 3, 30), (3 * TILE - 1, 8, 12)):
        X = rows_of(flavour, n, d, dtype, seed=d)
        weights = 10.0 ** np.random.default_rng(d).uniform(-6, 6, size=n) if d == 3 else None
        assert rows_of_plusplus("cpu", X, weights, k, d) == rows_of_plusplus(
            "reference", X, weights, k, d
        )


@given(nasty_rows(most=30, features=3), st.data())
@settings(deadline=None, max_examples=150)
def test_nasty_rows_give_those_of_the_oracle(X, data):
    weights = data.draw(nasty_weights(len(X)))
    k, seed = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 1000))
    assert rows_of_plusplus("cpu", X, weights, k, seed) == rows_of_plusplus(
        "reference", X, weights, k, seed
    )


def test_few_rows_of_few_features_take_one_call_and_others_do_not(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "lloydia.backends.cpu.seeding.seeder.greedy_of",
        lambda d: calls.append(d) or greedy.greedy_of(d),
    )
    for n, d in ((MAX_ROWS, 2), (MAX_ROWS + 1, 2), (300, 9)):
        rows_of_plusplus("cpu", np.random.default_rng(0).random((n, d)), None, 3, 0)
    assert calls == [2]
