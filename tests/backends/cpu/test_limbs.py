"""Moves of rows between clusters against the plain sums of exact.sums, in any layout."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends.cpu.engine import CPU
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.update.sums import accumulate
from lloydia.exact import sums as exact

N, K = 150, 4


def laid_out(X, layout):
    if layout == "C":
        return X
    wide = np.zeros((2 * len(X), 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def engine_of(d, dtype, layout, weighted):
    rng = np.random.default_rng(d)
    # Magnitudes far apart: several limbs, and rows whose first ones are 0.
    X = (rng.standard_normal((N, d)) * 10.0 ** rng.integers(-9, 9, size=(N, d))).astype(dtype)
    weights = rng.random(N) if weighted else None
    engine = CPU(laid_out(X, layout), weights, 1)
    engine.start(np.zeros((K, d), dtype=dtype), "lloyd")
    return engine


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", ["C", "strided"])
@pytest.mark.parametrize(
    ("d", "dtype"),
    [(1, "float32"), (7, "float64"), (8, "float32"), (9, "float64"), (17, "float32")],
)
def test_rows_are_added_and_taken_away_exactly(d, dtype, layout, weighted):
    engine = engine_of(d, dtype, layout, weighted)
    assert engine.grid.n_limbs > 1
    rng = np.random.default_rng(1)
    labels = np.full(N, -1, dtype=np.int32)
    some = np.flatnonzero(rng.random(N) < 0.5)
    for rows in (EVERY, some, EVERY):
        fresh = rng.integers(K, size=len(rows) or N).astype(np.int32)
        listed = rows if len(rows) else np.arange(N)
        n_changed = (labels[listed] != fresh).sum()
        assert n_changed == accumulate(
            engine.X, rows, 0, len(fresh), engine.scaled, engine.lattice, fresh, labels,
            engine.sums[0], engine.touched[0],
        )  # fmt: skip
        assert (labels[listed] == fresh).all()
        expected = exact.accumulate(engine.limbs(np.arange(N)), labels, K)
        assert (engine.integers() == expected).all()
