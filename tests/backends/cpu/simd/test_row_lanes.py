"""Each row's D to a centre of its own, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends.cpu.rows.distances import own_distances
from lloydia.backends.cpu.simd.row_lanes import LANES
from lloydia.exact.distance import squared_distances

K = 5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["rows", "columns", "apart"])
@pytest.mark.parametrize("d", [1, 8, 21, 64])
def test_distances_are_the_definitions(d, layout, dtype):
    rng = np.random.default_rng(d)
    n = 2 * LANES + 3
    X = rng.normal(size=(n, d)) * np.ldexp(1.0, rng.integers(-20, 20, (n, d)))
    X = {"rows": X, "columns": np.asfortranarray(X), "apart": np.repeat(X, 2, axis=1)[:, ::2]}[
        layout
    ].astype(dtype, copy=False)
    centers = rng.normal(size=(K, d))
    labels = rng.integers(0, K, n).astype(np.int32)
    expected = squared_distances(X, centers)[np.arange(n), labels]
    for start, stop in ((0, n), (1, 2), (3, n - 1)):
        D = np.full(n, -1.0)
        own_distances(X, start, stop, labels, centers, D)
        assert (D[start:stop] == expected[start:stop]).all()
        assert (np.delete(D, np.arange(start, stop)) == -1.0).all()
