"""What reports of iterations tell, and which of them nobody needs to look at."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia import KMeans
from lloydia.backends import choose
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.means import CHANGED, EMPTY, HEAD, RECHECKED
from lloydia.backends.cuda.reports import Reports, passed, read
from lloydia.stopping import Shift
from table import answer, blobs


def reports(changed, empty, shifts, rechecked=0):
    """Return reports of two clusters, whose movements are shares of the shift."""
    out = np.zeros((len(changed), HEAD.value + 2), np.int64)
    out[:, CHANGED.value], out[:, EMPTY.value], out[:, RECHECKED.value] = changed, empty, rechecked
    out.view(np.float64)[:, HEAD.value :] = np.array(shifts)[:, None] * [0.25, 0.75]
    return out


@pytest.mark.parametrize(
    ("changed", "empty", "shifts", "settles", "count"),
    [
        ([9, 8, 7, 6], [0, 0, 0, 0], [4.0, 3.0, 2.0, 1.5], 1, 3),
        ([9, 0, 7, 6], [0, 0, 0, 0], [4.0, 3.0, 2.0, 1.5], 1, 1),
        ([9, 8, 7, 6], [0, 0, 1, 0], [4.0, 3.0, 2.0, 1.5], 1, 2),
        ([9, 8, 7, 6], [0, 0, 1, 0], [4.0, 3.0, 2.0, 1.5], 0, 3),
        ([9, 8, 7, 6], [0, 0, 0, 0], [4.0, 1.0, 2.0, 1.5], 1, 1),
        ([0, 8], [0, 0], [4.0, 3.0], 1, 0),
        ([9], [0], [4.0], 1, 0),
    ],
)
def test_iterations_that_end_nothing(changed, empty, shifts, settles, count):
    found = reports(changed, empty, shifts, rechecked=np.arange(1, len(changed) + 1))
    assert passed(found, settles, 1.0) == (count, sum(range(1, count + 1)))
    # As one by one.
    each = [
        one.changed > 0 and one.shift > 1.0 and not (settles and one.empty) for one in read(found)
    ]
    assert count == min(each.index(False) if False in each else len(each), len(each) - 1)


def test_reports_come_together_and_again():
    source = torch.from_numpy(reports([5, 4, 3, 2], [0] * 4, [1.0] * 4))
    coming = Reports(source, together=2)
    coming.ask(1, 1)
    source[1, CHANGED.value] = 40
    coming.ask(2, 2)
    source[1:3] = 0
    assert [coming.answer(i).changed for i in (2, 1)] == [3, 40]
    # Iteration 5 takes the place of the first.
    source[1, CHANGED.value] = 50
    coming.ask(5, 5)
    assert [coming.answer(i).changed for i in (5, 2)] == [50, 3]


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("tol", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize("empty", ["relocate", "keep"])
def test_nobody_misses_them(monkeypatch, tol, empty):
    X = blobs(400, 2, "float32")
    start = np.concatenate([X[:5], X[:1] + 1e3])
    parameters = {"init": start, "tol": tol, "empty": empty, "max_iter": 40}
    oracle = KMeans(6, device="reference", **parameters).fit(X)
    model = KMeans(6, device="cuda", **parameters).fit(X)
    assert answer(model) == answer(oracle)
    looked = []
    report = CUDA.report
    monkeypatch.setattr(CUDA, "report", lambda *a: looked.append(a[1]) or report(*a))
    again = KMeans(6, device="cuda", **parameters).fit(X)
    assert answer(again) == answer(oracle)
    assert again.n_distances_ == model.n_distances_
    assert again.n_iter_ > 3
    assert len(looked) < again.n_iter_
    monkeypatch.delattr(CUDA, "passed")
    slow = KMeans(6, device="cuda", **parameters).fit(X)
    assert (slow.n_distances_, slow.n_rechecked_) == (model.n_distances_, model.n_rechecked_)
    assert answer(slow) == answer(oracle)


def test_an_engine_counts_what_it_passes_over():
    X = np.random.default_rng(0).normal(size=(300, 2)).astype("float32")
    engine = choose("cuda", X, None, None)
    engine.tolerance = 0.0
    engine.start(X[:4].copy(), "lloyd", True, 6)
    for _ in range(6):
        late = engine.iterate(False)
    assert engine.passed(1, Shift(0.0)) == 5
    assert engine.n_distances == 5 * 300 * 4
    assert late.result().iteration == 6
    assert engine.passed(6, Shift(0.0)) == 0
