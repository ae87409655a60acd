"""Many rows of few features, added up in tables: the bits of the CPU's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans
from lloydia.backends.cuda.low_dim.table_sums import MIN_ROWS
from lloydia.data.arrays import on_host
from table import answer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


def rows_of(kind, n, d):
    rng = np.random.default_rng(n + d)
    X = 3 * rng.normal(size=(9, d))[rng.integers(9, size=n)] + rng.normal(size=(n, d))
    if kind == "ties":
        return np.rint(X)
    if kind == "offset":
        return X + 1000
    if kind == "wide":
        # Rows of which a table's limbs leave something; one in a thousand is far away.
        X[::3] *= 2.0**-30
        X[::1000] *= 2.0**20
    return X


@pytest.mark.parametrize(("kind", "n", "d", "k", "dtype"), [
    ("normal", MIN_ROWS, 1, 2, "float32"), ("ties", MIN_ROWS + 1, 2, 5, "float32"),
    ("ties", 100_003, 3, 16, "float32"), ("normal", 1_000_001, 3, 16, "float32"),
    ("ties", 3_000_000, 3, 16, "float32"), ("wide", 200_000, 3, 16, "float32"),
    ("offset", 300_000, 2, 32, "float32"), ("ties", 400_000, 1, 32, "float32"),
    ("normal", 150_000, 5, 32, "float32"), ("wide", 90_001, 4, 7, "float32"),
    ("normal", 200_000, 3, 16, "float16"), ("ties", 250_000, 2, 11, "bfloat16"),
    ("normal", 500_000, 3, 16, "float64"), ("wide", 130_000, 2, 9, "float64"),
    ("ties", 65_537, 5, 20, "float64"), ("offset", 20_000, 1, 1, "float64"),
    # More clusters, or more features.
    ("wide", 200_000, 3, 40, "float32"), ("ties", 1_000_001, 2, 100, "float32"),
    ("normal", 200_000, 7, 6, "float64"), ("wide", 150_000, 8, 100, "float32"),
    ("ties", 300_000, 2, 60, "float16"), ("wide", 300_000, 2, 50, "float64"),
])  # fmt: skip
def test_every_iteration_has_the_bits_of_the_cpu(kind, n, d, k, dtype):
    rows = torch.as_tensor(rows_of(kind, n, d)).to(getattr(torch, dtype)).cuda()
    X = on_host(rows)
    start = rows[np.random.default_rng(0).choice(n, k, replace=False)]
    start = start if dtype == "float64" else start.float()
    parameters = {"n_init": 1, "tol": 0.0}
    for max_iter in (1, 2, 12, 40):
        parameters["max_iter"] = max_iter
        expected = KMeans(k, init=on_host(start), device="cpu", **parameters).fit(X)
        # The third time the device begins before anything is made of the run.
        for _ in range(3):
            model = KMeans(k, init=start, **parameters).fit(rows)
            assert answer(model) == answer(expected)
