"""Pruned k-means++ against the oracle, on data for which a screen is easily wrong."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from lloydia.backends import choose
from lloydia.backends.cpu.part import CPUPart
from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.group import Here
from lloydia.backends.parts import Parts
from lloydia.seeding.plusplus import plusplus
from nasty import FLAVOURS, nasty_rows, nasty_weights, rows_of


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Hand out a tile at a time, so that threads share the work of small data too.

    tests/backends/cpu/test_greedy.py looks at what is done with small data otherwise.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lloydia.backends.cpu.seeding.seeder.MAX_ROWS", 0)
        patch.setattr(Dataset, "block", lambda self, cost, n=None: 1 if n else 41)
        yield


def picks(engine, k, seed, trials=None):
    return plusplus(engine, k, np.random.RandomState(seed), trials).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_flavour_gives_the_rows_of_the_oracle(flavour, dtype):
    for d in (2, 8, 9, 33):
        X = rows_of(flavour, 700, d, dtype, seed=d)
        weights = 10.0 ** np.random.default_rng(d).uniform(-6, 6, size=700) if d % 2 else None
        expected = picks(choose("reference", X, weights, None), 20, d)
        assert picks(choose("cpu", X, weights, 2), 20, d) == expected
        assert picks(choose("cpu", sp.csr_matrix(X), weights, 3), 20, d) == expected


@pytest.mark.slow
@given(nasty_rows(most=30, features=12), st.data())
@settings(deadline=None, max_examples=150)
def test_nasty_rows_give_those_of_the_oracle(X, data):
    weights = data.draw(nasty_weights(len(X)))
    k, seed = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 1000))
    expected = picks(choose("reference", X, weights, None), k, seed)
    assert picks(choose("cpu", X, weights, 2), k, seed) == expected
    assert picks(choose("cpu", sp.csr_matrix(X), weights, 2), k, seed) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("trials", [1, 8, 9, 16, 17, 40])
def test_any_number_of_trials(trials, dtype):
    X = np.random.default_rng(trials).normal(size=(600, 10)).astype(dtype)
    expected = picks(choose("reference", X, None, None), 12, 0, trials)
    assert picks(choose("cpu", X, None, 2), 12, 0, trials) == expected
    parts = [CPUPart(X[a:b], None, 1) for a, b in pairwise((0, 5, 300, 600))]
    assert picks(Parts(Here(parts)), 12, 0, trials) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [3, 20])
def test_rows_in_any_layout(d, dtype):
    X = np.random.default_rng(d).normal(size=(601, d)).astype(dtype)
    expected = picks(choose("reference", X, None, None), 15, 0)
    wide = np.zeros((1202, d + 3), dtype=dtype)
    wide[::2, 1 : d + 1] = X
    for rows in (np.asfortranarray(X), wide[::2, 1 : d + 1], X[::-1][::-1]):
        assert picks(choose("cpu", rows, None, 2), 15, 0) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [3, 20])
def test_the_state_is_that_of_the_oracle_after_every_seed(d, dtype):
    X = np.random.default_rng(0).normal(size=(900, d)).astype(dtype) + 30
    weights = np.random.default_rng(1).random(900)
    cpu, oracle = (choose(name, X, weights, 2) for name in ("cpu", "reference"))
    for engine in (cpu, oracle):
        engine.seed_start()
        engine.seed_add(17)
    rng = np.random.default_rng(2)
    for _ in range(12):
        candidates = rng.integers(900, size=5)
        assert cpu.seed_potentials(candidates) == oracle.seed_potentials(candidates)
        # One of those weighed last, or another.
        row = int(candidates[3]) if rng.random() < 0.5 else int(candidates[0]) // 2
        for engine in (cpu, oracle):
            engine.seed_add(row)
        assert (cpu.seeder.nearest == oracle.nearest).all()
        u = rng.random(50)
        assert (cpu.seed_draw(u) == oracle.seed_draw(u)).all()
        assert cpu.seed_farthest() == oracle.seed_farthest()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_candidates_that_are_nearer_by_a_hair_are_found(dtype):
    """Rows on the bisector of the seed and a candidate, moved by single units in the last place."""
    rng = np.random.default_rng(0)
    seed, candidate = rng.normal(size=(2, 24))
    steps = np.linspace(-1, 1, 2001)[:, None] * (1e-6 if dtype == "float32" else 1e-15)
    rows = (seed + candidate) / 2 + steps * (candidate - seed)
    X = np.vstack([seed, candidate, rows]).astype(dtype)
    states = []
    for name in ("cpu", "reference"):
        engine = choose(name, X, None, 2)
        engine.seed_start()
        engine.seed_add(0)
        state = engine.seeder if name == "cpu" else engine
        first = state.nearest.copy()
        potentials = engine.seed_potentials(np.array([1]))
        engine.seed_add(1)
        assert 100 < (state.nearest < first).sum() < 1900
        states.append((potentials, state.nearest.tolist()))
    assert states[0] == states[1]


def test_the_screen_leaves_few_rows_to_evaluate():
    from lloydia.backends.cpu.seeding import screen as screens
    from lloydia.backends.cpu.seeding.weights import TILE

    @njit
    def reachable(X, panel, starts, test, nearest, norms, limits, bits, copies, hits):
        return screens.list_reachable_rows(
            X, 0, TILE, panel, starts, test, nearest, norms, limits, bits, copies, hits
        )

    X = np.random.default_rng(0).normal(size=(TILE, 32)).astype(np.float32)
    wide = X.astype(np.float64)
    D = ((wide[:, None] - wide[None, :40]) ** 2).sum(axis=2)
    nearest, candidates = D[:, :33].min(axis=1), wide[33:40]
    screen = screens.Screen(wide[0], float(np.sqrt(D[:, 0].max())), X.dtype, 7)
    test = screen.load(candidates)
    hits = np.empty(TILE, np.uint32)
    scratch = np.empty(TILE, X.dtype), np.empty(TILE, np.uint16), np.zeros((8, 32), X.dtype)
    found = reachable(
        X, screen.panel, screen.initial_scores, test, nearest, D[:, 0].copy(), *scratch, hits
    )
    improved = {(i, j) for i, j in np.argwhere(D[:, 33:] < nearest[:, None]).tolist()}
    doubted = {(int(h) >> 16, j) for h in hits[:found] for j in range(7) if int(h) >> j & 1}
    assert improved <= doubted
    assert len(doubted) <= len(improved) + 2
