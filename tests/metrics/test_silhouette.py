from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import sklearn.metrics
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

from lloydia.metrics import silhouette_samples, silhouette_score

SHAPES = [(3, 1, 2), (20, 2, 19), (64, 3, 2), (65, 1, 5), (200, 16, 7), (257, 33, 100), (500, 2, 3)]


def data(n, d, k, offset=0.0, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) + offset).astype(dtype)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return X + labels[:, None].astype(dtype), rng.permutation(labels)


def reference(X, labels):
    """The definition, from scipy's direct differences, row by row."""
    distances = cdist(X.astype(np.float64), X.astype(np.float64))
    members = {label: np.flatnonzero(labels == label) for label in np.unique(labels)}
    result = np.zeros(len(X))
    for i, own in enumerate(labels):
        if len(members[own]) > 1:
            a = distances[i, members[own]].sum() / (len(members[own]) - 1)
            b = min(distances[i, rows].mean() for label, rows in members.items() if label != own)
            result[i] = (b - a) / max(a, b) if max(a, b) > 0 else 0.0
    return result


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_definition(shape, dtype, offset):
    X, labels = data(*shape, offset=offset, dtype=dtype)
    np.testing.assert_allclose(
        silhouette_samples(X, labels), reference(X, labels), rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_scikit_learn_in_float64(shape, dtype):
    X, labels = data(*shape)
    X = (X * 8).astype(dtype)
    X64 = X.astype(np.float64)
    ours = silhouette_samples(X, labels)
    assert ours.dtype == np.float64
    theirs = sklearn.metrics.silhouette_samples(X64, labels)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert silhouette_score(X, labels) == pytest.approx(
        sklearn.metrics.silhouette_score(X64, labels), rel=1e-12, abs=1e-12
    )


def test_float32_keeps_float64_digits():
    X, labels = data(300, 8, 4, offset=1e3, dtype=np.float32)
    ours = silhouette_score(X, labels)
    assert ours == pytest.approx(reference(X, labels).mean(), rel=1e-12)


@pytest.mark.parametrize("n_threads", [2, 3, 7])
def test_same_bits_on_any_number_of_threads(n_threads):
    X, labels = data(1000, 5, 6, offset=1e3)
    one = silhouette_samples(X, labels, n_threads=1)
    np.testing.assert_array_equal(silhouette_samples(X, labels, n_threads=n_threads), one)


@pytest.mark.parametrize("sample_size", [2**3, 100, 10**6])
def test_sample(sample_size):
    X, labels = make_blobs(200, 3, centers=3, random_state=1)
    arguments = {"sample_size": sample_size, "random_state": 5}
    assert silhouette_score(X, labels, **arguments) == pytest.approx(
        sklearn.metrics.silhouette_score(X, labels, **arguments), rel=1e-12
    )


def test_labels_of_any_kind_and_layouts():
    X, labels = data(50, 3, 4)
    expected = silhouette_samples(X, labels)
    names = np.array(["w", "x", "y", "z"])[labels]
    for same in (labels - 7, names, names.astype(object), list(names), labels * 10**12):
        np.testing.assert_array_equal(silhouette_samples(X, same), expected)
    for same in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist()):
        np.testing.assert_array_equal(silhouette_samples(same, labels), expected)


def test_singletons_and_coinciding_rows_score_zero():
    X = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [5.0, 0.0]])
    labels = [0, 0, 1, 1, 2]
    np.testing.assert_array_equal(silhouette_samples(X, labels), np.zeros(5))
    np.testing.assert_array_equal(silhouette_samples(X[2:], [1, 1, 2]), [1.0, 1.0, 0.0])


def test_input_is_left_alone():
    X, labels = data(70, 3, 4)
    X.flags.writeable = labels.flags.writeable = False
    before = X.copy()
    silhouette_samples(X, labels)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("score", [silhouette_samples, silhouette_score])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "cosine"}, "metric='cosine'"),
        ({"n_threads": 0}, "n_threads=0"),
        ({"n_threads": 1.5}, "n_threads=1.5"),
    ],
)
def test_parameters_out_of_range(score, arguments, message):
    with pytest.raises(ValueError, match=message):
        score([[0.0], [1.0], [2.0]], [0, 0, 1], **arguments)


@pytest.mark.parametrize("sample_size", [0, -1, 2.5])
def test_sample_size_out_of_range(sample_size):
    with pytest.raises(ValueError, match="sample_size="):
        silhouette_score([[0.0], [1.0], [2.0]], [0, 0, 1], sample_size=sample_size)


@pytest.mark.parametrize("score", [silhouette_samples, silhouette_score])
def test_sparse_data_is_refused(score):
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        score(scipy.sparse.csr_matrix(np.eye(3)), [0, 0, 1])


def test_numba_is_imported_late():
    code = "import sys, lloydia.metrics; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
