"""Fits like one before say what fits of a new form say: kernels are interpreted."""

from __future__ import annotations

import warnings
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from lloydia import KMeans, callbacks
from lloydia.backends.cuda import again, beginning, low_run, placed
from lloydia.exact import sums
from lloydia.imports import load
from lloydia.progress.iterations import watch
from lloydia.stopping import Shift
from table import blobs

N, K = 60, 4


@pytest.fixture
def taken(monkeypatch):
    """Return a list of what engines are asked for: whether there was one of a known form."""
    asked, engine_like = [], again.engine_like
    load(again.__name__)  # which the first fit on a GPU does at its end

    def noted(*args):
        engine = engine_like(*args)
        asked.append(engine is not None)
        return engine

    monkeypatch.setattr(again, "engine_like", noted)
    return asked


def rows_of(seed, device, dtype="float32", d=2, n=N):
    return torch.as_tensor(blobs(n, d, "float64", seed), device=device).to(getattr(torch, dtype))


def start_of(X, k=K, first=0):
    wide = torch.float64 if X.dtype == torch.float64 else torch.float32
    return X[first : first + k].to(wide).clone()


def found_by(model):
    """Return the attributes of a fitted estimator that are not times, comparable."""
    found = {}
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("seconds"):
            tensor = isinstance(value, torch.Tensor)
            found[name] = (value.dtype, value.tolist()) if tensor else (type(value), value)
    return found


def known_form(X, **parameters):
    """Fit rows like X, but others, so that the form of their fit is known; return a twin."""
    parameters = {"n_init": 1, **parameters}
    before = rows_of(99, X.device, str(X.dtype).removeprefix("torch."), X.shape[1], len(X))
    KMeans(K, init=start_of(before), **parameters).fit(before)
    return KMeans(K, init=start_of(X), **parameters)


@pytest.fixture
def anew(monkeypatch):
    """Return a function that calls another, or gives what a fit finds, where nothing is known."""

    def anew(model, X=None):
        with monkeypatch.context() as patch:
            patch.setattr(again, "_known", {})
            return model() if X is None else found_by(KMeans(**model.get_params()).fit(X))

    return anew


@pytest.mark.parametrize(("tol", "max_iter"), [(0.0, 50), (0.0, 3), (1e-4, 50), (0.3, 1)])
@pytest.mark.parametrize(
    ("dtype", "d"), [("float32", 2), ("float64", 3), ("float16", 8), ("bfloat16", 1)]
)
def test_all_is_found_that_a_new_form_finds(dtype, d, max_iter, tol, device, taken, anew):
    X = rows_of(1, device, dtype, d)
    model = known_form(X, tol=tol, max_iter=max_iter)
    expected = anew(model, X)
    assert found_by(model.fit(X)) == expected
    assert taken == [False, False, True]


@pytest.mark.parametrize(("dtype", "tol"), [("float32", 0.0), ("float64", 1e-4)])
def test_all_is_found_of_more_features(dtype, tol, device, taken, anew):
    X = rows_of(1, device, dtype, 9, n=20)
    model = known_form(X, tol=tol, max_iter=2)
    expected = anew(model, X)
    assert found_by(model.fit(X)) == expected
    assert taken == [False, False, True]


@pytest.mark.parametrize(
    "parameters",
    [
        {"empty": "keep"},
        {"empty": "relocate"},
        {"algorithm": "elkan"},
        {"algorithm": "hamerly"},
        {"n_init": "auto"},
        {"device": "cuda"},
        {"random_state": 5, "copy_x": False, "n_threads": 2},
    ],
)
def test_whatever_the_parameters(parameters, device, taken, anew):
    X = rows_of(2, device)
    X[:3] = 80.0  # two of the four starts get no row
    model = known_form(X, **parameters)
    expected = anew(model, X)
    assert found_by(model.fit(X)) == expected
    assert taken == [False, False, True]


def test_what_comes_next_depends_on_the_numbers_alone(device, taken, anew):
    X = rows_of(3, device)
    model = known_form(X)
    for seed in range(4, 8):
        Y = rows_of(seed, device)
        model.init = Y[seed : seed + K]  # lies in the rows
        expected = anew(model, Y)
        assert found_by(model.fit(Y)) == expected
        assert (model.predict(Y) == model.labels_).all()
    assert taken == [False] + [False, True] * 4


def test_rows_whose_sums_have_more_limbs_than_there_is_room_for(device, taken, anew):
    X = rows_of(3, device)
    model = known_form(X, max_iter=5)
    X[3], X[4] = 1e30, 1e-30
    assert sums.Grid.choose(sums.Extent.of(X.cpu().numpy()), np.float32).n_limbs > low_run.LIMBS
    expected = anew(model, X)
    assert found_by(model.fit(X)) == expected
    assert taken == [False, False, True]


@pytest.mark.parametrize(
    ("dtype", "spoil", "message"),
    [
        ("float32", lambda X, start: X[5].fill_(torch.nan), "Input X contains NaN"),
        ("float32", lambda X, start: X[5].fill_(torch.inf), "Input X contains infinity"),
        ("float32", lambda X, start: start[1].fill_(torch.nan), "init contains NaN"),
        ("float64", lambda X, start: X[5].fill_(1e160), "rescale the data"),
        ("float64", lambda X, start: start[1].fill_(1e160), "rescale the data"),
    ],
)
def test_numbers_are_refused(dtype, spoil, message, device, taken, anew):
    X = rows_of(3, device, dtype)
    model = known_form(X).fit(X)
    before = found_by(model)
    spoil(X, model.init)
    for fit in (lambda: model.fit(X), lambda: anew(lambda: model.fit(X))):
        with pytest.raises(ValueError, match=message):
            fit()
        assert found_by(model) == before
    assert taken == [False, True, True, False]


def test_an_empty_cluster_is_an_error_where_it_is_to_be(device, taken):
    X = rows_of(3, device)
    model = known_form(X, empty="error")
    model.init[1] = 1e3
    with pytest.raises(ValueError, match="Cluster 1 has no points"):
        model.fit(X)
    assert taken == [False, True]


def test_a_warning_names_the_line_of_the_fit(device, taken):
    X = rows_of(3, device)
    model = known_form(X)
    X[:] = 1.0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X)
    assert taken == [False, True]
    (one,) = said
    assert "Number of distinct clusters (1)" in str(one.message)
    assert one.filename == __file__


def test_iterations_may_be_watched(device, taken, anew):
    X = rows_of(3, device)
    model = known_form(X)

    def reports():
        found = []
        with watch(found.append):
            KMeans(**model.get_params()).fit(X)
        return found

    expected = anew(reports)
    assert len(expected) > 1
    assert reports() == expected
    assert taken == [False, False, True]


class Other(KMeans):
    """An estimator that may do other things, with parameters of its own."""

    def __init__(self, init):
        super().__init__(K, init=init, n_init=1, max_iter=6, tol=0.0)


def having(model, name, value):
    setattr(model, name, value)
    return model


@pytest.mark.parametrize(
    "change",
    [
        lambda model, X: Other(model.init).fit(X),
        lambda model, X: model.fit(X, sample_weight=torch.ones(N)),
        lambda model, X: model.set_params(stop=Shift(0.1)).fit(X),
        lambda model, X: model.set_callbacks(callbacks.Checkpoint("fit.npz")).fit(X),
        lambda model, X: model.set_params(init="random", random_state=0).fit(X),
        lambda model, X: model.set_params(init=model.init.cpu().numpy()).fit(X),
        lambda model, X: model.set_params(init=model.init.double()).fit(X),
        lambda model, X: model.set_params(max_iter=7).fit(X),
        lambda model, X: model.set_params(tol=0).fit(X),
        lambda model, X: model.set_params(verbose=1).fit(X),
        lambda model, X: model.fit(X[:-1]),
        lambda model, X: model.fit(X.double().float().T.contiguous().T),
        lambda model, X: model.fit(X.double()),
        lambda model, X: model.fit(X.half()),
        lambda model, X: model.fit(torch._neg_view(X)),
        lambda model, X: model.fit(X.clone().requires_grad_()),
        lambda model, X: having(model, "feature_names_in_", ["a", "b"]).fit(X),
    ],
)
def test_fits_of_other_forms_are_looked_at(change, device, taken, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    X = rows_of(3, device)
    model = known_form(X, max_iter=6, tol=0.0)
    change(model, X)
    assert True not in taken


def test_an_estimator_within_another_that_is_watched_has_no_form(device):
    X = rows_of(3, device)
    model = known_form(X)
    assert again.form_of(model, X, None) in again._known
    assert again.form_of(having(model, "_parent_callback_ctx", object()), X, None) is None


def test_every_parameter_is_part_of_a_form():
    assert {*again.PARAMETERS, "init", "stop"} == set(KMeans().get_params())


def test_a_subclass_teaches_nothing(device):
    X = rows_of(3, device)
    Other(start_of(X)).fit(X)
    assert not again._known


def test_a_fit_that_is_over_asks_for_no_memory(device, monkeypatch):
    asked = []
    for asking in (placed, beginning):
        monkeypatch.setattr(asking, "check_memory", lambda needed, where: asked.append(needed))
    X = rows_of(3, device)
    KMeans(K, init=start_of(X), n_init=1).fit(X)
    assert len(again._known) == 1
    assert len(asked) == 2  # the rows', and the run's


@pytest.mark.parametrize("spoil", [torch.nan, 1e30])
def test_what_was_refused_or_had_no_room_is_not_known(spoil, device):
    X = rows_of(3, device)
    X[3], X[4] = spoil, 1e-30
    start = start_of(rows_of(4, device))
    with pytest.raises(ValueError, match="NaN") if np.isnan(spoil) else nullcontext():
        KMeans(K, init=start, n_init=1, max_iter=3).fit(X)
    assert not again._known


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters", np.array([4, 5])),
        ("n_clusters", 4.0),
        ("max_iter", 6.0),
        ("tol", "0"),
        ("verbose", None),
        ("tol", [0.0]),
    ],
)
def test_parameters_of_other_types_are_refused(name, value, device):
    X = rows_of(3, device)
    model = known_form(X, max_iter=6)
    with pytest.raises(ValueError, match=f"{name}="):
        model.set_params(**{name: value}).fit(X)


@pytest.mark.parametrize(
    "rows",
    [
        lambda X: X.to_sparse(),
        lambda X: X.to_sparse_csr(),
        lambda X: X[0],
        lambda X: X[None],
        lambda X: X.to(torch.complex64),
        lambda X: X[:2],
    ],
    ids=["sparse", "CSR", "a row", "a batch", "complex", "two rows"],
)
def test_rows_of_other_kinds_are_refused_as_ever(rows, device, taken, anew):
    X = rows_of(3, device)
    model = known_form(X)
    said = []
    for fit in (lambda: model.fit(rows(X)), lambda: anew(lambda: model.fit(rows(X)))):
        with pytest.raises(Exception) as error:  # noqa: PT011
            fit()
        said.append((type(error.value), str(error.value)))
    assert said[0] == said[1]
    assert True not in taken


def test_a_fit_that_is_to_go_on_does_not_begin(device, taken, tmp_path):
    X = rows_of(3, device)
    path = tmp_path / "fit.npz"
    KMeans(K, init=start_of(X), n_init=1).set_callbacks(callbacks.Checkpoint(path)).fit(X)
    known_form(X)
    with pytest.raises(ValueError, match="init"):
        KMeans.resume(path).set_params(init=start_of(X, first=9)).fit(X)
    assert True not in taken


def test_what_is_said_each_time_is_said_again(device, taken, capsys):
    X = rows_of(3, device)
    model = KMeans(K, init=start_of(X), n_init=3)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="performing only one init"):
            model.fit(X)
    alone = KMeans(1, init=start_of(X, 1), algorithm="elkan", n_init=1)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="single cluster"):
            alone.fit(X)
    told = KMeans(K, init=start_of(X), n_init=1, verbose=1)
    for _ in range(2):
        told.fit(X)
        assert "Converged" in capsys.readouterr().out
    assert True not in taken


def test_rows_and_starts_are_given_back(device):
    X = rows_of(3, device)
    model = known_form(X)
    gone = weakref.ref(X), weakref.ref(model.init)
    model.fit(X)
    del X, model
    assert [there() for there in gone] == [None, None]


@pytest.mark.parametrize("known", [1, 2, 3])
def test_what_a_run_needed_is_given_back_before_its_end(known, device, monkeypatch):
    """Also where its first iterations are known, which is once one before it has begun so."""
    X = rows_of(0, device, d=12)
    model = known_form(X, max_iter=3, tol=0.0)
    for _ in range(known - 1):
        model.fit(X)
    left = []

    def inertia(engine):
        needed = weakref.ref(engine.run), weakref.ref(engine.halves)
        ending = give_back(engine)
        left.append([one() for one in needed])
        return ending

    give_back = again.Again.inertia
    monkeypatch.setattr(again.Again, "inertia", inertia)
    assert found_by(model.fit(X))
    assert left == [[None, None]]


def test_nothing_of_the_rows_is_kept(device):
    known_form(rows_of(3, device))
    (known,) = again._known.values()
    plain = int, float, bool, str, type(None), np.dtype, torch.dtype, torch.device
    assert known.attributes
    assert all(isinstance(x, plain) for x in known.attributes.values())


def test_forms_are_forgotten_in_the_end(device, monkeypatch):
    monkeypatch.setattr(again, "MOST", 2)
    for n in range(10, 15):
        X = rows_of(0, device, n=n)
        KMeans(2, init=start_of(X, 2), n_init=1).fit(X)
        assert 1 <= len(again._known) <= 2


def test_what_is_needed_is_what_a_new_form_asks_for(device, monkeypatch):
    X = rows_of(3, device, "float64")
    asked = []
    for asking in (again, beginning):
        monkeypatch.setattr(asking, "check_memory", lambda needed, where: asked.append(needed))
    known_form(X).fit(X)
    first, second = asked
    assert first == second > 0
