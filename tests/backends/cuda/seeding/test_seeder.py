"""Seeding on the device against the oracle, on data for which sums are easily wrong."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.seeding import state
from lloydia.backends.reference import Reference
from lloydia.progress.stages import watch_stages
from lloydia.seeding import SEEDINGS
from lloydia.seeding.plusplus import plusplus
from nasty import FLAVOURS, rows_of


def picks(engine, k, seed, trials=None):
    return plusplus(engine, k, np.random.RandomState(seed), trials).tolist()


def both(X, weights):
    return CUDA(X, weights, "cuda"), Reference(X, weights)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_flavour_gives_the_rows_of_the_oracle(flavour, dtype):
    for d in (2, 3):
        X = rows_of(flavour, 150, d, dtype, seed=d)
        weights = 10.0 ** np.random.default_rng(d).uniform(-6, 6, size=150) if d % 2 else None
        engine, oracle = both(X, weights)
        assert picks(engine, 6, d) == picks(oracle, 6, d)


@pytest.mark.parametrize("trials", [1, 3, 17, 40])
def test_any_number_of_trials(trials):
    X = np.random.default_rng(trials).normal(size=(200, 3)).astype(np.float32)
    engine, oracle = both(X, None)
    assert picks(engine, 3, 0, trials) == picks(oracle, 3, 0, trials)


def test_the_steps_of_a_start_are_shown_and_change_nothing():
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    seen = []
    with watch_stages(lambda stage: seen.append((stage.name, stage.done, stage.total))):
        found = picks(CUDA(X, None, "cuda"), 5, 0)
    assert found == picks(CUDA(X, None, "cuda"), 5, 0)
    steps = [("centers", done, 5) for done in range(1, 6)]
    assert seen == [*steps, steps[-1]], "the last call says that it is over"


@pytest.mark.parametrize("method", ["random", "first", "farthest", "k-means||"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_other_methods(method, weighted):
    X = rows_of("duplicates", 200, 3, "float32", seed=0)
    weights = np.where(np.arange(200) % 3 == 0, 0.0, 0.1 + np.arange(200)) if weighted else None
    rows = [SEEDINGS[method](e, 7, np.random.RandomState(3)).tolist() for e in both(X, weights)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("method", ["k-means++", "farthest"])
def test_rows_recur_where_there_are_too_few(method):
    X = np.repeat([[1.0, 2.0], [3.0, 4.0]], 50, axis=0)
    rows = [SEEDINGS[method](e, 5, np.random.RandomState(0)).tolist() for e in both(X, None)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_state_is_that_of_the_oracle_after_every_seed(dtype):
    n = 1100
    X = np.random.default_rng(0).normal(size=(n, 3)).astype(dtype) + 30
    weights = np.random.default_rng(1).random(n)
    engine, oracle = both(X, weights)
    rng = np.random.default_rng(2)
    for e in (engine, oracle):
        e.seed_start()
        e.seed_add(17)
    for _ in range(2):
        candidates = rng.integers(n, size=5)
        assert engine.seed_potentials(candidates) == oracle.seed_potentials(candidates)
        # One of those evaluated last, or another.
        row = int(candidates[3]) if rng.random() < 0.5 else int(candidates[0]) // 2
        for e in (engine, oracle):
            e.seed_add(row)
        assert (engine.seeder.state.nearest.cpu().numpy() == oracle.nearest).all()
        u = np.append(rng.random(7), [0.0, 1.0 - 2.0**-53])
        assert (engine.seed_draw(u) == oracle.seed_draw(u)).all()
        assert engine.seed_farthest() == oracle.seed_farthest()
        drawn = engine.seed_draw(u[:6])
        assert engine.seed_potentials(drawn) == oracle.seed_potentials(drawn)
        best = int(drawn[np.argmin(engine.seed_potentials(drawn))])
        for e in (engine, oracle):
            e.seed_add(best)
        assert (engine.seeder.state.nearest.cpu().numpy() == oracle.nearest).all()


def test_rows_that_share_no_memory_with_their_copy(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    engine, oracle = both(X, None)
    monkeypatch.setattr(state, "columns_of", lambda X: X.T)
    assert picks(engine, 6, 1) == picks(oracle, 6, 1)


def test_half_precision_is_read_exactly():
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float16)
    assert picks(CUDA(X, None, "cuda"), 5, 0) == picks(Reference(X.astype(np.float32), None), 5, 0)
