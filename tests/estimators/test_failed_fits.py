"""A fit that fails, or is interrupted, leaves the result before it, whole; and no kernel is entered
with rows of another width than the centres."""

from __future__ import annotations

import os
import pickle
import signal
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import lloydia
from lloydia import KMeans, MiniBatchKMeans
from table import blobs

pd = pytest.importorskip("pandas")

WIDE = blobs(60, 3, "float64")
NARROW = blobs(40, 2, "float64")
FRAME = pd.DataFrame(WIDE, columns=["a", "b", "c"])
OTHER = pd.DataFrame(NARROW, columns=["u", "v"])


def raising(X, k, random_state):
    raise KeyboardInterrupt


def interrupted(*arguments):
    raise KeyboardInterrupt


def signalled(X, k, random_state):
    os.kill(os.getpid(), signal.SIGINT)
    return X[:k]


# What is wrong with the second fit: its rows, its weights, its parameters.
FAILURES = {
    "too few rows": (NARROW[:2], None, {}),
    "NaN": (NARROW * np.nan, None, {}),
    "text": ([*NARROW.astype(str).tolist()[:-1], ["x", "y"]], None, {}),
    "bad weights": (NARROW, -np.ones(40), {}),
    "too many weights": (NARROW, np.ones(41), {}),
    "bad init": (NARROW, None, {"init": NARROW[:3]}),
    "NaN in init": (NARROW, None, {"init": NARROW[:4] * np.nan}),
    "interrupted init": (NARROW, None, {"init": raising}),
    "signal": (NARROW, None, {"init": signalled}),
    "too large": (NARROW * 1e200, None, {}),
    "unknown device": (NARROW, None, {"device": "abacus"}),
    "bad parameter": (NARROW, None, {"tol": -1}),
    "names": (OTHER[:2], None, {}),
    "other names": (OTHER, -np.ones(40), {}),
}
FITS = ("fit", "partial_fit")
KINDS = [KMeans, MiniBatchKMeans]


def state_of(model, but=()):
    return pickle.dumps({k: v for k, v in vars(model).items() if k not in but})


def fails(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError, KeyboardInterrupt)):
            call(*arguments, **options)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("first", [WIDE, FRAME], ids=["array", "frame"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_failed_fit_leaves_the_result_before_it(kind, first, failure):
    X, weights, parameters = FAILURES[failure]
    model = kind(4, random_state=0).fit(first)
    expected = model.predict(first)
    before = {name: vars(model)[name] for name in parameters}
    kept = state_of(model, parameters)
    fails(model.set_params(**parameters).fit, X, sample_weight=weights)
    assert state_of(model, parameters) == kept
    model.set_params(**before)
    assert (model.predict(first) == expected).all()
    with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3|feature names"):
        model.predict(X if failure in ("names", "other names") else NARROW)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_failed_first_fit_leaves_nothing(kind, failure):
    X, weights, parameters = FAILURES[failure]
    model = kind(4, random_state=0, **({} if parameters is None else parameters))
    before = state_of(model, parameters)
    for fit in [getattr(model, name) for name in FITS if hasattr(model, name)]:
        fails(fit, X, sample_weight=weights)
        assert state_of(model, parameters) == before
    with pytest.raises(NotFittedError):
        model.set_params(device="auto", tol=0.0).predict(NARROW)


def test_an_interrupt_in_a_callback_leaves_the_result_before_it():
    pytest.importorskip("sklearn.callback")

    class Interrupt:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context):
            raise KeyboardInterrupt

    model = KMeans(4, random_state=0).fit(FRAME)
    kept = state_of(model)
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(Interrupt()).fit(OTHER)
    assert state_of(model, ["_skl_callbacks", "_callback_fit_ctx"]) == kept
    assert list(model.feature_names_in_) == ["a", "b", "c"]


def test_a_callback_sees_the_features_of_its_own_fit():
    pytest.importorskip("sklearn.callback")
    seen = []

    class Look:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if fitted_estimator is not None:
                seen.append(
                    (fitted_estimator.n_features_in_, len(fitted_estimator.predict(NARROW)))
                )

    model = KMeans(4, random_state=0).fit(FRAME).set_callbacks(Look())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(NARROW)
    assert set(seen) == {(2, 40)}


def test_names_go_with_the_result_that_has_none():
    model = KMeans(4, random_state=0).fit(FRAME).fit(NARROW)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2


# -- mini batches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [name for name in FAILURES if not FAILURES[name][2]])
def test_a_batch_that_fails_is_as_if_it_had_never_come(failure):
    X, weights, _ = FAILURES[failure]
    straight, other = (MiniBatchKMeans(4, random_state=0).partial_fit(WIDE) for _ in range(2))
    kept = state_of(other)
    fails(other.partial_fit, X, sample_weight=weights)
    assert state_of(other) == kept
    assert state_of(other.partial_fit(WIDE[::-1])) == state_of(straight.partial_fit(WIDE[::-1]))


def test_a_batch_that_is_interrupted_late_draws_its_numbers_again(monkeypatch):
    # Centres that no row has made are moved to rows that are drawn.
    far = np.concatenate([WIDE[:3], [[1e6] * 3]])
    straight, other = (
        MiniBatchKMeans(4, init=far, n_init=1, random_state=0).partial_fit(WIDE) for _ in range(2)
    )
    for model in (straight, other):
        model.set_params(reassignment_ratio=1.0)
    kept = state_of(other)
    with monkeypatch.context() as patched:
        patched.setattr(MiniBatchKMeans, "_after_batch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            other.partial_fit(np.repeat(WIDE, 3, axis=0))
    assert state_of(other) == kept
    batch = np.repeat(WIDE, 3, axis=0)
    assert state_of(other.partial_fit(batch)) == state_of(straight.partial_fit(batch))


@pytest.mark.parametrize("counts", [None, np.ones(3), np.ones((4, 1)), -np.ones(4), "many"])
def test_counts_that_are_not_of_the_centres(counts):
    model = MiniBatchKMeans(4, random_state=0).partial_fit(WIDE)
    model.counts_ = counts
    with pytest.raises(ValueError, match="counts_"):
        model.partial_fit(WIDE)


# -- centres that nobody fitted --------------------------------------------------------------------

CENTERS = WIDE[:4].copy()
HAND_MADE = {
    "narrow": (CENTERS[:, :2], "X has 3 features and cluster_centers_ has 2"),
    "wide": (np.ones((4, 9)), "X has 3 features and cluster_centers_ has 9"),
    "flat": (CENTERS[0], r"cluster_centers_ has shape \(3,\)"),
    "number": (1.0, r"cluster_centers_ has shape \(\)"),
    "none": (CENTERS[:0], r"cluster_centers_ has shape \(0, 3\)"),
    "deep": (CENTERS[None], r"cluster_centers_ has shape \(1, 4, 3\)"),
    "NaN": (CENTERS * np.nan, "cluster_centers_ holds NaN"),
    "infinite": (CENTERS * np.inf, "cluster_centers_ holds NaN or infinity"),
    "objects": (np.array([["a", "b", "c"]], object), r"cluster_centers_\[0, 0\] is 'a'"),
    "text": (np.array([["1", "2", "3"]]), "cluster_centers_ holds text"),
    "dates": (np.zeros((4, 3), "M8[s]"), r"cluster_centers_ holds datetime64\[s\]"),
    "complex": (CENTERS * 1j, "cluster_centers_ holds complex128"),
    "nothing": (None, r"cluster_centers_ has shape \(\)"),
    "too large": (CENTERS * 1e200, "too large"),
}


@pytest.mark.parametrize("name", HAND_MADE)
@pytest.mark.parametrize("stored", [False, True], ids=["set", "unpickled"])
@pytest.mark.parametrize("kind", KINDS)
def test_centres_that_no_kernel_may_see(kind, stored, name):
    centers, message = HAND_MADE[name]
    for model in (kind(4), kind(4, random_state=0).fit(WIDE)):
        model.cluster_centers_ = centers
        model = pickle.loads(pickle.dumps(model)) if stored else model
        for method in (model.predict, model.transform, model.score):
            with pytest.raises(ValueError, match=message):
                method(WIDE)
    if kind is MiniBatchKMeans:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(WIDE)


@pytest.mark.parametrize("set_later", [1, 2, 9, "many", None])
def test_a_result_keeps_its_width_whatever_parameters_are_set(set_later):
    model = KMeans(4, random_state=0).fit(WIDE)
    expected = model.labels_
    model.set_params(n_clusters=set_later)
    assert (model.predict(WIDE) == expected).all()
    assert model.transform(WIDE).shape == (60, 4)


LIKE = {
    "list": CENTERS.tolist(),
    "columns": np.asfortranarray(CENTERS),
    "big-endian": CENTERS.astype(">f8"),
    "steps": np.repeat(CENTERS, 2, axis=1)[:, ::2],
    "objects": CENTERS.astype(object),
    "frame": pd.DataFrame(CENTERS),
    "matrix": np.asmatrix(CENTERS),
}


@pytest.mark.parametrize("name", LIKE)
def test_centres_in_any_form_are_read_as_what_they_are(name):
    expected = KMeans(4, init=CENTERS, n_init=1).fit(WIDE)
    expected.cluster_centers_ = CENTERS
    model = KMeans(4)
    model.cluster_centers_ = LIKE[name]
    for method in ("predict", "transform"):
        assert (getattr(model, method)(WIDE) == getattr(expected, method)(WIDE)).all()
    assert model.score(WIDE) == expected.score(WIDE)


def test_names_of_distances_are_those_of_the_centres_that_there_are():
    model = KMeans(4, random_state=0).fit(WIDE)
    model.cluster_centers_ = CENTERS[:2]
    by_hand = KMeans(4)
    by_hand.cluster_centers_ = CENTERS[:2]
    for each in (model, by_hand):
        assert each.get_feature_names_out().tolist() == ["kmeans0", "kmeans1"]
        each.set_output(transform="pandas")
        assert each.transform(WIDE).shape == (60, 2)
    with pytest.raises(NotFittedError):
        KMeans(4).get_feature_names_out()


def test_integer_centres_are_numbers():
    model = KMeans(2)
    model.cluster_centers_ = np.array([[0, 0, 0], [1, 1, 1]])
    assert (model.predict(WIDE) == lloydia.assign(WIDE, [[0.0] * 3, [1.0] * 3])[0]).all()
    assert (model.transform(WIDE) > 0).all()


def test_a_dask_collection_is_refused_before_its_blocks_are_computed():
    da = pytest.importorskip("dask.array")
    model = KMeans(4, random_state=0).fit(WIDE)
    model.cluster_centers_ = CENTERS[:, :2]
    for method in (model.predict, model.transform):
        with pytest.raises(ValueError, match="X has 3 features and cluster_centers_ has 2"):
            method(da.from_array(WIDE, chunks=(20, 3)))
    by_hand = KMeans(4)
    by_hand.cluster_centers_ = CENTERS
    expected = by_hand.predict(WIDE)
    assert (by_hand.predict(da.from_array(WIDE, chunks=(20, 3))).compute() == expected).all()


def test_chunks_are_refused_as_rows_are(tmp_path):
    np.save(tmp_path / "wide.npy", WIDE)
    np.save(tmp_path / "narrow.npy", NARROW)
    model = KMeans(4, random_state=0).fit(lloydia.chunks(tmp_path / "wide.npy"))
    kept = state_of(model)
    fails(model.fit, lloydia.chunks(tmp_path / "narrow.npy"), sample_weight=-np.ones(40))
    assert state_of(model) == kept
    with pytest.raises(ValueError, match="X has 2 features, but KMeans is expecting 3"):
        model.predict(lloydia.chunks(tmp_path / "narrow.npy"))
    model.cluster_centers_ = CENTERS[:, :2]
    with pytest.raises(ValueError, match="X has 3 features and cluster_centers_ has 2"):
        model.predict(lloydia.chunks(tmp_path / "wide.npy"))
