"""Cells: few of them here, so that many have several names, or too many."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from lloydia.backends.cuda import low_run
from table import answer


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize(
    ("d", "k", "sides", "spread"),
    [(1, 40, 128, "far"), (1, 40, 128, "grid"), (2, 36, 16, "normal"), (2, 36, 16, "grid")],
)
def test_rows_that_look_up_their_centers_have_the_bits_of_the_oracle(
    d, k, sides, spread, monkeypatch
):
    monkeypatch.setattr(low_run, "sides_of", lambda n, d, k: sides)
    rng = np.random.default_rng(d)
    X = rng.normal(scale=4.0, size=(4 * sides**d, d))
    if spread == "grid":
        X = np.rint(X)
    X = X.astype("float32")
    start = X[rng.choice(len(X), k, replace=False)]
    if spread == "far":
        # A cluster that no row is near, far outside of all cells.
        start[0] = 1e4
    parameters = {"init": start, "max_iter": 1, "tol": 0}
    oracle = KMeans(k, device="reference", **parameters).fit(X)
    model = KMeans(k, device="cuda", **parameters).fit(X)
    assert answer(model) == answer(oracle)
    assert (model.predict(X) == model.labels_).all()


def test_most_rows_are_certain(monkeypatch):
    monkeypatch.setattr(low_run, "sides_of", lambda n, d, k: 1024)
    X = np.random.default_rng(0).normal(size=(4096, 1)).astype("float32")
    model = KMeans(40, init=X[:40], max_iter=1, tol=0, device="cuda").fit(X)
    # Of two assignments.
    assert 0 < model.n_rechecked_ < 0.05 * len(X)
