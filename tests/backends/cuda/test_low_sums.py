"""Sums by tables of programs and by atomic operations: the same integers as the host's."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends import choose
from lloydia.backends.cuda import low_sums
from lloydia.backends.cuda.low_shape import shape_of
from lloydia.exact import sums

# Of fewer rows float32 numbers are not halved.
MANY = 66_000
CASES = [
    (1, 3, "float64", 0, 3000, True), (3, 5, "float64", 70, 3000, True),
    (5, 20, "float64", 0, 3000, True), (2, 20, "float32", 20, MANY, True),
    (1, 3, "float32", 120, MANY, True), (2, 20, "float32", 20, 3000, False),
    (3, 5, "float64", 70, 3000, False),
]  # fmt: skip


@pytest.mark.parametrize(("d", "k", "dtype", "power", "n", "tables"), CASES)
def test_sums_after_every_iteration_are_those_of_the_host(
    d, k, dtype, power, n, tables, monkeypatch
):
    rng = np.random.default_rng(d)
    X = np.rint(rng.normal(scale=50, size=(n, d))) * 2.0 ** -rng.integers(0, power + 1, (n, 1))
    X = X.astype(dtype)
    monkeypatch.setattr(low_sums, "LEAST_ROWS", 0 if tables else n + 1)
    shape_of.cache_clear()
    engine = choose("cuda", X, None, None)
    engine.start(X[:k].copy(), "lloyd")
    assert (engine.run.shape.own[-1] > 0) == tables
    limbs = sums.limbs(X, None, sums.Grid.choose(sums.Extent.of(X), X.dtype))
    for _ in range(2):
        engine.iterate(False).result()
        labels = engine.labels().numpy()
        expected = np.zeros((len(limbs), k, d + 1), dtype=np.int64)
        np.add.at(expected, (slice(None), labels), limbs)
        assert (engine.run.sums.numpy().sum(axis=0) == expected).all()
