"""Cells: few of them here, so that many have several names, or too many."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from lloydia.backends.cuda.low_dim import run as low_run
from lloydia.backends.cuda.low_dim.cells import sides_of
from table import answer


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize(
    ("d", "k", "sides", "spread"),
    [
        (1, 40, 128, "far"),
        (1, 40, 128, "outside"),
        (1, 40, 128, "grid"),
        (2, 36, 16, "normal"),
        (2, 36, 16, "grid"),
    ],
)
def test_rows_that_look_up_their_centers_have_the_bits_of_the_oracle(
    d, k, sides, spread, monkeypatch
):
    monkeypatch.setattr(low_run, "sides_of", lambda n, d, k: sides)
    rng = np.random.default_rng(d)
    X = rng.normal(scale=4.0, size=(4 * sides**d, d))
    if spread == "grid":
        X = np.rint(X)
    if spread == "outside":
        # Rows far outside of all cells.
        X[::20] *= 1000
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


def test_rows_whose_sums_are_tables_have_the_bits_of_the_oracle(tables, monkeypatch):
    monkeypatch.setattr(low_run, "sides_of", lambda n, d, k: 16)
    tables(True)
    X = np.rint(np.random.default_rng(3).normal(scale=4.0, size=(1500, 2)))
    # What leaves limbs that a table does not hold.
    X[::90] *= 2.0**-70
    parameters = {"init": X[:40], "max_iter": 2, "tol": 0}
    oracle = KMeans(40, device="reference", **parameters).fit(X)
    assert answer(KMeans(40, device="cuda", **parameters).fit(X)) == answer(oracle)


@pytest.mark.parametrize(("n", "d", "k", "sides"), [
    (10**9, 2, 32, 0), (10**6, 2, 33, 128), (10**6, 3, 100, 0), (10**6, 2, 1000, 512),
    # Scores, not rows, are to be many for each cell.
    (167_772, 2, 1000, 0), (167_773, 2, 1000, 512), (419_430, 2, 100, 0), (419_431, 2, 100, 256),
    (10**6, 1, 100, 8192), (10**9, 2, 0xFFFF, 4096), (10**9, 2, 0x10000, 0),
])  # fmt: skip
def test_where_cells_pay(n, d, k, sides):
    assert sides_of(n, d, k) == sides


def test_most_rows_are_certain(monkeypatch):
    monkeypatch.setattr(low_run, "sides_of", lambda n, d, k: 1024)
    X = np.random.default_rng(0).normal(size=(4096, 1)).astype("float32")
    model = KMeans(40, init=X[:40], max_iter=1, tol=0, device="cuda").fit(X)
    # Of two assignments.
    assert 0 < model.n_rechecked_ < 0.05 * len(X)
