"""Rows of few features: tables of one, four and eight columns, more tiles than programs."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from table import answer, weights_of


def rows(n, d, dtype, spread):
    """Return rows of whole numbers, many of which tie, or of any."""
    X = np.random.default_rng(d).normal(scale=4.0, size=(n, d))
    return (np.rint(X) if spread == "grid" else X).astype(dtype)


@pytest.mark.parametrize("spread", ["grid", "normal"])
@pytest.mark.parametrize(
    ("d", "k", "dtype"),
    [(1, 20, "float32"), (2, 70, "float32"), (3, 17, "float64"), (8, 50, "float32")],
)
def test_any_number_of_columns_gives_the_bits_of_the_oracle(d, k, dtype, spread):
    X = rows(600, d, dtype, spread)
    start = X[np.random.default_rng(0).choice(len(X), k, replace=False)]
    parameters = {"init": start, "max_iter": 3, "tol": 0}
    oracle = KMeans(k, device="reference", **parameters).fit(X)
    model = KMeans(k, device="cuda", **parameters).fit(X)
    assert answer(model) == answer(oracle)
    assert (model.predict(X) == model.labels_).all()


@pytest.mark.parametrize("kind", ["none", "wide"])
@pytest.mark.parametrize(("d", "k", "dtype"), [(2, 6, "float64"), (3, 40, "float32")])
def test_listed_rows_move_with_their_weights(d, k, dtype, kind):
    X = rows(700, d, dtype, "normal")
    parameters = {"init": X[:k].copy(), "max_iter": 4, "tol": 0}
    weights = weights_of(kind, len(X))
    oracle = KMeans(k, device="reference", **parameters).fit(X, sample_weight=weights)
    model = KMeans(k, device="cuda", **parameters).fit(X, sample_weight=weights)
    assert answer(model) == answer(oracle)
