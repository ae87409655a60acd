"""Fits of known forms are launched before anything is made of them: plans are replayed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import known_forms
from known_forms import oracle
from lloydia import KMeans
from lloydia.backends.cuda import again, first_launch, low_run
from lloydia.exact import sums
from lloydia.exact.distance import largest_magnitude
from lloydia.progress.iterations import watch
from replayed import replay
from table import answer

N, K = 60, 4


@pytest.fixture
def found(device, monkeypatch):
    """Return a list of what first launches came to by themselves, each time there is one."""
    if torch.cuda.is_available():
        pytest.skip("launches are replayed in the interpreter only")
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory begins with no numbers
    replay(monkeypatch)
    outcomes, begin = [], first_launch.FirstLaunch.__init__
    outcome = first_launch.FirstLaunch.outcome

    def begun(self, *args):
        begin(self, *args)
        outcomes.append(None)

    def noted(self, most_bits):
        outcomes[-1] = outcome(self, most_bits)
        return outcomes[-1]

    monkeypatch.setattr(first_launch.FirstLaunch, "__init__", begun)
    monkeypatch.setattr(first_launch.FirstLaunch, "outcome", noted)
    yield outcomes
    torch.use_deterministic_algorithms(False)


def rows_of(seed, dtype="float32", d=2, n=N):
    return known_forms.rows_of(seed, dtype, d, n)


def start_of(X, k=K):
    return known_forms.start_of(X, k)


def known_form(X, k=K, **parameters):
    return known_forms.known_form(X, k, **parameters)


@pytest.mark.parametrize(
    ("dtype", "d", "k", "n"),
    [
        ("float32", 2, 4, N),
        ("float32", 1, 3, 700),
        ("float64", 3, 4, N),
        ("float16", 8, 3, N),
        ("bfloat16", 4, 12, 600),
    ],
)
def test_a_result_that_is_there_at_once(dtype, d, k, n, found):
    X = rows_of(1, dtype, d, n)
    model = known_form(X, k, max_iter=2).fit(X)
    assert found[-1] is not None
    assert answer(model) == oracle(model, X)
    assert model.n_distances_ == 3 * n * k
    assert (model.converged_, model.algorithm_) == (False, "lloyd")
    assert model.device_ == "cuda:0"


def test_rows_that_were_checked_again_are_counted(found):
    X = rows_of(1)
    model = known_form(X)
    model.init = X[::7][:K].clone()
    X[:30] = (model.init[0] + model.init[1]) / 2
    rechecked = model.fit(X).n_rechecked_
    assert found[-1] is not None
    again._known.clear()
    assert KMeans(**model.get_params()).fit(X).n_rechecked_ == rechecked > 0


@pytest.mark.parametrize("tol", [1e-4, 0.3])
def test_a_rule_is_for_the_loop(tol, found):
    X = rows_of(1)
    model = known_form(X, tol=tol, max_iter=50).fit(X)
    assert found[-1:] == [None]
    assert answer(model) == oracle(model, X)


def test_more_iterations_than_are_launched_together(found):
    X = rows_of(1, n=2000)
    model = known_form(X, max_iter=17).fit(X)
    assert found[-1:] == [None]
    assert model.n_iter_ == 17
    assert answer(model) == oracle(model, X)


def test_a_run_that_converges(found):
    X = rows_of(1)
    model = known_form(X, max_iter=14).fit(X)
    assert model.converged_
    assert found[-1:] == [None]
    assert answer(model) == oracle(model, X)


def test_centres_that_rest_while_rows_change(found):
    """Rows get their first labels, and centres stay where they were: the rule ends the run."""
    X = torch.ones((N, 1))
    X[::2] = -1.0
    model = known_form(X, 2, max_iter=1)
    model.init = torch.tensor([[-1.0], [1.0]])
    assert model.fit(X).converged_
    assert found[-1:] == [None]
    assert answer(model) == oracle(model, X)


@pytest.mark.parametrize("max_iter", [1, 3])
@pytest.mark.parametrize("empty", ["relocate", "keep"])
def test_empty_clusters(empty, max_iter, found):
    X = rows_of(1)
    model = known_form(X, empty=empty, max_iter=max_iter)
    model.init[1] = 1e3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert (found[-1] is None) == (empty == "relocate")
    assert answer(model) == oracle(model, X)


def test_an_empty_cluster_that_is_kept_is_warned_of(found):
    X = rows_of(1)
    model = known_form(X, empty="keep")
    model.init[1] = 1e3
    with pytest.warns(match=r"distinct clusters \(3\)"):
        model.fit(X)
    assert found[-1] is not None


def test_rows_whose_sums_have_more_limbs_than_there_is_room_for(found):
    X = rows_of(3)
    model = known_form(X)
    X[3], X[4] = 1e30, 1e-30
    assert sums.Grid.choose(sums.Extent.of(X.numpy()), np.float32).n_limbs > low_run.LIMBS
    assert answer(model.fit(X)) == oracle(model, X)
    assert found[-1:] == [None]


def too_far(X):
    """Return a factor by which rows are just too far from each other."""
    return 1.1 * largest_magnitude(X.shape[1], len(X)) / float(X.abs().max())


@pytest.mark.parametrize(
    ("dtype", "spoil", "message"),
    [
        ("float32", lambda X, start: X[5].fill_(torch.nan), "Input X contains NaN"),
        ("float32", lambda X, start: start[1].fill_(torch.inf), "init contains infinity"),
        ("float64", lambda X, start: X[5].fill_(1e160), "rescale the data"),
        ("float64", lambda X, start: start[1].fill_(1e160), "rescale the data"),
        ("float64", lambda X, start: (X.mul_(too_far(X)), start.mul_(1e140)), "rescale the data"),
    ],
)
def test_numbers_are_refused(dtype, spoil, message, found):
    X = rows_of(3, dtype)
    model = known_form(X).fit(X)
    before = answer(model)
    spoil(X, model.init)
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    assert answer(model) == before
    assert found[-1] is None


def test_rows_and_starts_that_begin_anywhere(found):
    X = rows_of(1, n=N + 1)
    model = known_form(X[:N].clone())
    expected = oracle(KMeans(**model.get_params()), X[1:])
    assert len(found) == 0
    assert X[1:].data_ptr() % 16
    assert answer(model.fit(X[1:])) == expected
    model.init = torch.cat([model.init[:1], model.init])[1:]
    assert model.init.data_ptr() % 16
    assert answer(model.fit(X[1:].clone())) == expected
    assert len(found) == 0


def test_a_start_that_lies_in_the_rows(found):
    X = rows_of(1)
    model = known_form(X)
    model.init = X[8 : 8 + K]
    before = X.clone()
    assert answer(model.fit(X)) == oracle(model, X)
    assert found[-1] is not None
    assert torch.equal(X, before)


def test_a_fit_that_is_watched_is_not_hurried(found):
    X = rows_of(1)
    model = known_form(X)
    reports = []
    with watch(reports.append):
        model.fit(X)
    assert [report.iteration for report in reports] == [1, 2, 3]
    assert not found


def test_fits_that_are_watched_teach_nothing_to_others(found):
    """They find no limit: a rule would wait for one for ever."""
    X = rows_of(1)
    model = KMeans(K, init=start_of(X), n_init=1, tol=0.3, max_iter=50)
    for _ in range(3):
        with watch(lambda report: None):
            model.fit(X)
    for _ in range(3):
        assert answer(model.fit(X)) == oracle(model, X)
    assert model.converged_
    assert len(found) == 2


def test_results_are_apart(found):
    X, Y = rows_of(1), rows_of(2)
    model = known_form(X).fit(X)
    first = answer(model)
    other = KMeans(**model.get_params()).set_params(init=start_of(Y)).fit(Y)
    assert len(found) == 2
    assert answer(model) == first
    assert answer(other) == oracle(other, Y)


def test_what_is_queued_in_vain_is_waited_for(found, monkeypatch):
    noted = []
    X = rows_of(1)
    model = known_form(X)
    monkeypatch.setattr(first_launch.Fetched, "note", lambda fetched: noted.append(fetched))
    monkeypatch.setattr(first_launch, "stream_of", lambda device: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(X)
    assert len(noted) == 1
