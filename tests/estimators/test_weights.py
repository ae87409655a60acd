"""Rows of weight 0 change nothing but get a label, and integer weights mean repeated rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import lloydia
from lloydia import KMeans, MiniBatchKMeans, k_means, k_means_batched, kmeans_plusplus, stopping
from lloydia.algorithms import ALGORITHMS
from lloydia.backends import choose
from lloydia.callbacks import Checkpoint
from lloydia.seeding import SEEDINGS
from table import answer, blobs
from tight import for_fit, tight

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)

A = np.array([[0, 0], [0, 1], [1, 0], [4, 4], [4, 5], [5, 4.0]])

RULES = [
    None, stopping.Labels(0.1), stopping.Inertia(1.0), stopping.Centers(0.1),
    stopping.Labels(0.02) | stopping.Inertia(0.1),
]  # fmt: skip


def some_of_weight_0(n, d, dtype="float64", seed=0, integer=False):
    """Return rows, weights, and which rows count; those of weight 0 lie far away."""
    rng = np.random.default_rng(seed)
    X = blobs(n, d, dtype, seed)
    weights = rng.integers(1, 4, size=n) * (1.0 if integer else 0.3)
    weights[rng.random(n) < 0.3] = 0.0
    weights[[0, -1]] = 0.0
    kept = weights > 0
    X[~kept] = X[~kept] * 10.0 ** rng.integers(0, 9, size=(n, 1))[~kept] - 3.0
    return X, weights, kept


def same(model, without, X, kept):
    """Check that a fit has the result of one without the rows of weight 0."""
    assert model.cluster_centers_.tobytes() == without.cluster_centers_.tobytes()
    assert (model.inertia_, model.n_iter_) == (without.inertia_, without.n_iter_)
    assert np.array_equal(model.labels_[kept], without.labels_)
    assert np.array_equal(model.labels_, model.predict(X))
    assert model.labels_.dtype == np.int32


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("far", [[1e6, 1e6], [1e200, -1e300]])
def test_a_row_of_weight_0_does_not_move_the_threshold(far, device):
    options = {"init": A[:2], "n_init": 1, "device": device}
    model = KMeans(2, **options).fit(np.vstack([A, far]), sample_weight=[1] * 6 + [0])
    assert answer(KMeans(2, **options).fit(A))[1:] == answer(model)[1:]
    assert (model.n_iter_, round(model.inertia_, 3)) == (3, 2.667)
    # Where D overflows for both, they tie.
    assert model.labels_.tolist() == [0, 0, 0, 1, 1, 1, 1 if far[0] == 1e6 else 0]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_without_rows_of_weight_0_a_fit_is_the_same(data):
    n, d = data.draw(st.integers(12, 40)), data.draw(st.sampled_from([2, 9]))
    seed = data.draw(st.integers(0, 1000))
    X, weights, kept = some_of_weight_0(n, d, data.draw(st.sampled_from(["f4", "f8"])), seed)
    k = data.draw(st.integers(1, int(kept.sum())))
    rows = sp.csr_matrix(X) if data.draw(st.booleans()) else X
    init = data.draw(st.sampled_from([*SEEDINGS, "array"]))
    device = data.draw(st.sampled_from(["cpu", "cpu", "reference"]))
    algorithms = [name for name in ALGORITHMS if name != "filtering" or not sp.issparse(rows)]
    options = {
        "init": X[kept][:k] + 0.5 if init == "array" else init,
        "algorithm": data.draw(st.sampled_from(algorithms)),
        "stop": data.draw(st.sampled_from(RULES)), "tol": data.draw(st.sampled_from([0.0, 0.1])),
        "empty": data.draw(st.sampled_from(["relocate", "keep"])), "random_state": seed,
        "n_init": 1,
    }  # fmt: skip
    model = KMeans(k, device=device, **options).fit(rows, sample_weight=weights)
    without = KMeans(k, device="reference", **options).fit(rows[kept], sample_weight=weights[kept])
    same(model, without, rows, kept)
    score = KMeans.score(without, rows[kept], sample_weight=weights[kept])
    assert model.score(rows, sample_weight=weights) == score


@pytest.mark.parametrize("init", ["k-means++", "random", "first", "array"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mini_batches_are_the_same_without_rows_of_weight_0(dtype, init):
    X, weights, kept = some_of_weight_0(200, 3, dtype)
    options = {
        "init": X[kept][:4] if init == "array" else init, "n_init": 1, "random_state": 3,
        "batch_size": 20, "tol": 1e-3, "reassignment_ratio": 0.3, "max_iter": 5,
    }  # fmt: skip
    model = MiniBatchKMeans(4, **options).fit(X, sample_weight=weights)
    without = MiniBatchKMeans(4, **options).fit(X[kept], sample_weight=weights[kept])
    same(model, without, X, kept)
    assert (model.n_steps_, model.counts_.tolist()) == (without.n_steps_, without.counts_.tolist())
    for start in (0, 100, 0, 100):
        some = slice(start, start + 100)
        model.partial_fit(X[some], sample_weight=weights[some])
        own = kept[some]
        without.partial_fit(X[some][own], sample_weight=weights[some][own])
        assert model.cluster_centers_.tobytes() == without.cluster_centers_.tobytes()
        assert model.inertia_ == without.inertia_
        assert np.array_equal(model.labels_[own], without.labels_)
        assert np.array_equal(model.labels_, model.predict(X[some]))


def test_the_tolerance_of_mini_batches_is_by_weights():
    X = np.vstack([blobs(90, 2, "float64"), np.full((10, 2), 1e4)])
    weights = np.repeat([1.0, 1e-12], [90, 10])
    options = {"random_state": 0, "batch_size": 30, "max_no_improvement": None, "max_iter": 20}
    limit = 1e-2 * choose("cpu", X, weights, None).mean_variance()
    plain = 1e-2 * choose("cpu", X, None, None).mean_variance()
    assert limit < 1.0 < plain
    assert MiniBatchKMeans(3, tol=1e-2, **options).fit(X, sample_weight=weights).n_steps_ > 2


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_members_of_a_batch(init):
    members = [some_of_weight_0(40, 2, "float64", seed) for seed in range(3)]
    X, weights = (np.stack(parts) for parts in list(zip(*members, strict=True))[:2])
    found = k_means_batched(X, 3, init=init, tol=0.05, sample_weight=weights, random_state=0)
    for b, (rows, own, kept) in enumerate(members):
        options = {"n_init": 1, "init": init, "tol": 0.05, "random_state": b}
        centers, labels, inertia, n_iter = k_means(
            rows[kept], 3, sample_weight=own[kept], return_n_iter=True, **options
        )
        assert found[0][b].tobytes() == centers.tobytes()
        assert np.array_equal(found[1][b][kept], labels)
        assert (found[2][b], found[3][b]) == (inertia, n_iter)
        assert np.array_equal(found[1][b], lloydia.assign(rows, centers)[0])


def cut(X):
    """Return what gives rows in unequal blocks."""
    return lambda: iter(np.array_split(X, 7))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("init", ["k-means++", "random", "k-means||", "farthest"])
def test_rows_that_are_read_by_blocks(init, whole, capsys):
    X, weights, kept = some_of_weight_0(600, 3, "float32")
    # Some blocks have no row that counts.
    weights[250:450], kept[250:450] = 0.0, False
    model = KMeans(5, init=init, random_state=1, tol=0.01)
    without = KMeans(5, init=init, random_state=1, tol=0.01).fit(
        X[kept], sample_weight=weights[kept]
    )
    source = (
        lloydia.chunks(cut(X), block=100)
        if whole
        else tight(cut(X), for_fit(model, weights), 1, weighted=True, block=100)
    )
    same(model.set_params(verbose=1).fit(source, sample_weight=weights), without, X, kept)
    assert "once more for the labels of the rows of weight 0" in capsys.readouterr().out


@pytest.mark.parametrize("row", [3, 260])
@pytest.mark.parametrize("whole", [True, False])
def test_a_row_of_weight_0_that_is_read_must_be_finite(row, whole):
    X, weights, _ = some_of_weight_0(602, 3, "float32")
    weights[row], X[row, 1] = 0.0, np.nan
    weights[0] = 1.0
    model = KMeans(5, random_state=1)
    source = (
        lloydia.chunks(cut(X), block=100)
        if whole
        else tight(cut(X), for_fit(model, weights), 1, weighted=True, block=100)
    )
    # Blocks of 86 rows.
    place = rf"block {row // 86 + 1}, row {row % 86 + 1} \(row {row + 1} of all\), column 2 is NaN"
    with pytest.raises(lloydia.data.columns.DataError, match=place):
        model.fit(source, sample_weight=weights)


def test_rows_of_weight_0_must_be_finite():
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="contains"):
            KMeans(2).fit(np.vstack([A, [value, 0.0]]), sample_weight=[1] * 6 + [0])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("value", [1e160, 1.7e308])
def test_rows_of_weight_0_beyond_the_range(value, sparse):
    X = np.vstack([A, [[value, 0.0], [-value, value], [4.0, 4.0]]])
    weights = np.repeat([1.0, 0.0], [6, 3])
    model = KMeans(2, init=A[[0, 3]]).fit(sp.csr_matrix(X) if sparse else X, sample_weight=weights)
    assert model.labels_.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 1]
    assert model.inertia_ == KMeans(2, init=A[[0, 3]]).fit(A).inertia_
    with pytest.raises(ValueError, match="too large"):
        model.predict(X)


def test_the_indices_of_seeds_are_those_of_all_rows():
    X, weights, kept = some_of_weight_0(60, 3)
    centers, indices = kmeans_plusplus(X, 5, sample_weight=weights, random_state=0)
    expected, own = kmeans_plusplus(X[kept], 5, sample_weight=weights[kept], random_state=0)
    assert centers.tobytes() == expected.tobytes() == X[indices].tobytes()
    assert np.array_equal(indices, np.flatnonzero(kept)[own])


def test_a_callable_start_sees_all_rows():
    X, weights, _ = some_of_weight_0(30, 2)
    seen = []

    def start(rows, n_clusters, random_state):
        seen.append(rows.shape)
        return A[:n_clusters]

    KMeans(2, init=start, n_init=1).fit(X, sample_weight=weights)
    assert seen == [X.shape]


@pytest.mark.parametrize(
    "fit", [KMeans(3).fit, MiniBatchKMeans(3).fit, MiniBatchKMeans(3).partial_fit]
)
def test_too_few_rows_that_count(fit):
    message = r"n_samples=2 should be >= n_clusters=3: of 6 rows, 4 have the weight 0\."
    weights = [0, 0, 1, 0, 1, 0]
    with pytest.raises(ValueError, match=message):
        fit(A, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        kmeans_plusplus(A, 3, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        k_means_batched(A[None], 3, sample_weight=[weights])
    with pytest.raises(ValueError, match=r"n_samples=6 should be >= n_clusters=7\.$"):
        KMeans(7).fit(A, sample_weight=np.ones(6))


def test_a_checkpoint_is_that_of_the_rows_that_count(tmp_path):
    X, weights, kept = some_of_weight_0(80, 3)
    path = tmp_path / "fit.npz"
    options = {"random_state": 0, "init": "random", "n_init": 2, "tol": 0.0}
    short = KMeans(5, max_iter=2, **options)
    short.set_callbacks(Checkpoint(path)).fit(X, sample_weight=weights)
    without = KMeans(5, **options).fit(X[kept], sample_weight=weights[kept])
    on = KMeans.resume(path).set_params(max_iter=300)
    same(on.fit(X, sample_weight=weights), without, X, kept)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1000), st.sampled_from(["f4", "f8"]), st.sampled_from([0.0, 1e-4, 0.05]),
    st.sampled_from(["cpu", "reference"]),
)  # fmt: skip
def test_integer_weights_mean_repeated_rows(seed, dtype, tol, device):
    X, weights, kept = some_of_weight_0(40, 3, dtype, seed, integer=True)
    times = weights.astype(int)
    options = {"init": X[kept][:4], "tol": tol, "empty": "keep", "device": device}
    model = KMeans(4, **options).fit(X, sample_weight=weights)
    repeated = KMeans(4, **options).fit(np.repeat(X, times, axis=0))
    assert np.array_equal(np.repeat(model.labels_, times), repeated.labels_)
    assert model.n_iter_ == repeated.n_iter_
    own, other = model.cluster_centers_, repeated.cluster_centers_
    sizes = np.abs(X[kept]).max(axis=0)
    assert (np.abs(own - other) <= np.spacing(np.maximum(np.abs(own), sizes.astype(dtype)))).all()
    assert model.inertia_ == pytest.approx(repeated.inertia_, rel=1e-6 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_weights_of_1_are_no_weights(device):
    X = blobs(100, 3, "float64")
    model = KMeans(5, random_state=0, tol=0.01, device=device)
    assert answer(model.fit(X, sample_weight=np.ones(100))) == answer(model.fit(X))


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_spread_is_the_mean_of_the_weighted_variances(dtype, weighted, device):
    X, weights, _ = some_of_weight_0(30, 3, dtype)
    weights = weights if weighted else None
    w = [Fraction(x) for x in (np.ones(30) if weights is None else weights).tolist()]
    columns = [[Fraction(x) for x in column] for column in X.astype(float).T.tolist()]
    means = [sum(a * b for a, b in zip(w, column, strict=True)) / sum(w) for column in columns]
    squares = [
        sum(a * (b - mean) ** 2 for a, b in zip(w, column, strict=True))
        for column, mean in zip(columns, means, strict=True)
    ]
    exact = float(sum(squares) / sum(w) / 3)
    assert choose(device, X, weights, None).mean_variance() == pytest.approx(exact, rel=1e-9)


def test_rows_of_weight_0_of_a_later_type_get_the_labels_that_predict_gives():
    near = np.array([[0.0], [1.0 - 1e-12]])
    model = MiniBatchKMeans(2, init=near, n_init=1, reassignment_ratio=0.0).partial_fit(near)
    model.counts_ = np.array([1e20, 1e20])
    # In float32 the second centre is 1, and the last row lies half-way.
    X = np.array([[0.0], [1.0], [0.5]], dtype=np.float32)
    model.partial_fit(X, sample_weight=[1.0, 1.0, 0.0])
    assert model.labels_.tolist() == model.predict(X).tolist() == [0, 1, 1]
