"""Several seeds at once, and the rows that a round of k-means|| draws, against the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.cuda.seeding import oversampling
from lloydia.backends.cuda.seeding.several import nearest_of
from lloydia.backends.reference import Reference
from lloydia.exact import counter, distance, sums
from lloydia.seeding.parallel import parallel
from nasty import FLAVOURS, rows_of

DEVICE = place("cuda")


def on_device(array):
    return torch.as_tensor(array, device=DEVICE)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_row_gets_the_number_of_its_nearest_centre(flavour, dtype):
    for d in (3, 17):
        X = rows_of(flavour, 150, d, dtype, seed=d)
        chosen = X[np.random.default_rng(d).integers(150, size=19)]
        centers = chosen * X.dtype.type(1.0 + 2.0**-20)
        found = nearest_of(place_rows(X, None, "cuda"), on_device(centers))
        assert (found.cpu().numpy() == distance.nearest(X, centers)[0]).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("d", "dtype"), [(2, "float32"), (8, "float64"), (12, "float32")])
def test_the_state_is_that_of_the_oracle_after_every_round(d, dtype, weighted):
    # Rows recur: of seeds at the same distance the earlier one has the row.
    X = np.random.default_rng(d).integers(-2, 3, size=(300, d)).astype(dtype)
    weights = 0.1 + np.random.default_rng(1).random(300) if weighted else None
    engine, oracle = CUDA(X, weights, "cuda"), Reference(X, weights)
    for e in (engine, oracle):
        e.seed_start()
    for round_of, count in enumerate((1, 5, 1, 40)):
        rows = np.random.default_rng(round_of).integers(300, size=count)
        for e in (engine, oracle):
            e.seed_extend(rows)
        state = engine.seeder.state
        assert (state.nearest.cpu().numpy() == oracle.nearest).all()
        assert (state.owners.cpu().numpy() == oracle.owners).all()
        assert (engine.seed_loads() == oracle.seed_loads()).all()
        terms = oracle.nearest if weights is None else weights * oracle.nearest
        assert float(state.largest) == terms.max()
        draw = engine.seed_sample(7, 20.0), oracle.seed_sample(7, 20.0)
        assert (draw[0] == draw[1]).all()
        assert (engine.seed_draw(np.array([0.3])) == oracle.seed_draw(np.array([0.3]))).all()


@pytest.mark.parametrize("key", [5, 2**63 + 12345, 2**64 - 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_draw_is_that_of_the_counter_wherever_a_part_begins(key, weighted):
    rng = np.random.default_rng(0)
    D, weights = rng.random(3000) * 1e-200, rng.random(3000) * 1e9 if weighted else None
    terms = D if weights is None else weights * D
    grid = sums.total_grid(3000, float(terms.max()))
    low, high = sums.two_factors(grid[0] - grid[1])
    integers = np.rint(terms * low * high).astype(np.int64)
    total = int(integers.sum())
    expected = counter.chosen(integers, total, key, 300.5)
    assert 100 < len(expected) < 1000
    largest = on_device(np.array([math.ldexp(0.5, grid[1])]))
    found = []
    for begin, end in ((0, 1100), (1100, 3000)):
        there = None if weights is None else on_device(weights[begin:end])
        rows = oversampling.chosen(
            on_device(D[begin:end]), there, largest, grid[0], on_device([total]), key, 300.5, begin
        )  # fmt: skip
        found += [begin + row for row in rows.tolist()]
    assert found == expected.tolist()


def test_the_copy_that_seeds_are_assigned_by_is_that_of_the_run():
    X = np.random.default_rng(0).normal(size=(100, 12)).astype(np.float32)
    engine = CUDA(X, None, "cuda")
    rows = parallel(engine, 4, np.random.RandomState(0))
    kept = engine.data.fp16_rows
    assert kept is not None
    engine.start(X[rows], "lloyd")
    assert engine.data.fp16_rows is kept


def test_half_precision_is_read_exactly():
    X = np.random.default_rng(0).normal(size=(200, 12)).astype(np.float16)
    found, expected = (
        parallel(engine, 5, np.random.RandomState(0)).tolist()
        for engine in (CUDA(X, None, "cuda"), Reference(X.astype(np.float32), None))
    )
    assert found == expected
