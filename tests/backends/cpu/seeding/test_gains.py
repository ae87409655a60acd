"""The best candidate by float32 distances is that of the integers, or integers decide."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends import choose
from lloydia.backends.cpu.engine import CPU
from lloydia.backends.cpu.seeding import wide_potentials
from lloydia.backends.cpu.seeding.gains import best_of

MARGINS = (2.0**-20, 2.0**-90)


def best(gains, doubts, integers):
    """Return the best candidate, and those that are compared by integers."""
    compared = []

    def reductions(some):
        compared.extend(some.tolist())
        return np.array(integers)[some]

    return best_of(np.array([gains, doubts]), MARGINS, 100, 0.0, reductions), compared


def test_a_gain_that_no_other_can_reach_needs_no_integers():
    assert best([1.0, 3.0, 2.0], [9.0, 9.0, 9.0], [0, 0, 0]) == (1, [])


def test_gains_within_their_errors_are_compared_by_integers():
    assert best([1.0, 3.0, 3.0 + 1e-6], [9.0, 9.0, 9.0], [99, 8, 7]) == (1, [1, 2])
    assert best([3.0, 1.0, 3.0], [9.0, 9.0, 9.0], [5, 99, 5]) == (0, [0, 2])


def test_a_distance_that_float32_cannot_hold_leaves_it_to_integers():
    assert best([1.0, 3.0, 2.0], [np.inf, 9.0, 9.0], [4, 3, 9]) == (0, [0, 1])
    assert best([1.0, 3.0, 2.0], [9.0, np.inf, 9.0], [4, 3, 9]) == (2, [1, 2])
    assert best([np.inf, 3.0, 2.0], [np.inf, 9.0, 9.0], [4, 3, 9]) == (2, [0, 1, 2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 12, 70])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e15])
def test_it_has_the_lowest_potential_with_the_lowest_number(d, dtype, scale, monkeypatch):
    monkeypatch.setattr(wide_potentials, "SKETCHED_NUMBERS", 0)
    rng = np.random.default_rng(d)
    X = (rng.normal(size=(900, d)) * scale).astype(dtype)
    # Rows that are equal, and rows that differ in a bit, have potentials that are or nearly are.
    X[300:600] = X[:300]
    X[600:] = np.nextafter(X[:300], np.array(np.inf, dtype))
    weights = rng.uniform(0.5, 2.0, size=900) if d == 12 else None
    engine, oracle = CPU(X, weights, 2), choose("reference", X, weights, None)
    for e in (engine, oracle):
        e.seed_start()
        e.seed_add(7)
    for _ in range(12):
        rows = rng.integers(300, size=4)
        candidates = np.concatenate([rows + 600, rows + 300, rows])
        potentials = oracle.seed_potentials(candidates)
        place = engine.seed_best(candidates)
        assert place == potentials.index(min(potentials))
        for e in (engine, oracle):
            e.seed_add(int(candidates[place]))
    assert engine.seeder.nearest.tolist() == oracle.nearest.tolist()
