"""Sums by matrix products and by atomic operations: the same integers as the host's."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends import choose
from lloydia.backends.cuda import low_sums
from lloydia.backends.cuda.low_shape import shape_of
from lloydia.exact import sums


@pytest.mark.parametrize("digits", [True, False])
@pytest.mark.parametrize(
    ("d", "k", "dtype", "power"),
    [(1, 3, "float32", 0), (2, 20, "float32", 20), (3, 5, "float64", 0), (2, 4, "float32", 60)],
)
def test_sums_after_every_iteration_are_those_of_the_host(d, k, dtype, power, digits, monkeypatch):
    rng = np.random.default_rng(d)
    X = np.rint(rng.normal(scale=50, size=(1500, d))) * 2.0 ** -rng.integers(
        0, power + 1, (1500, 1)
    )
    X = X.astype(dtype)
    monkeypatch.setattr(low_sums, "LEAST_SUMMED", 0 if digits else len(X) + 1)
    shape_of.cache_clear()
    engine = choose("cuda", X, None, None)
    engine.start(X[:k].copy(), "lloyd")
    assert any(engine.run.shape.digits) == digits
    limbs = sums.limbs(X, None, sums.Grid.choose(sums.Extent.of(X), X.dtype))
    for _ in range(3):
        engine.iterate(False).result()
        labels = engine.labels().numpy()
        expected = np.zeros((len(limbs), k, d + 1), dtype=np.int64)
        np.add.at(expected, (slice(None), labels), limbs)
        assert (engine.run.sums.numpy().sum(axis=0) == expected).all()
