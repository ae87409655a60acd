"""Fits of known forms over more features: their first iterations come first; plans are replayed."""

from __future__ import annotations

import warnings

import pytest
import torch

import known_forms
from known_forms import oracle
from lloydia import KMeans
from lloydia.backends.cuda import again, beginning, first_iterations, found_grid, half_centers
from replayed import replay
from table import answer

N, D, K = 120, 12, 4


@pytest.fixture
def taken(device, monkeypatch):
    """Return a list of the iterations that were queued first, by the fits that did so."""
    if torch.cuda.is_available():
        pytest.skip("launches are replayed in the interpreter only")
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory begins with no numbers
    replay(monkeypatch)
    counts, begin = [], first_iterations.FirstIterations.__init__

    def begun(self, known, *args):
        begin(self, known, *args)
        counts.append(known.n_iterations)

    monkeypatch.setattr(first_iterations.FirstIterations, "__init__", begun)
    yield counts
    torch.use_deterministic_algorithms(False)


def rows_of(seed, dtype="float32", d=D, n=N):
    return known_forms.rows_of(seed, dtype, d, n)


def start_of(X, k=K):
    return known_forms.start_of(X, k)


def known_form(X, k=K, **parameters):
    return known_forms.known_form(X, k, **parameters)


@pytest.mark.parametrize(
    ("dtype", "d", "k", "max_iter"),
    [
        ("float32", 12, 4, 1),
        ("float32", 12, 4, 9),
        ("float64", 9, 3, 3),
        # So many that they are sorted, not added by digits.
        ("float16", 66, 18, 2),
    ],
)
def test_the_same_bits(dtype, d, k, max_iter, taken):
    X = rows_of(1, dtype, d)
    model = known_form(X, k, max_iter=max_iter)
    assert not taken
    model.fit(X)
    assert taken == [min(max_iter, 7)]
    assert answer(model) == oracle(model, X)
    again = KMeans(**model.get_params()).fit(X)
    assert again.n_distances_ == model.n_distances_
    assert again.n_rechecked_ == model.n_rechecked_


def test_more_centres_than_are_packed_ahead(taken, monkeypatch):
    monkeypatch.setattr(half_centers, "MOST_AHEAD", K - 1)
    X = rows_of(1)
    model = known_form(X).fit(X)
    assert taken == [3]
    assert answer(model) == oracle(model, X)


@pytest.mark.parametrize("empty", ["relocate", "keep"])
def test_empty_clusters(empty, taken):
    X = rows_of(1)
    model = known_form(X, empty=empty)
    model.init[1] = 1e3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert taken == [3]
    assert answer(model) == oracle(model, X)


def test_other_limbs_than_were_guessed(taken):
    X = rows_of(1)
    model = known_form(X)
    X[3, 4], X[4, 4] = 1e30, 1e-30
    assert answer(model.fit(X)) == oracle(model, X)
    assert taken == [3]


def test_limbs_that_others_have_taught_in_between(taken):
    """Of X the sums have one limb, of Y five: each fit is right, whoever was before."""
    X, Y = rows_of(1), rows_of(1)
    Y[3, 4], Y[4, 4] = 1e30, 1e-30
    model, other = known_form(X, max_iter=2), known_form(Y, max_iter=2)
    taken.clear()
    for rows in (Y, X):
        model.init = start_of(rows)
        assert answer(model.fit(rows)) == oracle(model, rows)
        assert answer(other.fit(Y)) == oracle(other, Y)
    assert taken


def test_another_form_that_teaches_other_limbs(taken):
    X, Y = rows_of(1), rows_of(1)
    Y[3, 4], Y[4, 4] = 1e30, 1e-30
    model = known_form(X)
    found_grid.remember_limbs(X, 5)
    assert answer(model.fit(X)) == oracle(model, X)
    assert not taken  # It is by that guess, and not by the one that its form knew.
    # What is queued is of its own guess, whatever is learnt before the run is made of it.
    engine_start = again.Again.start

    def late(engine, *args):
        found_grid.remember_limbs(X, 7)
        engine_start(engine, *args)

    model = known_form(X, max_iter=4)
    taken.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(again.Again, "start", late)
        assert answer(model.fit(X)) == oracle(model, X)
    assert taken == [4]


def test_limbs_that_are_forgotten(taken):
    X = rows_of(1)
    model = known_form(X)
    found_grid._limbs.clear()
    for count in (0, 0, 1):  # without a guess, taught anew, and by that
        assert answer(model.fit(X)) == oracle(model, X)
        assert len(taken) == count


def test_what_rows_that_begin_anywhere_teach_is_not_kept(taken):
    X = rows_of(1, d=9, n=N + 1)
    parameters = {"n_init": 1, "tol": 0.0, "max_iter": 3}
    for _ in range(3):
        KMeans(K, init=start_of(X[1:]), **parameters).fit(X[1:])
    assert all(known.first is None for known in again._known.values())
    model = KMeans(K, init=start_of(X[:N]), **parameters)
    for count in (0, 1):
        assert answer(model.fit(X[:N].clone())) == oracle(model, X[:N])
        assert len(taken) == count


def test_a_run_that_begins_again_queues_what_it_needs_itself(taken, monkeypatch):
    built, build = [], beginning.Beginning._build_tensor

    def noted(engine, *args):
        built.append(engine.first_iterations)
        build(engine, *args)

    X = rows_of(1)
    model = known_form(X)
    monkeypatch.setattr(beginning.Beginning, "_build_tensor", noted)
    X[3, 4], X[4, 4] = 1e30, 1e-30
    model.fit(X)
    assert [first is None for first in built] == [False, True]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, start: X[5].fill_(torch.nan), "Input X contains NaN"),
        (lambda X, start: start[1].fill_(torch.inf), "init contains infinity"),
    ],
)
def test_numbers_are_refused(spoil, message, taken):
    X = rows_of(3)
    model = known_form(X).fit(X)
    before = answer(model)
    spoil(X, model.init)
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    assert answer(model) == before
    assert taken == [3, 3]


def test_rows_and_starts_that_begin_anywhere(taken):
    X = rows_of(1, d=9, n=N + 1)
    model = known_form(X[:N].clone())
    expected = oracle(model, X[1:])
    assert X[1:].data_ptr() % 16
    assert answer(model.fit(X[1:])) == expected
    model.init = torch.cat([model.init[:1], model.init])[1:]
    assert model.init.data_ptr() % 16
    assert answer(model.fit(X[1:].clone())) == expected
    assert not taken


def test_a_start_that_lies_in_the_rows(taken):
    X = rows_of(1)
    model = known_form(X)
    model.init = X[8 : 8 + K]
    before = X.clone()
    assert answer(model.fit(X)) == oracle(model, X)
    assert torch.equal(X, before)
    assert taken == [3]


def test_where_a_limit_is_to_be_found_nothing_is_queued_first(taken):
    X = rows_of(1)
    known_form(X, tol=1e-4).fit(X)
    assert not taken


def test_results_are_apart(taken):
    X, Y = rows_of(1), rows_of(2)
    model = known_form(X).fit(X)
    first = answer(model)
    other = KMeans(**model.get_params()).set_params(init=start_of(Y)).fit(Y)
    assert taken == [3, 3]
    assert answer(model) == first
    assert answer(other) == oracle(other, Y)
