"""Runs that find their grid themselves: kernels are interpreted."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
import torch

from lloydia import KMeans, assign
from lloydia.backends import choose
from lloydia.backends.cuda import dataset, iterations, run_setup
from lloydia.backends.cuda.low_dim import grid as low_grid
from lloydia.backends.cuda.low_dim import run as low_run
from lloydia.exact import sums
from lloydia.stopping import Shift
from table import answer, blobs


def begun(X, k=3):
    """Return an engine after one iteration."""
    engine = choose("cuda", X, None, None)
    engine.start(X[:k].copy(), "lloyd")
    engine.iterate(False).result()
    return engine


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_the_grid_is_that_of_the_host(d, dtype):
    X = blobs(300, d, dtype) * 2.0 ** np.arange(-4, d - 4)
    X[5:9, 0] = 0.0
    X = X.astype(dtype)
    engine = begun(X)
    run = engine.run
    assert run.launches.fixed_point_grid is None
    grid = sums.Grid.choose(sums.Magnitudes.of(X), X.dtype)
    floats = run.launches.numbers.cpu().numpy().view(np.float64)
    m = d + 1
    assert (floats[:m] == grid.scale).all()
    assert (floats[m : 2 * m] == grid.quantum).all()
    assert (floats[2 * m : 3 * m] == 1.0 / grid.quantum).all()
    assert (run.launches.numbers.cpu().numpy()[4 * m : 5 * m] == grid.exponents).all()
    assert run.reports.part("bounds")[2 * d] == grid.n_limbs


def test_what_a_run_has_found_is_what_the_host_would_measure():
    X = blobs(70, 2, "float32")
    engine = begun(X)
    found, expected = engine.magnitudes(), sums.Magnitudes.of(X)
    assert (found.largest == expected.largest).all()
    assert (found.smallest == expected.smallest).all()


def wide(dtype):
    """Return rows whose sums need more limbs than a run that measures has room for."""
    X = blobs(40, 2, dtype)
    X[3] = 1e30
    X[4] = 1e-30
    assert sums.Grid.choose(sums.Magnitudes.of(X), X.dtype).n_limbs > low_run.LIMBS
    return X


@pytest.mark.parametrize("history", [False, True])
def test_a_run_without_room_is_run_again(history):
    X = wide("float32")
    parameters = {"init": X[:3], "max_iter": 3, "tol": 0, "verbose": int(history)}
    oracle = KMeans(3, device="reference", **parameters).fit(X)
    model = KMeans(3, device="cuda", **parameters).fit(X)
    assert answer(model) == answer(oracle)
    assert (model.predict(X) == model.labels_).all()


def test_labels_without_a_fit_need_no_room():
    X = wide("float32")
    labels, inertia = assign(X, X[:3], device="cuda")
    expected = assign(X, X[:3], device="reference")
    assert (labels == expected[0]).all()
    assert inertia == expected[1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused_by_the_first_report(value):
    X = blobs(40, 2, "float32")
    engine = choose("cuda", X, None, None)
    engine.data.X[39, 1] = value
    engine.start(X[:3].copy(), "lloyd")
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        engine.iterate(False).result()


@pytest.mark.parametrize("d", [2, 10])
def test_the_end_is_queued_with_the_last_iteration(d, monkeypatch):
    X = blobs(60, d, "float32")
    engine = choose("cuda", X, None, None)
    engine.start(X[:4].copy(), "lloyd", max_iter=2)
    for late in [engine.iterate(False) for _ in range(2)]:
        report = late.result()
    assert report.n_changed > 0
    monkeypatch.setattr(type(engine.run), "end", None)
    engine.rewind(2)
    engine.assign()
    labels, inertia = assign(X, engine.centers().cpu().numpy(), device="reference")
    assert (engine.labels().cpu().numpy() == labels).all()
    assert float(engine.inertia()) == inertia
    assert engine.full == (len(np.unique(labels)) == 4)


@pytest.mark.parametrize("d", [2, 10])
def test_what_was_queued_for_the_end_is_forgotten_where_a_rule_ends_a_run_before(d):
    X = blobs(60, d, "float32")
    engine = choose("cuda", X, None, None)
    engine.start(X[:4].copy(), "lloyd", max_iter=4)
    waiting = [engine.iterate(False) for _ in range(4)]
    waiting[0].result()
    engine.rewind(1)
    engine.assign()
    labels, inertia = assign(X, engine.centers().cpu().numpy(), device="reference")
    assert (engine.labels().cpu().numpy() == labels).all()
    assert float(engine.inertia()) == inertia


def test_clusters_without_a_row_are_known_at_the_end():
    X = np.repeat(blobs(2, 2, "float32"), 9, axis=0)
    engine = choose("cuda", X, None, None)
    engine.start(np.vstack([X[:1], X[-1:], X[:1] + 99]), "lloyd", empty_stops=False, max_iter=1)
    engine.iterate(False).result()
    engine.rewind(1)
    engine.assign()
    assert float(engine.inertia()) == 0.0
    assert not engine.full


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_start_beside_the_rows_is_left_as_it_is(device, dtype):
    X = torch.from_numpy(blobs(60, 2, "float32")).to(device).to(getattr(torch, dtype))
    start = X[:4].to(torch.float64 if dtype == "float64" else torch.float32)
    before = start.clone()
    parameters = {"max_iter": 3, "tol": 0}
    model = KMeans(4, init=start, **parameters).fit(X)
    oracle = KMeans(4, init=before.cpu().numpy(), device="reference", **parameters)
    assert answer(model) == answer(oracle.fit(X.cpu().numpy()))
    assert (start == before).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [(0, 0), (599, 1)])
def test_a_start_beside_the_rows_that_is_not_finite_is_refused_as_on_the_host(device, value, where):
    X = torch.from_numpy(blobs(900, 2, "float32")).to(device)
    start = X[:600].clone()
    start[where] = value
    with pytest.raises(ValueError, match=r"NaN|infinity") as expected:
        KMeans(600, init=start.cpu().numpy(), device="reference").fit(X.cpu().numpy())
    with pytest.raises(ValueError, match=r"NaN|infinity") as found:
        KMeans(600, init=start).fit(X)
    assert str(found.value) == str(expected.value)
    # The start first, whatever the rows are.
    X[7, 1] = np.inf if np.isnan(value) else np.nan
    with pytest.raises(ValueError, match=r"NaN|infinity") as found:
        KMeans(600, init=start).fit(X)
    assert str(found.value) == str(expected.value)


def test_a_start_beside_the_rows_is_kept_where_the_run_has_no_room(device):
    X = wide("float32")
    rows = torch.from_numpy(X).to(device)
    model = KMeans(3, init=rows[:3], max_iter=3, tol=0).fit(rows)
    oracle = KMeans(3, init=X[:3], max_iter=3, tol=0, device="reference").fit(X)
    assert answer(model) == answer(oracle)


@pytest.fixture
def poisoned(monkeypatch):
    """Have memory that nobody has written hold what nobody wants."""
    empty = torch.empty

    def full(*args, **options):
        out = empty(*args, **options)
        out.untyped_storage().fill_(0x5B)
        return out

    monkeypatch.setattr(torch, "empty", full)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("tol", [0.0, 1e-4])
@pytest.mark.parametrize("case", ["plain", "empty", "kept", "weights", "once", "several", "wide"])
def test_memory_may_hold_anything_before(poisoned, case, tol):
    X = wide("float32") if case == "wide" else blobs(300, 2, "float32")
    start = X[:4].copy()
    if case in ("empty", "kept"):
        start[3] += 1e3
    parameters = {"init": start, "tol": tol, "max_iter": 1 if case == "once" else 20}
    if case == "kept":
        parameters["empty"] = "keep"
    if case == "several":
        parameters |= {"init": "random", "n_init": 3, "random_state": 0}
    weights = np.arange(len(X)) % 3.0 if case == "weights" else None
    oracle = KMeans(4, device="reference", **parameters).fit(X, sample_weight=weights)
    model = KMeans(4, device="cuda", **parameters).fit(X, sample_weight=weights)
    assert answer(model) == answer(oracle)


def test_an_event_is_recorded_after_an_error_too(monkeypatch):
    engine, recorded = begun(blobs(60, 2, "float32")), []

    def replay_times(works, *about):
        for work in works:
            for queue in work():
                queue()
        raise KeyboardInterrupt

    monkeypatch.setattr(low_run, "replay_times", replay_times)
    monkeypatch.setattr(low_run.AsyncCopy, "record_event", lambda copy: recorded.append(copy))
    with pytest.raises(KeyboardInterrupt):
        engine.run.end()
    assert len(recorded) == 1


def test_the_last_run_is_given_back_before_the_next(monkeypatch):
    X = blobs(3000, 2, "float32")
    engine = choose("cuda", X, None, None)
    engine.tolerance, left = 1e-4, []

    def check_memory(needed, device):
        variance = engine.data.variance
        left.append(variance and variance.memory.untyped_storage().nbytes())

    monkeypatch.setattr(run_setup, "check_memory", check_memory)
    for _ in range(2):
        engine.start(X[:4].copy(), "lloyd", max_iter=5)
        engine.iterate(False).result()
    # All that is left of the first run is the spread.
    assert left[0] is None
    assert left[1] < 1000 < engine.run.memory.arena.whole.nbytes


def test_iterations_are_passed_over_on_the_own_device(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 2)).astype("float32")
    engine = choose("cuda", X, None, None)
    engine.tolerance, there = 0.0, []
    engine.start(X[:4].copy(), "lloyd", max_iter=6)
    late = engine.next_stop(Shift(0.0))
    inside = contextmanager(lambda device: (yield there.append(device)))
    monkeypatch.setattr(iterations, "current", inside)
    assert late.result().iteration == 6
    assert there
    assert set(there) == {engine.device}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_staging_is_left_as_it_was_found(dtype):
    X, staging = blobs(300, 8, dtype), low_grid.staging_of(torch.device("cpu"))
    refused = X.copy()
    refused[7, 5] = np.nan
    for rows in (X, refused, X):
        with pytest.raises(ValueError, match="NaN") if rows is refused else nullcontext():
            KMeans(3, device="cuda", init=X[:3]).fit(rows)
        assert low_grid.staging_of(torch.device("cpu")) is staging
        assert not staging.any()


@pytest.fixture
def streams(monkeypatch):
    """Give the current streams of two GPUs, which there need not be."""
    current = {0: 5, 1: 5}
    monkeypatch.setattr(low_grid, "INTERPRETED", False)
    monkeypatch.setattr(low_grid, "stream_of", current.get)
    monkeypatch.setattr(low_grid, "_staging", {})
    monkeypatch.setattr(torch, "zeros", lambda size, **about: np.zeros(size))
    return current


def test_what_does_not_take_turns_meets_at_staging_of_its_own(streams):
    def buffers():
        return [low_grid.staging_of(torch.device("cuda", number)) for number in (0, 1, 0)]

    first, second, again = buffers()
    assert first is again
    assert first is not second
    streams[0] = 6
    third, *_ = buffers()
    assert third is not first
    streams[0] = 5
    assert buffers()[0] is first


def test_two_threads_meet_at_one_staging(streams, monkeypatch):
    device, quicker = torch.device("cuda", 0), []

    def zeros(size, **about):
        if not quicker:  # While one makes a staging, another does.
            quicker.append(None)
            quicker[0] = low_grid.staging_of(device)
        return np.zeros(size)

    monkeypatch.setattr(torch, "zeros", zeros)
    assert low_grid.staging_of(device) is quicker[0]


@pytest.mark.parametrize("d", [1, 3, 8])
@pytest.mark.parametrize("n_zeros", [150, 7 * 512, 20 * 512 + 13])
def test_any_programs_measure_the_same_and_clean_all_but_that(n_zeros, d):
    X = torch.from_numpy(blobs(3000, d, "float64"))
    m, staging, found = d + 1, torch.zeros(17, dtype=torch.int64), []
    bounds, run_state = slice(5 * m, 7 * m), slice(8 * m, 8 * m + 4)
    for programs in (1, 2, 7):
        memory, current = torch.full((n_zeros + 8,), -1), torch.empty_like(X[:4])
        low_grid.measure_kernel[(programs, 1, 1)](
            X, len(X), staging, memory, n_zeros, memory[bounds], sums.bits_a_limb(len(X)),
            memory[: 5 * m], 3, memory[run_state].view(torch.int32), X[:4].clone(), current, 4,
            dataset.INFINITE, d=d, ROWS=512,
        )  # fmt: skip
        assert not staging.any()
        assert (current == X[:4]).all()
        assert (memory[n_zeros:] == -1).all()
        assert not memory[run_state.start : n_zeros].any()
        found.append(memory[: run_state.start].tolist())
    assert found[0] == found[1] == found[2]
    assert found[0][bounds][2 * d] > 0
