"""Seedings by the sketch of the rows pick the oracle's rows, and the sketch excludes most pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from lloydia.backends import choose
from lloydia.backends.cpu.engine import CPU
from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.seeding import oversampling, wide_potentials
from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.seeding.sketch import Sketch
from lloydia.backends.cpu.seeding.sketch_bytes import WIDTH
from lloydia.backends.cpu.seeding.sketched_potentials import SketchedPotentials
from lloydia.backends.cpu.seeding.weights import MAX_CANDIDATES
from lloydia.backends.cpu.simd import sketch_rows
from lloydia.backends.cpu.simd.sketch_rows import GROUP
from lloydia.seeding.parallel import parallel
from lloydia.seeding.plusplus import plusplus
from nasty import FLAVOURS, nasty_rows, nasty_weights, rows_of


@pytest.fixture(autouse=True)
def from_the_first_candidates(monkeypatch):
    """Sketch the rows at once, and let threads share the work of small data too."""
    monkeypatch.setattr("lloydia.backends.cpu.seeding.seeder.MAX_ROWS", 0)
    monkeypatch.setattr(wide_potentials, "SKETCHED_NUMBERS", 0)
    monkeypatch.setattr(Dataset, "block", lambda self, cost, n=None: 1 if n else 41)


@pytest.fixture
def always(monkeypatch):
    """Use the sketch even where it does not pay."""
    monkeypatch.setattr(
        SketchedPotentials, "_note", lambda self, *counts: setattr(self, "pays", True)
    )


def picks(engine, k, seed, trials=None):
    return plusplus(engine, k, np.random.RandomState(seed), trials).tolist()


def low_rank(n, d, dtype, rank=6, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_flavour_gives_the_rows_of_the_oracle(flavour, dtype):
    for d in (9, 33, WIDTH, WIDTH + 3):
        X = rows_of(flavour, 330, d, dtype, seed=d)
        weights = 10.0 ** np.random.default_rng(d).uniform(-6, 6, size=330) if d % 2 else None
        expected = picks(choose("reference", X, weights, None), 20, d)
        assert picks(choose("cpu", X, weights, 2), 20, d) == expected


@pytest.mark.slow
@pytest.mark.usefixtures("always")
@given(nasty_rows(most=30, features=12), st.data())
@settings(deadline=None, max_examples=60)
def test_nasty_rows_give_those_of_the_oracle(X, data):
    weights = data.draw(nasty_weights(len(X)))
    repeated = np.tile(X, (1, data.draw(st.sampled_from([1, 9, 80]))))
    k, seed = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 1000))
    expected = picks(choose("reference", repeated, weights, None), k, seed)
    assert picks(choose("cpu", repeated, weights, 2), k, seed) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("trials", [1, 16, 17, 40])
def test_any_number_of_trials_and_whether_it_pays_or_not(trials, dtype):
    for X in (
        low_rank(300, 80, dtype) + 3.0,
        np.random.default_rng(trials).normal(size=(300, 80)).astype(dtype),
    ):
        expected = picks(choose("reference", X, None, None), 40, 0, trials)
        assert picks(choose("cpu", X, None, 2), 40, 0, trials) == expected


@pytest.mark.usefixtures("always")
def test_rows_in_any_layout():
    X = low_rank(301, 70, "float32")
    expected = picks(choose("reference", X, None, None), 15, 0)
    wide = np.zeros((602, 73), dtype=X.dtype)
    wide[::2, 1:71] = X
    for rows in (np.asfortranarray(X), wide[::2, 1:71], X[::-1][::-1]):
        assert picks(choose("cpu", rows, None, 2), 15, 0) == expected


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_candidates_that_are_nearer_by_a_hair_are_found(dtype):
    """Rows on the bisector of the seed and a candidate, moved by single units in the last place."""
    rng = np.random.default_rng(0)
    seed, candidate = rng.normal(size=(2, 80))
    steps = np.linspace(-1, 1, 601)[:, None] * (1e-6 if dtype == "float32" else 1e-15)
    rows = (seed + candidate) / 2 + steps * (candidate - seed)
    X = np.vstack([seed, candidate, rows]).astype(dtype)
    states = []
    for name in ("cpu", "reference"):
        engine = choose(name, X, None, 2)
        engine.seed_start()
        engine.seed_add(0)
        state = engine.seeder if name == "cpu" else engine
        potentials = engine.seed_potentials(np.array([1]))
        engine.seed_add(1)
        states.append((potentials, state.nearest.tolist()))
    assert states[0] == states[1]


@pytest.fixture(params=[0.0, 0.02, 1.0])
def rounds(request, monkeypatch):
    """Use the sketch in rounds of any size, never to the end, where it pays, or always."""
    monkeypatch.setattr(oversampling, "AMX", False)
    monkeypatch.setattr(oversampling, "SKETCHED_PRODUCTS", 0)
    monkeypatch.setattr(oversampling, "SKETCHED_FEATURES", 0)
    monkeypatch.setattr(oversampling, "MAX_EVALUATED", request.param)
    monkeypatch.setattr(oversampling, "TRIED_TILES", 1)


@pytest.mark.usefixtures("rounds", "always")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_rounds_give_the_seeds_of_the_oracle(flavour, dtype):
    for X in (rows_of(flavour, 530, 12, dtype, seed=3), rows_of(flavour, 530, 67, dtype, seed=4)):
        weights = 10.0 ** np.random.default_rng(4).uniform(-3, 3, size=530)
        weights = weights if X.shape[1] == 12 else None
        found = [
            parallel(choose(device, X, weights, 2), 25, np.random.RandomState(0)).tolist()
            for device in ("cpu", "reference")
        ]
        assert found[0] == found[1]


@pytest.mark.usefixtures("rounds")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ties_in_a_round_go_to_the_seed_that_was_first(dtype):
    X = low_rank(700, 80, dtype)
    X[1::3], X[2::9] = X[::3][: len(X[1::3])], 0.0
    states = []
    for device in ("cpu", "reference"):
        engine = choose(device, X, None, 2)
        engine.seed_start()
        for rows in ([5], np.arange(0, 700, 7), np.arange(1, 700, 7), np.arange(2, 700, 9)):
            engine.seed_extend(np.array(rows))
        state = engine.seeder if device == "cpu" else engine
        states.append((state.nearest.tolist(), engine.seed_loads().tolist()))
    assert states[0] == states[1]


def sketched(X):
    """Return the numbers of all sketches and E, as framed rows are measured, and the scale."""
    sketch = Sketch(Dataset(X, None, 1), X.shape[1])
    sketch.pack(np.ones(len(X)))
    groups, squares, errors = sketch.rows
    quads = np.moveaxis(groups, 2, 1).reshape(-1, groups.shape[1])[: len(X)]
    numbers = np.ascontiguousarray(quads).view(np.uint8).astype(np.float64) - 128.0
    numbers = numbers[
        :, : min(X.shape[1], sketch.frame[2].shape[1]) if len(sketch.frame[2]) else None
    ]
    q = sketch.frame[-1]
    assert np.allclose(squares[: len(X)], np.square(numbers[:, : X.shape[1]]).sum(axis=1))
    return q * numbers[:, : X.shape[1]], q * errors[: len(X)].astype(np.float64), sketch.frame[1]


@pytest.mark.parametrize("d", [9, 64, 65, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_sketches_are_no_farther_apart_than_the_rows(d, dtype, offset):
    for X in (
        low_rank(120, d, dtype) + dtype_of(offset, dtype),
        np.random.default_rng(d).normal(size=(120, d)).astype(dtype) + dtype_of(offset, dtype),
    ):
        heads, errors, scale = sketched(X)
        wide = X.astype(np.float64)
        true = scale * np.sqrt(np.square(wide[:, None] - wide).sum(axis=2))
        short = np.sqrt(np.square(heads[:, None] - heads).sum(axis=2))
        assert (short - errors[:, None] - errors <= true).all()
        assert np.median(errors) < 0.05


def dtype_of(value, dtype):
    return np.dtype(dtype).type(value)


def test_sketches_of_rows_of_low_rank_are_hardly_nearer():
    X = low_rank(400, 300, "float32")
    heads, _, scale = sketched(X)
    true = scale * np.sqrt(np.square(X[:50, None] - X).sum(axis=2))
    short = np.sqrt(np.square(heads[:50, None] - heads).sum(axis=2))
    assert np.median(short[true > 0] / true[true > 0]) > 0.99


def test_the_sketch_leaves_few_pairs_to_evaluate():
    X = low_rank(2000, 100, "float32")
    engine = CPU(X, None, 1)
    rng, counts = np.random.default_rng(1), []
    engine.seed_start()
    for row in range(60):
        engine.seed_add(row)
    engine.seed_potentials(rng.integers(2000, size=8))
    sketched = engine.seeder.potentials.sketched
    assert sketched is not None
    assert sketched.pays
    for _ in range(5):
        candidates = rng.integers(2000, size=8)
        sketched._note = lambda n, tiles: counts.append(n)
        engine.seed_potentials(candidates)
        near = np.square(X[:, None].astype(float) - X[candidates]).sum(axis=2)
        improved = (near < engine.seeder.nearest[:, None]).sum()
        assert improved <= counts[-1] < 1.5 * improved + 100


def test_where_there_is_no_memory_for_it_nothing_is_sketched():
    X = low_rank(300, 80, "float32")
    for engine in (CPU(X, None, 2, 79.0), CPU(sp.csr_matrix(X), None, 2)):
        picks(engine, 10, 0)
        assert getattr(engine.seeder.potentials, "sketched", None) is None


def test_sketches_take_at_most_half_of_the_free_memory(monkeypatch):
    engine = CPU(low_rank(300, 80, "float32"), None, 2)
    assert engine.seeder.sketch_columns == 80
    for free, columns in ((2 * 96, 80), (2 * 90, 74), (2 * 80, 64), (2 * 80 - 1, 0)):
        monkeypatch.setattr("lloydia.data.chunks.memory.available", lambda free=free: 300 * free)
        assert engine.seeder.sketch_columns == columns


def test_bytes_are_multiplied_alike_with_and_without_the_instruction(monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, size=(GROUP, 20)).astype(np.uint8)
    candidates = rng.integers(-127, 128, size=(24, 20)).astype(np.int8)
    initial_scores = rng.integers(-9999, 9999, size=24).astype(np.int32)
    limits = rng.integers(-10000, 90000, size=GROUP).astype(np.int32)
    above = rows.astype(int) @ candidates.astype(int).T + initial_scores > limits[:, None]
    for dot in {sketch_rows._dot, sketch_rows._portable_dot}:
        for few, several, abreast in ((4, 4, 1), (4, 8, 2)):
            monkeypatch.setattr(sketch_rows, "_dot", dot)
            monkeypatch.setattr(sketch_rows, "LAST_CANDIDATES", few)
            monkeypatch.setattr(sketch_rows, "CANDIDATES", several)
            monkeypatch.setattr(sketch_rows, "VECTORS_TOGETHER", abreast)
            for m in (1, 4, 7, 8, 10, 13, 16):
                expected = [
                    (99 + p, [c for c in range(m) if above[p, c]])
                    for p in range(GROUP)
                    if above[p, : -(-m // few) * few].any()
                ]
                assert flags(rows, candidates, initial_scores, m, limits) == expected


def flags(rows, candidates, initial_scores, m, limits):
    """Return the hits after the first one of a group: numbers, from 99 on, and candidates."""
    group = aligned((5, GROUP), np.int32)
    group[:] = rows.view(np.int32).T
    hits = np.zeros(1 + GROUP + sketch_rows.LANES, np.uint32)

    @njit
    def run(group, candidates, initial_scores, m, limits, hits):
        return sketch_rows.flag_rows(
            group.ctypes.data, 5, candidates.ctypes.data, initial_scores.ctypes.data, m,
            limits.ctypes.data, 99, hits.ctypes.data, 1,
        )  # fmt: skip

    count = run(group, candidates, initial_scores, m, limits, hits)
    assert hits[0] == 0
    return [
        (hit >> MAX_CANDIDATES, [c for c in range(m) if hit >> c & 1])
        for hit in hits[1:count].tolist()
    ]
