"""Runs by launches that others have recorded, in other memory: the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda import dispatch
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.reference import Reference
from lloydia.data.arrays import on_host
from lloydia.loop.run import run_iterations
from lloydia.loop.tolerance import Tolerance
from lloydia.stopping import Labels, Shift
from replayed import replay
from table import blobs, weights_of

N, D, K = 120, 12, 5
FEW = 60


@pytest.fixture
def driver(monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("launches are replayed in the interpreter only")
    # Memory begins with what is no number, or a large one: nothing is 0 that nobody has made so.
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield replay(monkeypatch)
    torch.use_deterministic_algorithms(False)


def fit(engine, start, max_iter=3, shift=0.0, tol=None, rule=None, empty="relocate"):
    if tol is not None:
        rule = Tolerance(tol, engine.mean_variance, engine.magnitudes)
    result = run_iterations(
        engine, start, algorithm="lloyd", rule=rule or Shift(shift), max_iter=max_iter, empty=empty
    )
    labels, centers = on_host(result.labels), on_host(result.centers)
    return labels.tobytes(), centers.tobytes(), result.inertia, result.n_iter


@pytest.mark.parametrize("case", ["start there", "start on the host", "weights"])
def test_a_fit_of_a_shape_that_is_known_launches_nothing_by_name(driver, case):
    weights = weights_of("wide", N) if case == "weights" else None
    every = torch.from_numpy(blobs(4 * N, D, "float32"))
    kept, named = [], []
    for rows in every.split(N):
        before, first = driver.by_name, rows[:K].numpy()
        # All of them stay: memory of its own for each.
        kept.append(CUDA(rows, weights, "cuda"))
        found = fit(kept[-1], rows[:K].clone() if case == "start there" else first)
        named.append(driver.by_name - before)
        assert found == fit(Reference(rows.numpy(), weights), first)
    # The first one waits for its grid, the second is the first that guesses it.
    assert named[0] > 0
    assert named[2:] == [0, 0]
    assert driver.by_number > 0


def test_a_start_beside_the_rows_comes_with_the_first_iteration(driver, monkeypatch):
    calls, queue, kept = [], driver.queue, []

    def queued(some, times):
        kernels = [driver.kernels[number][0] for number in some.configs.table[:, 1].tolist()]
        calls.append([kernel.fn.__name__ for kernel in kernels])
        queue(some, times)

    monkeypatch.setattr(driver, "queue", queued)
    # Some starts are part of the rows: recorded launches know memory by its address.
    starts = [torch.clone, torch.clone, lambda part: part, torch.clone, lambda part: part]
    for rows, start in zip(torch.from_numpy(blobs(5 * N, D, "float32")).split(N), starts):
        calls.clear()
        kept.append(CUDA(rows, None, "cuda"))
        found = fit(kept[-1], start(rows[:K]))
        assert found == fit(Reference(rows.numpy(), None), rows[:K].numpy())
    storing, first, *others = calls
    assert storing == ["frame_kernel", "rows_kernel", "reach_kernel", "grid_kernel"]
    assert first[0] == "start_kernel"
    assert first[-1] == "finish_kernel"
    assert others
    assert not any("start_kernel" in names for names in others)


def test_a_start_that_nobody_looked_at_is_refused(driver):
    for rows in torch.from_numpy(blobs(3 * N, D, "float32")).split(N):
        start = rows[:K].clone()
        fit(CUDA(rows, None, "cuda"), start)
    start[2, 3] = float("nan")
    named = driver.by_name
    with pytest.raises(ValueError, match="NaN"):
        fit(CUDA(rows, None, "cuda"), start)
    assert driver.by_name == named


def test_a_run_after_an_assignment_over_the_same_rows(driver):
    rows, named = torch.from_numpy(blobs(N, D, "float32")), []
    start, own = rows[:K].numpy(), Reference(rows.numpy(), None)
    for _ in range(3):
        engine, before = CUDA(rows.clone(), None, "cuda"), driver.by_name
        # An assignment by itself; then iterations with the halves that are there.
        for one in (engine, own):
            one.classify(start)
        assert (on_host(engine.labels()) == own.labels()).all()
        assert fit(engine, start) == fit(own, start)
        named.append(driver.by_name - before)
    # The second one is the first that guesses its grid.
    assert named[0] > 0
    assert named[2] == 0


def test_a_recording_has_the_same_arguments_each_time(recorded):
    rows = blobs(40, 10, "float32")
    engine, own = CUDA(torch.from_numpy(rows), None, "cuda"), Reference(rows, None)
    assert fit(engine, rows[:3].copy(), 6) == fit(own, rows[:3].copy(), 6)
    again = [times for times in recorded.values() if len(times) > 1]
    assert again
    for first, *others in again:
        assert first
        assert all(each == first for each in others)


def test_a_run_that_found_its_grid_goes_on_after_a_relocation(driver):
    kept = []
    for rows in torch.from_numpy(blobs(3 * FEW, 2, "float32")).split(FEW):
        start = rows[:K].numpy().copy()
        start[2] = 1e3
        kept.append(CUDA(rows, None, "cuda"))
        assert fit(kept[-1], start, 5) == fit(Reference(rows.numpy(), None), start, 5)


def test_a_tolerance_ends_runs_where_the_grid_is_found_guessed_and_guessed_wrongly(driver):
    every = torch.from_numpy(blobs(3 * FEW, 16, "float32"))
    # Sums of these need more limbs.
    every[2 * FEW :: 7] *= 1e-6
    limbs, named, kept = [], [], []
    for rows in every.split(FEW):
        before = driver.by_name
        kept.append(CUDA(rows, None, "cuda"))
        found = fit(kept[-1], rows[:K].clone(), 20, tol=1e-4)
        named.append(driver.by_name - before)
        assert found == fit(Reference(rows.numpy(), None), rows[:K].numpy(), 20, tol=1e-4)
        assert found[3] < 20
        limbs.append(kept[-1].data.grid.n_limbs)
    assert limbs[0] == limbs[1] < limbs[2]
    assert driver.by_number > 0
    assert named[1] < named[0]


# Those in which runs meet the records of others that relocated rows.
@pytest.mark.parametrize("seed", [7, 12, 13, 14])
def test_runs_of_all_kinds_one_after_the_other(driver, seed):
    draw = np.random.default_rng(seed)
    d, dtype = (2, 12)[seed % 2], ("float32", "float64")[seed // 2 % 2]
    # Few kinds, so that some meet records of their own.
    ends, counts = draw.choice(4, 2, replace=False), draw.choice([1, 2, 5, 9], 2)
    engine, kept = None, []
    for _ in range(20 if d == 2 else 6):
        X, weights = blobs(FEW, d, dtype, seed=int(draw.integers(5))), None
        kind, new = draw.random(), draw.choice(5) != 2
        if kind < 0.25:
            X[3] *= 1e12 if kind < 0.15 else 2.0**-60
        elif kind < 0.4:
            new, weights = True, weights_of("wide", FEW)
        if new or engine is None or engine.data.weights is not None:
            engine, rows = CUDA(torch.from_numpy(X.copy()), weights, "cuda"), X
        start, own = rows[:K].copy(), Reference(rows, weights)
        if draw.random() < 0.4:
            start[2] = 1e3
        options = [{}, {"rule": Labels()}, {"tol": 1e-4}, {"tol": 0.1}][draw.choice(ends)]
        options["max_iter"] = int(draw.choice(counts))
        options["empty"] = "keep" if draw.random() < 0.2 else "relocate"
        there = draw.random() < 0.5 and not engine.data.knows_magnitudes
        begun = torch.from_numpy(start.copy()) if there else start
        assert fit(engine, begun, **options) == fit(own, start, **options)
        # All of them stay: memory of its own for each.
        kept += [engine, engine.labels(), begun]


# At the start, after each return to an iteration before, and in between where they are many.
@pytest.mark.parametrize(("case", "packings"), [("all", 1), ("rule", 2), ("empty", 3), ("many", 4)])
def test_centres_are_packed_by_the_end_of_the_iteration_before(driver, case, packings, monkeypatch):
    kept = []
    if case == "many":
        monkeypatch.setattr(dispatch, "MAX_PACKED_CENTERS", K - 1)
    for rows in torch.from_numpy(blobs(3 * FEW, D, "float32")).split(FEW):
        start = rows[:K].numpy().copy()
        options = {"max_iter": 3} if case in ("all", "many") else {"max_iter": 5, "shift": 30.0}
        if case == "empty":
            start[2] = 1e3
        kept.append(CUDA(rows, None, "cuda"))
        driver.repeated.clear()
        found = fit(kept[-1], start, **options)
        assert found == fit(Reference(rows.numpy(), None), start, **options)
    count = driver.repeated
    assert count["centers_kernel"] == count["half_norms_kernel"] == packings
    assert count["finish_kernel"] >= 3
