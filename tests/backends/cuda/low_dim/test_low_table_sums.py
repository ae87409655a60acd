"""Sums by tables of programs and by atomic operations: the same integers as the host's."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends import choose
from lloydia.backends.cuda.device_functions.ptx.shared_table import all_ptx, operands
from lloydia.backends.cuda.low_dim.table_sums import table_limbs
from lloydia.exact import sums
from ptx import evaluate


def rows_of(kind, n, d, dtype):
    rng = np.random.default_rng(d)
    if kind == "some left":
        # Numbers of all bits; few leave something for limbs that tables do not hold.
        X = rng.normal(scale=50, size=(n, d))
        X[::700] *= 2.0 ** (-40 if dtype == "float32" else -70)
    elif kind == "largest":
        # Parts that are as large as can be, nearly all of one cluster.
        bits = sums.bits_a_limb(n)
        X = np.full((n, d), (2.0**bits - 1) / 2.0 ** (bits - 1))
        if dtype == "float32":
            X = np.full((n, d), 2 - 2.0**-23)
        X[1] = -1.0
    elif kind == "vanishing":
        X = np.rint(rng.normal(scale=50, size=(n, d))) * 2.0 ** (115 if dtype == "float32" else 480)
        X[n // 9] = 2.0 ** (-60 if dtype == "float32" else -700)
    else:
        X = rng.normal(scale=50, size=(n, d))
        X[X == 0] = 1
    return X.astype(dtype)


@pytest.mark.parametrize(("kind", "d", "k", "dtype", "n", "there"), [
    ("some left", 3, 2, "float64", 1500, True), ("largest", 1, 2, "float64", 1500, True),
    ("vanishing", 1, 2, "float64", 1500, True), ("normal", 5, 20, "float64", 1500, True),
    ("some left", 7, 3, "float64", 1100, True), ("some left", 2, 20, "float32", 1100, False),
    ("some left", 3, 5, "float64", 1100, False),
])  # fmt: skip
def test_sums_after_every_iteration_are_those_of_the_host(kind, d, k, dtype, n, there, tables):
    tables(there)
    X = rows_of(kind, n, d, dtype)
    engine = choose("cuda", X, None, None)
    engine.start(X[:k].astype("float64" if dtype == "float64" else "float32"), "lloyd")
    held = table_limbs(dtype == "float64")
    assert (engine.run.memory.shape.copies > 0) == there
    limbs = sums.limbs(X, None, sums.Grid.choose(sums.Magnitudes.of(X), X.dtype))
    assert (limbs[held:] != 0).any() == (kind in ("some left", "vanishing")) or not there
    before = np.full(n, -1)
    for iteration in range(2):
        engine.iterate(False).result()
        labels = engine.labels().cpu().numpy().copy()
        expected = np.zeros((len(limbs), k, d + 1), dtype=np.int64)
        np.add.at(expected, (slice(None), labels), limbs)
        assert (engine.run.memory.sums.cpu().numpy().sum(axis=0) == expected).all()
        if iteration and k > 2 and there:
            # Rows are taken from the table, too.
            assert np.count_nonzero(labels != before) > 100
        before = labels


@pytest.mark.parametrize("count", [3, 11, 21, 33])
def test_what_adds_all_values_of_a_row(count):
    """The PTX that no interpreter runs: all values are added, and taken where that is asked."""
    stride = 4 * count
    rng, ptx = np.random.default_rng(count), all_ptx(count)
    shared, expected = {}, np.zeros((5, count), dtype=np.int64)
    for _ in range(100):
        values = rng.integers(-(2**31), 2**31, count) >> rng.integers(0, 31, count)
        to, off = rng.integers(0, 5), rng.integers(-1, 5)
        places = [0, int(to * stride), int(off * stride), int(off >= 0)]
        assert len([*places, *values]) == len(operands(count + 3, 1).split(","))
        evaluate(ptx, [*places, *map(int, values)], shared)
        expected[to] += values
        if off >= 0:
            expected[off] -= values
    for (j, i), total in np.ndenumerate(expected):
        assert shared.pop(j * stride + 4 * i) == total % 2**32
    assert not shared
