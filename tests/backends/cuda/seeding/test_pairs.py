"""Candidates of more than 8 features: the rows of the oracle, and the proofs by 8-bit products."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.runtime.launching import launch, place
from lloydia.backends.cuda.seeding import pairs
from lloydia.backends.cuda.seeding.int8_rows import CANDIDATES, Int8Rows
from lloydia.backends.cuda.seeding.screen import list_pairs
from lloydia.backends.reference import Reference
from lloydia.exact.distance import squared_distances
from lloydia.seeding.plusplus import plusplus
from nasty import FLAVOURS, rows_of

FEW = ["spread", "heavy", "one feature"]


def data(flavour, n, d, dtype, seed=0):
    """Return rows of a kind of :mod:`nasty`, or of FEW."""
    rng = np.random.default_rng(seed)
    if flavour == "spread":
        X = rng.normal(size=(n // 10, d))[rng.integers(n // 10, size=n)] * 20
        return (X + rng.normal(size=(n, d))).astype(dtype)
    if flavour == "heavy":
        return (rng.standard_cauchy(size=(n, d)) ** 3).astype(dtype)
    if flavour == "one feature":
        X = rng.normal(size=(n, d))
        X[:, 3] *= 1e4
        return X.astype(dtype)
    return rows_of(flavour, n, d, dtype, seed)


def picks(engine, k, seed, trials=None):
    return plusplus(engine, k, np.random.RandomState(seed), trials).tolist()


@pytest.fixture(params=["screened", "crowded", "all pairs"])
def how(request, monkeypatch):
    """Have pairs be listed; be more than the list holds, now and then; or not be listed."""
    if request.param == "crowded":
        monkeypatch.setattr(pairs, "PAIRS_A_ROW", 0)
    elif request.param == "all pairs":
        monkeypatch.setattr(pairs, "free_bytes", lambda device, needed: 0)
    return request.param


def check_picks(flavour, dtype, d, n=80, k=4):
    X = data(flavour, n, d, dtype, seed=d)
    rng = np.random.default_rng(d)
    weights = 10.0 ** rng.uniform(-6, 6, size=n) * (rng.random(n) < 0.8) if d % 2 else None
    engine, oracle = CUDA(X, weights, "cuda"), Reference(X, weights)
    assert picks(engine, k, d) == picks(oracle, k, d)
    assert (engine.seeder.state.nearest.cpu().numpy() == oracle.nearest).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", [*FLAVOURS, *FEW])
def test_every_flavour_gives_the_rows_of_the_oracle(flavour, dtype):
    check_picks(flavour, dtype, 9)


@pytest.mark.parametrize("flavour", ["offset", "spread", "heavy"])
def test_rows_of_several_steps_of_a_product(flavour):
    check_picks(flavour, "float32", 130)


@pytest.mark.parametrize("weighted", [False, True])
def test_however_pairs_are_found(how, weighted):
    n = 100
    X = data("spread", n, 20, "float32")
    weights = np.random.default_rng(1).random(n) if weighted else None
    engine, oracle = CUDA(X, weights, "cuda"), Reference(X, weights)
    for trials in (1, 5):
        assert picks(engine, 4, 3, trials) == picks(oracle, 4, 3, trials)
    rng = np.random.default_rng(2)
    for count in (5, 18):
        candidates = rng.integers(n, size=count)
        assert engine.seed_potentials(candidates) == oracle.seed_potentials(candidates)
        for e in (engine, oracle):
            e.seed_add(int(candidates[2]))
        assert (engine.seeder.state.nearest.cpu().numpy() == oracle.nearest).all()
        u = np.append(rng.random(7), [0.0, 1.0 - 2.0**-53])
        assert (engine.seed_draw(u) == oracle.seed_draw(u)).all()
        assert engine.seed_farthest() == oracle.seed_farthest()


def test_half_precision_is_read_exactly(how):
    X = data("spread", 200, 24, "float16")
    assert picks(CUDA(X, None, "cuda"), 4, 0) == picks(Reference(X.astype(np.float32), None), 4, 0)


def test_seeds_that_were_added_at_once_are_looked_at():
    X = data("spread", 200, 24, "float32")
    engine, oracle = CUDA(X, None, "cuda"), Reference(X, None)
    for e in (engine, oracle):
        e.seed_start()
        e.seed_extend(np.arange(6))
        e.seed_extend(np.arange(6, 9))
    candidates = np.arange(50, 60)
    assert engine.seed_potentials(candidates) == oracle.seed_potentials(candidates)


@triton.jit
def list_kernel(hits, pairs, n_pairs, capacity, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    block = tl.program_id(0).to(tl.int64)
    rows = block * ROWS + tl.arange(0, ROWS)
    hit = tl.load(hits + rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]) != 0
    list_pairs(block, hit, pairs, n_pairs, capacity, ROWS, COLUMNS)


@pytest.mark.parametrize("columns", [8, 16])
@pytest.mark.parametrize("capacity", [0, 1, 40, 10_000])
def test_no_pair_is_stored_past_the_end_of_the_list(capacity, columns):
    rows, blocks = 16, 4
    hits = np.random.default_rng(columns).random((rows * blocks, columns)) < 0.3
    hits[rows : 2 * rows] = False
    expected = {16 * row + candidate for row, candidate in zip(*np.nonzero(hits))}
    device = place("cuda")
    # -1 is no pair.
    pairs = torch.full((capacity + rows * columns,), -1, dtype=torch.int64, device=device)
    n_pairs = torch.zeros(1, dtype=torch.int64, device=device)
    launch(
        list_kernel, (blocks,), torch.from_numpy(hits.astype(np.int8)).to(device), pairs, n_pairs,
        capacity, ROWS=rows, COLUMNS=columns,
    )  # fmt: skip
    listed, after = np.split(pairs.cpu().numpy(), [min(capacity, len(expected))])
    assert n_pairs.item() == len(expected)
    assert len(set(listed)) == len(listed)
    assert set(listed) <= expected
    assert (after == -1).all()


def exact_of(values):
    return [[Fraction(float(v)) for v in row] for row in values]


def norm_of(row):
    return sum(v * v for v in row)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", [*FLAVOURS, *FEW])
def test_bounds_of_rows_and_candidates_hold_in_exact_arithmetic(flavour, dtype):
    n, d = 40, 12
    X = data(flavour, n, d, dtype, seed=5)
    engine = CUDA(X, None, "cuda")
    engine.seed_start()
    state = engine.seeder.state
    engine.seed_add(3)
    candidates = np.arange(10, 26)
    engine.seed_potentials(candidates)
    copy = state.pairs.int8_rows
    frame = Fraction(float(copy.frame[0]))
    offsets = [Fraction(float(v)) for v in copy.offsets]
    framed = [[x * frame - m for x, m in zip(row, offsets)] for row in exact_of(X)]
    q, scales = copy.digits.cpu().numpy().astype(int), copy.scales.cpu().numpy()
    for i, row in enumerate(framed):
        a, r = Fraction(float(scales[i])), float(copy.residuals[i])
        assert all(v == 0 for v in q[i, d:])
        if np.isfinite(r):
            assert norm_of([x - a * int(v) for x, v in zip(row, q[i])]) <= Fraction(r) ** 2
            assert Fraction(float(copy.norms[i])) <= norm_of([a * int(v) for v in q[i]])
            near = Fraction(float(state.nearest[i])) * frame**2
            reach = float(state.pairs.reach[i])
            assert np.isinf(reach) or near <= (Fraction(reach) - Fraction(r)) ** 2
    digits = copy.candidate_digits.cpu().numpy().astype(int).reshape(2, CANDIDATES.value, -1)
    p = 256 * digits[0] + digits[1]
    begin, step, residual = copy.candidate_numbers.cpu().numpy().reshape(3, -1)
    for t, c in enumerate(candidates):
        g, b = Fraction(0), Fraction(float(step[t])) / 2
        if not np.isfinite(residual[t]):
            continue
        g = Fraction(float(residual[t])) / 2
        assert norm_of([x - b * int(v) for x, v in zip(framed[c], p[t])]) <= g**2
        assert Fraction(float(begin[t])) <= norm_of([b * int(v) for v in p[t]]) - g**2


@pytest.mark.parametrize(
    "flavour", ["gauss", "offset", "heavy", "spread", "duplicates", "constant"]
)
def test_every_pair_that_improves_is_listed_and_few_others(flavour):
    n, d = 300, 40
    X = data(flavour, n, d, "float32", seed=2)
    engine = CUDA(X, None, "cuda")
    engine.seed_start()
    for row in range(0, 24, 4):
        engine.seed_add(row)
    candidates = np.arange(100, 108)
    state = engine.seeder.state
    near = state.nearest.cpu().numpy()
    engine.seed_potentials(candidates)
    found = state.pairs
    listed = found.pairs[: int(found.n_pairs)].cpu().numpy()
    row, t = listed // CANDIDATES.value, listed % CANDIDATES.value
    assert len(set(listed.tolist())) == len(listed)
    assert (t < len(candidates)).all()
    D = squared_distances(X, X[candidates])
    marks = np.zeros(D.shape, bool)
    marks[row, t] = True
    improves = near[:, None] > D
    assert marks[improves].all()
    assert (found.squares[: len(listed)].cpu().numpy() == D[row, t]).all()
    if flavour in ("gauss", "offset", "spread"):
        assert marks.sum() <= 2 * improves.sum() + 0.02 * D.size


def test_rows_out_of_range_are_never_excluded():
    X = rows_of("gauss", 64, 16, "float32", 0)
    X[5:9] *= 1e25
    data = CUDA(X, None, "cuda").data
    copy = Int8Rows(data)
    for queue in copy.stages(data):
        queue()
    assert torch.isinf(copy.residuals[5:9]).all()
    assert torch.isfinite(copy.residuals[9:]).all()
