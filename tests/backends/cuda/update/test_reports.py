"""What reports of iterations tell, and which of them nobody needs to look at."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia import KMeans
from lloydia.backends import choose
from lloydia.backends.cuda import run_setup
from lloydia.backends.cuda.device_functions.iteration_report import CHANGED, EMPTY, HEAD, RECHECKED
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.iterations import Iterations
from lloydia.backends.cuda.update.reports import (
    ContinuingIterations,
    Reports,
    continuing_iterations,
    status_of,
)
from lloydia.backends.reference import Reference
from lloydia.loop.run import run_iterations
from lloydia.stopping import Labels, Shift
from table import answer, blobs


def reports(changed, empty, shifts, rechecked=0):
    """Return reports of two clusters, whose movements are shares of the shift."""
    out = np.zeros((len(changed), HEAD.value + 2), np.int64)
    out[:, CHANGED.value], out[:, EMPTY.value], out[:, RECHECKED.value] = changed, empty, rechecked
    out.view(np.float64)[:, HEAD.value :] = np.array(shifts)[:, None] * [0.25, 0.75]
    return out


@pytest.mark.parametrize(
    ("changed", "empty", "shifts", "empty_stops", "count"),
    [
        ([9, 8, 7, 6], [0, 0, 0, 0], [4.0, 3.0, 2.0, 1.5], 1, 4),
        ([9, 0, 7, 6], [0, 0, 0, 0], [4.0, 3.0, 2.0, 1.5], 1, 1),
        ([9, 8, 7, 6], [0, 0, 1, 0], [4.0, 3.0, 2.0, 1.5], 1, 2),
        ([9, 8, 7, 6], [0, 0, 1, 0], [4.0, 3.0, 2.0, 1.5], 0, 4),
        ([9, 8, 7, 6], [0, 0, 0, 0], [4.0, 1.0, 2.0, 1.5], 1, 1),
        ([0, 8], [0, 0], [4.0, 3.0], 1, 0),
        ([9], [0], [4.0], 1, 1),
    ],
)
def test_iterations_that_end_nothing(changed, empty, shifts, empty_stops, count):
    found = reports(changed, empty, shifts, rechecked=np.arange(1, len(changed) + 1))
    each = [
        one.changed > 0 and one.shift > 1.0 and not (empty_stops and one.empty)
        for one in map(status_of, found)
    ]
    last = changed[count - 1] if count else 0
    expected = ContinuingIterations(count, sum(range(1, count + 1)), 0, last, False in each)
    assert continuing_iterations(found, empty_stops, 1.0) == expected
    assert count == (each.index(False) if False in each else len(each))


def test_reports_come_together_and_again():
    source = torch.from_numpy(reports([5, 4, 3, 2], [0] * 4, [1.0] * 4))
    coming = Reports(source, reports_per_copy=2)
    coming.ask(1, 1)
    source[1, CHANGED.value] = 40
    coming.ask(2, 2)
    source[1:3] = 0
    assert [coming.status(i).changed for i in (2, 1)] == [3, 40]
    # Iteration 5 takes the place of the first.
    source[1, CHANGED.value] = 50
    coming.ask(5, 5)
    assert [coming.status(i).changed for i in (5, 2)] == [50, 3]


def test_reports_are_passed_over_as_they_come():
    source = torch.from_numpy(reports([6, 5, 4, 3], [0] * 4, [4.0, 4.0, 4.0, 0.5], [1, 2, 3, 4]))
    coming = Reports(source, reports_per_copy=3)
    coming.ask(1, 3)
    coming.ask(4, 4)
    assert coming.wait_continuing(1, 9, 1, 1.0) == ContinuingIterations(2, 5, 0, 4, True)
    assert coming.wait_continuing(1, 1, 1, 1.0) == ContinuingIterations(1, 2, 0, 5, False)
    # In the first slot, by itself.
    assert coming.wait_continuing(4, 9, 1, 1.0) == ContinuingIterations(1, 1, 0, 6, False)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize(
    ("d", "tol", "empty"),
    [(2, 0.0, "keep"), (2, 1e-3, "relocate"), (12, 1e-3, "relocate")],
)
def test_nobody_misses_them(monkeypatch, d, tol, empty):
    X = blobs(400 if d == 2 else 120, d, "float32")
    start = np.concatenate([X[:5], X[:1] + 1e3])
    parameters = {"init": start, "tol": tol, "empty": empty, "max_iter": 40 if d == 2 else 6}
    oracle = KMeans(6, device="reference", **parameters).fit(X)
    model = KMeans(6, device="cuda", **parameters).fit(X)
    assert answer(model) == answer(oracle)
    looked = []
    report = Iterations.report
    monkeypatch.setattr(Iterations, "report", lambda *a: looked.append(a[1]) or report(*a))
    again = KMeans(6, device="cuda", **parameters).fit(X)
    assert answer(again) == answer(oracle)
    assert again.n_distances_ == model.n_distances_
    assert again.n_iter_ > 3
    assert len(looked) < again.n_iter_
    monkeypatch.delattr(CUDA, "next_stop")
    slow = KMeans(6, device="cuda", **parameters).fit(X)
    assert (slow.n_distances_, slow.n_rechecked_) == (model.n_distances_, model.n_rechecked_)
    assert answer(slow) == answer(oracle)


@pytest.mark.parametrize(("d", "n", "k", "lag"), [(2, 300, 9, 1), (2, 300, 9, 3), (12, 300, 5, 7)])
def test_no_more_is_on_its_way_than_is_kept(monkeypatch, d, n, k, lag):
    monkeypatch.setattr(run_setup, "lag_of", lambda data, k: lag)
    # Of few rows the next launch waits for the last.
    monkeypatch.setattr(run_setup, "SMALL_FIT_ROWS", 0)
    X = np.random.default_rng(1).normal(size=(n, d)).astype("float32")
    engine, ahead = choose("cuda", X, None, None), []
    launch = Iterations.launch_ahead

    def launched(its):
        launch(its)
        ahead.append(its.launched - its.reported)

    monkeypatch.setattr(Iterations, "launch_ahead", launched)
    options = {"rule": Shift(0.0), "max_iter": 60, "empty": "relocate", "algorithm": "lloyd"}
    result = run_iterations(engine, X[:k].copy(), **options)
    expected = run_iterations(Reference(X, None), X[:k].copy(), **options)
    assert (result.n_iter, result.inertia) == (expected.n_iter, expected.inertia)
    # More iterations than there are slots; reports of as many as are on their way are kept.
    assert result.n_iter > lag + 4
    assert max(ahead) <= engine.lag + 1


@pytest.mark.parametrize("d", [2, 12])
def test_an_engine_counts_what_it_passes_over(d):
    X = np.random.default_rng(0).normal(size=(300, d)).astype("float32")
    oracle, engine = choose("cuda", X, None, None), choose("cuda", X, None, None)
    for each in oracle, engine:
        each.tolerance = 0.0
        each.start(X[:4].copy(), "lloyd", max_iter=6)
    told = [oracle.iterate(False).result() for _ in range(6)]
    late = engine.next_stop(Shift(0.0))
    late.begin()
    assert late.result() == told[-1]
    assert engine.n_distances == oracle.n_distances == 6 * 300 * 4
    # What is no bound lets no iteration pass.
    engine.start(X[:4].copy(), "lloyd", max_iter=6)
    assert [engine.next_stop(Labels(0.0)).result() for _ in range(3)] == told[:3]
