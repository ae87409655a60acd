"""Moves of rows between clusters against the plain sums of exact.sums, in any layout."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends.cpu.clusters import Clusters
from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.update import sums
from lloydia.backends.cpu.update.sums import accumulate
from lloydia.exact import sums as exact
from lloydia.exact.sums import join, total, total_grid

N, K = 150, 4


def laid_out(X, layout):
    if layout == "C":
        return X
    wide = np.zeros((2 * len(X), 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def clusters_of(d, dtype, layout, weighted):
    rng = np.random.default_rng(d)
    # Magnitudes far apart: several limbs, and rows whose first ones are 0.
    X = (rng.standard_normal((N, d)) * 10.0 ** rng.integers(-9, 9, size=(N, d))).astype(dtype)
    weights = rng.random(N) if weighted else None
    clusters = Clusters(Dataset(laid_out(X, layout), weights, 1))
    clusters.begin(K)
    return clusters


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", ["C", "strided"])
@pytest.mark.parametrize(
    ("d", "dtype"),
    [(1, "float32"), (7, "float64"), (8, "float32"), (9, "float64"), (17, "float32")],
)
def test_rows_are_added_and_taken_away_exactly(d, dtype, layout, weighted):
    clusters = clusters_of(d, dtype, layout, weighted)
    dataset = clusters.dataset
    assert dataset.grid.n_limbs > 1
    rng = np.random.default_rng(1)
    labels = np.full(N, -1, dtype=np.int32)
    some = np.flatnonzero(rng.random(N) < 0.5)
    for rows in (EVERY, some, EVERY):
        fresh = rng.integers(K, size=len(rows) or N).astype(np.int32)
        listed = rows if len(rows) else np.arange(N)
        n_changed = (labels[listed] != fresh).sum()
        assert n_changed == accumulate(
            dataset.X, rows, 0, len(fresh), dataset.scaled_weights, dataset.fixed_point_grid,
            fresh, labels, clusters.sums[0], clusters.touched[0],
        )  # fmt: skip
        assert (labels[listed] == fresh).all()
        expected = exact.accumulate(dataset.limbs(np.arange(N)), labels, K)
        assert (clusters.integers() == expected).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_limbs_of_a_total_are_the_definitions(weighted):
    rng = np.random.default_rng(0)
    D, w = rng.exponential(size=999) * 2.0 ** rng.integers(-60, 20, 999), rng.random(999)
    values = w * D if weighted else D
    bits, exponent = total_grid(len(D), float(values.max()))
    limbs = np.zeros(3, dtype=np.int64)
    weights = w if weighted else np.empty(0)
    sums.total_terms(D, weights, 0, 999, 2.0**-exponent, 1.0, 2.0**bits, limbs)
    assert join(limbs.tolist(), bits, exponent) == total(values)
