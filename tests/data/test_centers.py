"""Centres in data frames: their columns are those of X by name, or refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import lloydia
from lloydia import KMeans, MiniBatchKMeans, assign, k_means

pd = pytest.importorskip("pandas")

A = np.array([[0, 0], [0, 1], [1, 0], [4, 4], [4, 5], [5, 4]]) * [1.0, 10.0]
X = pd.DataFrame(A, columns=["x", "y"])
START = X.iloc[[0, 3]]
SWAPPED = START[["y", "x"]]


def polars(frame):
    return pytest.importorskip("polars").DataFrame({name: frame[name].to_numpy() for name in frame})


def arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize(
    "to", [lambda frame: frame, polars, arrow], ids=["pandas", "polars", "arrow"]
)
@pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
def test_columns_in_another_order_are_matched_by_name(kind, to):
    expected = kind(2, init=START.to_numpy(), n_init=1, random_state=0).fit(X)
    for init in (START, SWAPPED):
        found = kind(2, init=to(init), n_init=1, random_state=0).fit(X)
        assert (found.cluster_centers_ == expected.cluster_centers_).all()
        found = kind(2, init=lambda *_, random_state: to(init), n_init=1, random_state=0).fit(X)  # noqa: B023
        assert (found.cluster_centers_ == expected.cluster_centers_).all()


def test_in_every_function():
    expected = assign(A, START.to_numpy())
    found = assign(X, SWAPPED)
    assert (found[0] == expected[0]).all()
    assert found[1] == expected[1]
    expected = k_means(A, 2, init=START.to_numpy(), n_init=1)
    assert (k_means(X, 2, init=SWAPPED, n_init=1)[0] == expected[0]).all()
    batches = [MiniBatchKMeans(2, init=i, n_init=1).partial_fit(X) for i in (START, SWAPPED)]
    assert (batches[0].cluster_centers_ == batches[1].cluster_centers_).all()
    model = KMeans(2, init=START, n_init=1).fit(X)
    labels = model.labels_
    model.cluster_centers_ = pd.DataFrame(model.cluster_centers_, columns=["x", "y"])[["y", "x"]]
    assert (model.predict(X) == labels).all()


TIMES = [pd.Timestamp("2020"), pd.Timestamp("2021")]
LABELS = {
    "numbers": [1999, 1998],
    "places": [0, 1],
    "fractions": [0.5, 0.25],
    "dates": TIMES,
    "levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_that_are_no_text_are_matched_too(kind):
    rows = X.set_axis(LABELS[kind], axis=1)
    start = START.set_axis(LABELS[kind], axis=1)
    swapped = start.iloc[:, ::-1]
    for estimator in (KMeans, MiniBatchKMeans):
        expected = estimator(2, init=START.to_numpy(), n_init=1, random_state=0).fit(A)
        for init in (start, swapped, lambda *_, random_state: swapped):
            found = estimator(2, init=init, n_init=1, random_state=0).fit(rows)
            assert (found.cluster_centers_ == expected.cluster_centers_).all()
    assert assign(rows, swapped)[1] == assign(A, START.to_numpy())[1]
    found = KMeans(2, init=start, n_init=1).fit(rows)
    found.cluster_centers_ = swapped
    assert (found.predict(rows) == KMeans(2, init=START, n_init=1).fit(X).labels_).all()
    with pytest.raises(ValueError, match="init has no column"):
        KMeans(2, init=start.set_axis([7, 8], axis=1), n_init=1).fit(rows.set_axis([7, 9], axis=1))


@pytest.mark.parametrize("kind", LABELS)
def test_rows_with_such_labels_in_another_order_are_refused(kind):
    rows = X.set_axis(LABELS[kind], axis=1)
    model = MiniBatchKMeans(2, init=START.to_numpy(), n_init=1).fit(rows)
    model = pickle.loads(pickle.dumps(model))
    before = vars(model).copy()
    for use in (model.predict, model.transform, model.score, model.partial_fit):
        with pytest.raises(ValueError, match=r"in another order: column 1 is .* and was"):
            use(rows.iloc[:, ::-1])
    assert vars(model).keys() == before.keys()
    # Labels of another kind, or none, say nothing of the order.
    for other in (A, X.set_axis([0, 1], axis=1)):
        assert (model.predict(other) == model.predict(rows)).all()
    # The labels belong to the fit.
    assert model.fit(rows.iloc[:, ::-1]).predict(rows.iloc[:, ::-1]).shape == (len(X),)
    model.fit(A)
    assert model.predict(rows).shape == model.predict(rows.iloc[:, ::-1]).shape


OTHERS = {
    "one more": (START.assign(z=1.0), "has a column 'z', and X has none"),
    "one less": (START[["x"]], "has no column 'y', and X has one"),
    "another": (START.rename(columns={"y": "u"}), "has no column 'y', and X has one"),
    "twice": (START[["x", "x"]], "has several columns 'x'"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_columns_are_refused(name):
    centers, message = OTHERS[name]
    for kind in (KMeans, MiniBatchKMeans):
        with pytest.raises(ValueError, match=f"init {message}.*'x', 'y', or an array"):
            kind(2, init=centers, n_init=1).fit(X)
    with pytest.raises(ValueError, match=f"centers {message}"):
        assign(X, centers)


@pytest.mark.parametrize("centers", [SWAPPED.set_axis([0, 1], axis=1), SWAPPED.to_numpy()])
def test_columns_without_names_are_taken_by_place(centers):
    found = assign(X, centers)
    expected = assign(A, SWAPPED.to_numpy())
    assert found[1] == expected[1]
    assert assign(A, SWAPPED)[1] == expected[1]  # X has no names


def test_rows_in_another_order_of_columns_are_refused():
    for model in (KMeans(2, random_state=0).fit(X), MiniBatchKMeans(2, random_state=0).fit(X)):
        for method in (model.predict, model.transform, model.score):
            with pytest.raises(ValueError, match="feature names should match"):
                method(X[["y", "x"]])
    with pytest.raises(ValueError, match="feature names should match"):
        MiniBatchKMeans(2, random_state=0).partial_fit(X).partial_fit(X[["y", "x"]])


def test_chunks_have_names_too(tmp_path):
    pytest.importorskip("pyarrow")
    X.to_parquet(tmp_path / "x.parquet")
    found = KMeans(2, init=SWAPPED, n_init=1).fit(lloydia.chunks(tmp_path / "x.parquet"))
    expected = KMeans(2, init=START.to_numpy(), n_init=1).fit(A)
    assert (found.cluster_centers_ == expected.cluster_centers_).all()


@pytest.mark.parametrize("init", [type, str, KMeans, np.ndarray, dict])
def test_a_class_is_no_start(init):
    for kind in (KMeans, MiniBatchKMeans):
        with pytest.raises(ValueError, match=r"^init=<class '.*'> must be one of"):
            kind(2, init=init).fit(A)
    with pytest.raises(ValueError, match=r"^init=<class '.*'> must be one of"):
        lloydia.k_means_batched(A[None], 2, init=init)


@pytest.mark.parametrize("init", [print, max, len, lambda X: X, lambda: 0, lambda X, k: X[:k]])
def test_a_callable_of_other_arguments_is_named(init):
    for kind in (KMeans, MiniBatchKMeans):
        with pytest.raises(
            TypeError, match=r"^init=<.*> cannot be called as init\(X, n_clusters, r"
        ):
            kind(2, init=init).fit(A)


def test_errors_from_within_a_callable_are_its_own():
    def broken(X, k, random_state):
        return X[:k] + "a"

    with pytest.raises(TypeError, match=r"^(?!init=)"):
        KMeans(2, init=broken).fit(A)
