"""Iterations that leave out the rows whose bounds tell their labels."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
import torch

from lloydia import KMeans
from lloydia.backends import choose
from lloydia.backends.cuda import dispatch, iterations
from lloydia.backends.cuda.device_functions import run_state as state
from lloydia.backends.cuda.device_functions.iteration_report import HEAD
from lloydia.backends.cuda.dispatch import Kernels, Stage
from lloydia.backends.cuda.matmul import run as tensor_run
from lloydia.backends.cuda.matmul.pruning import largest_moves, pruned_rows
from lloydia.backends.cuda.matmul.pruning import run as pruning
from lloydia.backends.cuda.matmul.pruning.largest_moves import queue_largest_moves
from lloydia.backends.cuda.matmul.pruning.run import Pruning
from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.cuda.runtime.relocation import replay
from lloydia.backends.reference import Reference
from lloydia.data.arrays import on_host
from lloydia.loop.run import run_iterations
from lloydia.stopping import Shift
from nasty import FLAVOURS, rows_of
from table import answer


@pytest.fixture(autouse=True)
def soon(monkeypatch, take):
    """Have small runs leave rows out, as soon as a report says how many have changed."""
    monkeypatch.setattr(dispatch, "MIN_PRUNED_PRODUCTS", 0.0)
    monkeypatch.setattr(dispatch, "MIN_PRUNED_CENTERS", 2)
    monkeypatch.setattr(tensor_run, "ROWS_PER_CHANGE", 1)
    take(Stage.PACKING, Kernels.BEFORE_SCORES)
    monkeypatch.setattr(dispatch, "MAX_RECHECK_BYTES", 0)
    monkeypatch.setattr(iterations, "DISTANCES_OF_PRUNED", 16)
    for module in (largest_moves, pruning, pruned_rows):
        monkeypatch.setattr(module, "N_LARGEST", 16)


def clusters(n, d, k, dtype, seed=0, apart=3.0):
    """Return blobs, the first few of which stand close together, so that their centres go on."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(k, d)) * apart
    means[: k // 8] = means[0] + rng.normal(size=(k // 8, d))
    return (means[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(dtype)


def counts_of(monkeypatch):
    """Return a list of how many rows each iteration by bounds spares; bounds are to hold."""
    if torch.cuda.is_available():
        pytest.skip("iterations are seen in the interpreter only")
    counts, update = [], tensor_run.TensorRun.update

    def count(run):
        if run.pruning is not None and not run.memory.run_state[state.STOPPED.value]:
            left_out, active_rows = (
                run.memory.run_state[state.N_PRUNED.value],
                run.memory.run_state[state.N_ACTIVE.value],
            )
            assert int(left_out + active_rows) == run.rows.n_samples
            counts.append(int(left_out))
            assert_enclosed(run)

    counted = lambda run: [partial(count, run), *update(run)]  # noqa: E731
    monkeypatch.setattr(tensor_run.TensorRun, "update", counted)
    return counts


def assert_enclosed(run):
    """Assert that bounds hold after an assignment; return them, and what they are of."""
    X, C = (on_host(part).astype(np.longdouble) for part in (run.rows.X, run.memory.current))
    scale = np.longdouble(float(run.rows.fp16_rows.numbers[0, 0]))
    far = np.sqrt((((X[:, None] - C) * scale) ** 2).sum(axis=2))
    label = on_host(run.memory.labels)
    own = far[np.arange(len(X)), label]
    far[np.arange(len(X)), label] = np.inf
    upper, lower = on_host(run.pruning.bounds).astype(np.longdouble)
    known = np.isfinite(upper)
    assert (upper >= own)[known].all()
    assert (lower <= far.min(axis=1))[known].all()
    return upper[known], lower[known], own[known], far.min(axis=1)[known]


@pytest.mark.parametrize(
    ("d", "dtype", "weighted", "tol"),
    [
        (12, "float32", False, 0.0),
        (70, "float64", True, 1e-6),
        (260, "float32", False, 0.0),
    ],
)
def test_runs_are_those_of_the_reference(monkeypatch, d, dtype, weighted, tol):
    k = 16 if d > 12 else 40
    X = clusters(250, d, k, dtype)
    weights = np.linspace(0.5, 2.0, len(X)) if weighted else None
    parameters = {"init": X[:k].copy(), "n_init": 1, "tol": tol, "max_iter": 6 if d < 100 else 4}
    oracle = KMeans(k, device="reference", **parameters).fit(X, sample_weight=weights)
    counts = counts_of(monkeypatch)
    model = KMeans(k, device="cuda", **parameters).fit(X, sample_weight=weights)
    assert answer(model) == answer(oracle)
    # At first all are active_rows: there are no bounds.
    assert counts[0] == 0
    assert max(counts) > len(X) // 4
    if d > 12:
        return
    assert model.algorithm_ == "hamerly"
    monkeypatch.setattr(dispatch, "MIN_PRUNED_PRODUCTS", np.inf)
    scanned = KMeans(k, device="cuda", **parameters).fit(X, sample_weight=weights)
    assert scanned.algorithm_ == "lloyd"
    saved = sum(counts) * (k - largest_moves.N_LARGEST)
    assert model.n_distances_ == scanned.n_distances_ - saved


@pytest.mark.filterwarnings("ignore:Number of distinct clusters", "ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("flavour", "dtype"),
    [*product(FLAVOURS, ["float32"]), *product(["outlier", "wide", "tiny"], ["float64"])],
)
def test_rows_that_break_careless_arithmetic(monkeypatch, flavour, dtype):
    X = rows_of(flavour, 150, 10, dtype, seed=4)
    parameters = {"init": X[:9].copy(), "n_init": 1, "tol": 0.0, "max_iter": 4, "empty": "keep"}
    oracle = KMeans(9, device="reference", **parameters).fit(X)
    counts = counts_of(monkeypatch)
    model = KMeans(9, device="cuda", **parameters).fit(X)
    assert answer(model) == answer(oracle)
    assert counts or model.n_iter_ < 3


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("empty", ["relocate", "keep"])
def test_clusters_that_become_empty_on_the_way(monkeypatch, empty):
    """Two centres of a far pair of groups drift apart, and leave the third between them."""
    k = 20
    X = clusters(230, 12, k - 3, "float32", seed=2)
    drift = np.zeros((120, 12), np.float32)
    drift[:, 0] = np.concatenate([np.linspace(60, 67, 60), np.linspace(73, 80, 60)])
    X = np.concatenate([X, drift])
    start = np.concatenate([X[: k - 3], drift[[50, 59, 60]]])
    start[-3:, 0] = 66.0, 69.5, 72.0
    parameters = {"init": start, "n_init": 1, "tol": 0.0, "max_iter": 40, "empty": empty}
    oracle = KMeans(k, device="reference", **parameters).fit(X)
    counts, emptied = counts_of(monkeypatch), []
    go_back = tensor_run.TensorRun.go_back

    def noted(run, iteration):
        emptied.append(run.pruning is not None and run.pruning.bounds_valid)
        go_back(run, iteration)

    monkeypatch.setattr(tensor_run.TensorRun, "go_back", noted)
    model = KMeans(k, device="cuda", **parameters).fit(X)
    assert answer(model) == answer(oracle)
    assert max(counts) > 0
    # That end was met with bounds; with "keep" nobody goes back.
    assert any(emptied) or empty == "keep"


def test_what_is_between_iterations_makes_bounds_unknown():
    k = 12
    X = clusters(150, 12, k, "float32", seed=5)
    rows = choose("cuda", X, None, None)
    rows.start(X[:k].copy(), "lloyd")
    run = rows.run
    run.launch(1, 1, False)
    run.status(1)
    run.launch(2, 3, False)
    assert run.pruning.bounds_valid
    again = lambda: run.finish(run.memory.sums, 4)  # noqa: E731
    for act in (run.assign, run.end, lambda: run.go_back(3), again):
        run.pruning.bounds_valid = True
        act()
        assert not run.pruning.bounds_valid


def test_runs_that_are_watched():
    k, found = 18, []
    X = clusters(200, 12, k, "float32", seed=6)
    for rows in (choose("cuda", X, None, None), Reference(X, None)):
        result = run_iterations(
            rows, X[:k].copy(), algorithm="lloyd", rule=Shift(0.0), max_iter=7, empty="relocate",
            history=True,
        )  # fmt: skip
        found.append((result.history, on_host(result.labels).tolist(), result.n_iter))
    assert found[0] == found[1]
    assert len(found[0][0]) > 4


def test_shapes_that_are_not_slow_are_scanned(monkeypatch):
    monkeypatch.setattr(dispatch, "MIN_PRUNED_PRODUCTS", 1e11)
    X = clusters(200, 12, 20, "float32")
    counts = counts_of(monkeypatch)
    KMeans(20, init=X[:20].copy(), device="cuda", max_iter=6).fit(X)
    assert counts == []


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("flavour", "d", "dtype"),
    [
        *product(["gauss", "offset", "outlier", "constant", "wide"], [12], ["float32"]),
        *product(["gauss", "outlier"], [12], ["float64"]),
        ("gauss", 300, "float32"),
    ],
)
def test_bounds_enclose_the_distances(monkeypatch, flavour, d, dtype):
    # Centres stay where rows were assigned to them.
    monkeypatch.setattr(tensor_run.TensorRun, "update", lambda run: [])
    n, k = 150, 12
    X = rows_of(flavour, n, d, dtype, seed=8)
    C = X[:k] * X.dtype.type(0.75) + X[k : 2 * k] * X.dtype.type(0.25)
    rows = choose("cuda", X, None, None)
    rows.start(C, "lloyd")
    run = rows.run
    run.pruning = Pruning(n, k, run.rows.device)
    run.memory.labels.zero_()
    run.pruning.iterate(run.memory, run.update, 1)
    upper, lower, own, others = assert_enclosed(run)
    # Some are known, but where the frame holds few of such rows.
    assert len(upper) > 0 or flavour == "wide"
    if flavour == "gauss":
        # By not much more than half precision leaves out.
        np.testing.assert_allclose(upper.astype(float), own.astype(float), rtol=0.01)
        np.testing.assert_allclose(lower.astype(float), others.astype(float), rtol=0.01)


def test_a_device_that_has_halted_reads_no_names():
    """None were written: what is there names no centre, or memory beyond all would be read."""
    k = 12
    X = clusters(150, 12, k, "float32")
    rows = choose("cuda", X, None, None)
    rows.start(X[:k].copy(), "lloyd")
    run = rows.run
    run.launch(1, 1, False)
    run.memory.run_state[state.STOPPED.value] = 1
    run.pruning = Pruning(len(X), k, run.rows.device)
    before = on_host(run.memory.labels).copy()
    assert bool((run.pruning.largest == -1).all())
    run.pruning.iterate(run.memory, run.update, 1)
    assert bool((run.pruning.largest == -1).all())
    assert (on_host(run.memory.labels) == before).all()
    counts = on_host(run.memory.run_state)
    assert counts[state.N_PRUNED.value] == counts[state.N_ACTIVE.value] == 0


@pytest.mark.parametrize("verbose", [0, 1])
def test_bounds_that_spare_nothing_are_given_up(monkeypatch, verbose):
    monkeypatch.setattr(pruning, "TRIED", 2)
    monkeypatch.setattr(pruning, "WORTH", 1)
    k = 20
    X = clusters(250, 12, k, "float32")
    parameters = {"init": X[:k].copy(), "n_init": 1, "tol": 0.0, "max_iter": 9}
    oracle = KMeans(k, device="reference", **parameters).fit(X)
    counts = counts_of(monkeypatch)
    monkeypatch.setattr("lloydia.backends.cuda.run_setup.lag_of", lambda data, k: 1)
    model = KMeans(k, device="cuda", verbose=verbose, **parameters).fit(X)
    assert answer(model) == answer(oracle)
    assert 2 <= len(counts) < model.n_iter_ - 2


def test_without_memory_all_are_scored(monkeypatch):
    monkeypatch.setattr(pruning, "free_bytes", lambda device, needed: needed - 1)
    X = clusters(200, 12, 20, "float32")
    counts = counts_of(monkeypatch)
    KMeans(20, init=X[:20].copy(), device="cuda", max_iter=6).fit(X)
    assert counts == []


def test_the_fastest_centres():
    k, d, n_slots, count, device = 60, 12, 5, largest_moves.N_LARGEST, place("cuda")
    rng = np.random.default_rng(3)
    rows = place_rows(rng.normal(size=(50, d)).astype("float32"), None, "cuda")
    fp16_rows = Fp16Rows(rows)
    replay(*fp16_rows.storing)
    scale = float(fp16_rows.numbers[0, 0])
    for equal in (0, 50, 60):
        squares = rng.exponential(size=k) ** 4
        squares[:equal] = squares[0]
        squares[7] = 0.0
        report = np.zeros((n_slots, HEAD.value + k))
        report[2, HEAD.value :] = squares
        there = torch.from_numpy(report).to(device)
        run_state = torch.zeros(state.SIZE, dtype=torch.int32, device=device)
        run_state[state.ITERATION.value] = 7
        movements = torch.full((k + 1,), -1.0, device=device)
        names = torch.full((count,), -7, dtype=torch.int32, device=device)
        queue_largest_moves(
            there.view(torch.int64), d, fp16_rows.numbers, movements, names, run_state
        )
        found, chosen = movements.cpu().numpy().astype(float), names.cpu().numpy()
        n_chosen = int((chosen >= 0).sum())
        assert (chosen[n_chosen:] == -1).all()
        chosen = chosen[:n_chosen]
        far = np.sqrt(squares) * scale
        assert len(set(chosen.tolist())) == n_chosen < count
        others = np.setdiff1d(np.arange(k), chosen)
        assert (found[:k] >= far).all()
        np.testing.assert_allclose(found[:k], far, rtol=1e-5)
        assert found[k] == found[others].max()
        if n_chosen:
            assert far[chosen].min() > far[others].max()
        assert n_chosen == count - 1 or equal
