"""MiniBatchKMeans as its users meet it, and the same bits on every engine."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.cluster
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, MiniBatchKMeans
from table import INITS, blobs, start_of, weights_of

X = make_blobs(3000, 5, centers=9, random_state=0)[0]


def answer(model):
    return (
        model.labels_.tobytes(),
        model.cluster_centers_.tobytes(),
        model.counts_.tobytes(),
        model.inertia_,
        model.n_steps_,
    )


def test_the_signature_is_scikit_learns_and_two_more():
    ours, theirs = MiniBatchKMeans().get_params(), sklearn.cluster.MiniBatchKMeans().get_params()
    assert set(ours) - set(theirs) == {"device", "n_threads"}
    assert {name: ours[name] for name in theirs} == theirs


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighting", ["none", "wide"])
@pytest.mark.parametrize("init", INITS)
def test_every_engine_gives_the_bits_of_the_oracle(init, weighting, dtype):
    rows, weights = blobs(900, 4, dtype), weights_of(weighting, 900)
    common = {"init": start_of(init, rows, 9), "n_init": 2 if isinstance(init, str) else 1,
              "random_state": 3, "batch_size": 64, "max_iter": 3, "tol": 1e-9}  # fmt: skip
    if init == "array":
        common["n_init"] = 1
    oracle = MiniBatchKMeans(9, device="reference", **common).fit(rows, sample_weight=weights)
    assert oracle.n_steps_ > 5
    for given, threads in ((rows, 1), (rows, 3), (sp.csr_matrix(rows), 2)):
        model = MiniBatchKMeans(9, n_threads=threads, **common).fit(given, sample_weight=weights)
        assert answer(model) == answer(oracle)
        assert (model.predict(rows) == model.labels_).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighting", ["none", "wide"])
def test_partial_fit_gives_the_bits_of_the_oracle(weighting, dtype):
    rows, weights = blobs(900, 4, dtype), weights_of(weighting, 900)
    models = [
        MiniBatchKMeans(9, random_state=3, **options)
        for options in ({"device": "reference"}, {"n_threads": 1}, {"n_threads": 3})
    ]
    for part in np.array_split(np.arange(900), 7):
        some = None if weights is None else weights[part]
        for model in models:
            model.partial_fit(rows[part], sample_weight=some)
        oracle, *others = map(answer, models)
        assert others == [oracle] * 2
    assert models[0].n_steps_ == 7
    assert models[0].counts_.sum() >= (900 if weights is None else weights.sum()) * (1 - 1e-12)


@pytest.mark.parametrize("weighting", ["none", "some"])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_a_seed_takes_the_steps_that_scikit_learn_takes(init, weighting):
    weights = None if weighting == "none" else np.random.default_rng(0).random(len(X))
    ours, theirs = (
        kind(9, init=init, random_state=0, batch_size=100).fit(X, sample_weight=weights)
        for kind in (MiniBatchKMeans, sklearn.cluster.MiniBatchKMeans)
    )
    assert (ours.n_steps_, ours.n_iter_) == (theirs.n_steps_, theirs.n_iter_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-9)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)


def test_fitted_attributes():
    model = MiniBatchKMeans(9, random_state=0, batch_size=100).fit(X)
    assert model.cluster_centers_.shape == (9, 5)
    assert model.labels_.dtype == np.int32
    assert model.score(X) == -model.inertia_
    assert model.n_iter_ == -(-model.n_steps_ * 100 // len(X))
    assert model.counts_.shape == (9,)
    assert (model.counts_ > 0).all()
    assert model.device_ == "cpu"
    assert model.get_feature_names_out()[0] == "minibatchkmeans0"
    assert (model.transform(X).argmin(axis=1) == model.labels_).all()
    best = KMeans(9, random_state=0, init=model.cluster_centers_).fit(X)
    assert model.inertia_ < 1.1 * best.inertia_


def test_without_labels():
    model = MiniBatchKMeans(9, random_state=0, batch_size=100, compute_labels=False).fit(X)
    assert not hasattr(model, "labels_")
    assert model.inertia_ == pytest.approx(-model.score(X), rel=0.1)
    once = MiniBatchKMeans(9, batch_size=len(X), max_iter=1, compute_labels=False, n_init=1)
    assert once.fit(X, sample_weight=np.full(len(X), 2.0)).n_steps_ == 1
    assert once.inertia_ > 0
    model.partial_fit(X)
    assert not hasattr(model, "inertia_")
    model.set_params(compute_labels=True).partial_fit(X)
    assert (model.labels_ == model.predict(X)).all()


def test_it_stops_where_it_should(capsys):
    common = {"n_clusters": 9, "random_state": 0, "batch_size": 100, "verbose": 1}
    limited = MiniBatchKMeans(max_no_improvement=None, max_iter=4, **common).fit(X)
    assert limited.n_steps_ == 4 * len(X) // 100
    assert "Converged" not in capsys.readouterr().out
    impatient = MiniBatchKMeans(max_no_improvement=3, **common).fit(X)
    assert "Converged (lack of improvement in inertia)" in capsys.readouterr().out
    assert impatient.n_steps_ < limited.n_steps_
    still = MiniBatchKMeans(max_no_improvement=None, tol=1e-3, **common).fit(X)
    assert "Converged (small centers change)" in capsys.readouterr().out
    assert still.n_steps_ < limited.n_steps_


def test_partial_fit_goes_on_after_a_fit_a_pickle_and_another_type():
    model = MiniBatchKMeans(9, random_state=0, batch_size=100).fit(X.astype(np.float32))
    steps = model.n_steps_
    other = pickle.loads(pickle.dumps(model)).partial_fit(X[:500])
    model.partial_fit(X[:500])
    assert answer(other) == answer(model)
    assert model.cluster_centers_.dtype == np.float64
    assert model.n_steps_ == steps + 1
    model.partial_fit(X[:3].astype(np.float32))
    assert model.cluster_centers_.dtype == np.float64
    # A fit begins anew.
    assert answer(model.fit(X)) == answer(clone(model).fit(X))


def test_no_row_of_weight_0_is_seen():
    rows = X.copy()
    weights = np.ones(len(X))
    weights[::3] = 0.0
    rows[::3] = 1e6
    for init in ("k-means++", "random", "farthest"):
        model = MiniBatchKMeans(9, init=init, random_state=0, batch_size=100, max_iter=2)
        assert np.abs(model.fit(rows, sample_weight=weights).cluster_centers_).max() < 100
    model = MiniBatchKMeans(9, random_state=0)
    for part in np.array_split(np.arange(len(X)), 20):
        model.partial_fit(rows[part], sample_weight=weights[part])
    assert np.abs(model.cluster_centers_).max() < 100


BAD = {
    "batch_size": 0,
    "init_size": 0,
    "max_no_improvement": -1,
    "reassignment_ratio": -0.1,
    "compute_labels": "yes",
    "max_iter": 0,
    "tol": -1.0,
    "n_clusters": 0,
    "init": "middle",
    "n_threads": 0,
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters(name, method):
    with pytest.raises(ValueError, match=f"{name}={BAD[name]!r} must be"):
        getattr(MiniBatchKMeans(**{name: BAD[name]}), method)(X)


def test_bad_data():
    model = MiniBatchKMeans(9)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="n_samples=8 should be >= n_clusters=9"):
            method(X[:8])
        with pytest.raises(ValueError, match="NaN"):
            method(np.where(X == X[17, 2], np.nan, X))
        with pytest.raises(ValueError, match="too large"):
            method(X * 1e160)
        with pytest.raises(ValueError, match=r"sample_weight.shape"):
            method(X, sample_weight=[1.0, 2.0])
    model.partial_fit(X)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_dask_collection_is_refused_before_it_is_computed(method):
    array, frame = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")

    def compute(block):
        raise AssertionError("a block was computed")

    rows = array.from_array(X, chunks=(1000, -1)).map_blocks(compute, meta=X[:0])
    for given, name in ((rows, "dask Array"), (frame.from_dask_array(rows), "dask DataFrame")):
        with pytest.raises(ValueError, match=f"X is a {name}: pass its blocks to partial_fit"):
            getattr(MiniBatchKMeans(9), method)(given)


def test_a_small_init_size_is_too_small():
    with pytest.warns(RuntimeWarning, match="init_size=5 should be larger than n_clusters=9"):
        MiniBatchKMeans(9, init_size=5, random_state=0).fit(X)


def test_what_a_fit_of_batches_has_not():
    model = MiniBatchKMeans()
    assert not hasattr(model, "set_callbacks")
    assert not hasattr(model, "resume")


@pytest.mark.parametrize("options", [{}, {"compute_labels": False}])
def test_fewer_clusters_than_asked_for_are_warned_of(options):
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    for fit in ("fit", "partial_fit"):
        model = MiniBatchKMeans(3, random_state=0, **options)
        with pytest.warns(
            ConvergenceWarning, match=r"clusters \(2\) found smaller .* \(3\)"
        ) as seen:
            getattr(model, fit)(X)
        assert seen[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(MiniBatchKMeans(2, random_state=0, **options), fit)(X)


def test_equal_centres_are_warned_of_once_and_of_fewer_again():
    three, two, same = (np.array([[float(i % k)] for i in range(6)]) for k in (3, 2, 1))
    model = MiniBatchKMeans(4, init=np.array([[0.0], [0.1], [0.9], [1.0]]), n_init=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(np.array([[0.0], [0.1], [0.9], [1.0]]))
    model = MiniBatchKMeans(3, init=three[:3], n_init=1, reassignment_ratio=0.0)
    model.partial_fit(three)
    model.cluster_centers_ = two[:1].repeat(3, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(1\)"):
        model.partial_fit(same)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            model.partial_fit(same)


@pytest.mark.parametrize("name", ["_since", "n_steps_"])
@pytest.mark.parametrize("value", ["a", None, -1, 1.5, np.nan, True])
def test_forged_counts_of_rows_and_steps_are_refused(name, value):
    model = MiniBatchKMeans(2, random_state=0).partial_fit(X)
    setattr(model, name, value)
    with pytest.raises(ValueError, match=f"{name}=.* must be an integer"):
        model.partial_fit(X)


def test_huge_counts_hold_the_centres():
    rows = X * 1e3
    model = MiniBatchKMeans(3, init=rows[:3], n_init=1, reassignment_ratio=0.0).partial_fit(rows)
    model.counts_, before = np.full(3, 1e308), model.cluster_centers_
    assert np.array_equal(model.partial_fit(rows).cluster_centers_, before)
    model = MiniBatchKMeans(3, init=X[:3], n_init=1).partial_fit(X)
    model.counts_ = np.full(3, np.finfo(float).max)
    with pytest.raises(ValueError, match="add up to infinity: scale the weights down"):
        model.partial_fit(X, sample_weight=np.full(len(X), 1e300))
