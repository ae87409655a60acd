from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse
import sklearn.metrics

from lloydia import metrics

NAMES = sorted(metrics.__all__)
X = np.arange(12.0).reshape(6, 2)
BAD = {
    "one label": (X, [0] * 6),
    "as many labels as rows": (X, list(range(6))),
    "too few labels": (X, [0, 1, 0]),
    "no rows": (X[:0], []),
    "one dimension": (X[:, 0], [0, 0, 0, 1, 1, 1]),
    "labels in two columns": (X, np.eye(6, 2, dtype=int)),
}
NOT_FINITE = {
    "labels contains NaN at labels[4]; give each": (X, [0, 0, 1, 1, np.nan, 0]),
    "X contains NaN in 1 of 6 rows, at row 3, column 2": (
        np.where(X == 5, np.nan, X),
        [0, 0, 0, 1, 1, 1],
    ),
    "X contains infinity in 2 of 6 rows, first at row 3, column 2": (
        np.where((X == 5) | (X == 6), np.inf, X),
        [0, 0, 0, 1, 1, 1],
    ),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", BAD)
def test_scikit_learns_errors(name, case):
    with pytest.raises(ValueError, match=r".") as theirs:
        getattr(sklearn.metrics, name)(*BAD[case])
    with pytest.raises(ValueError, match=r".") as ours:
        getattr(metrics, name)(*BAD[case])
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("message", NOT_FINITE)
def test_values_that_are_not_finite(name, message):
    with pytest.raises(ValueError, match=re.escape(f"Input {message}")):
        getattr(metrics, name)(*NOT_FINITE[message])


@pytest.mark.parametrize("name", NAMES)
def test_text_is_refused(name):
    with pytest.raises(ValueError, match="'a' is not a number"):
        getattr(metrics, name)(np.full((6, 2), "a"), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("name", NAMES)
def test_overflow_is_refused(name):
    with pytest.raises(ValueError, match="overflow float64"):
        getattr(metrics, name)(X * 1e160, [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("name", NAMES)
def test_large_magnitudes(name):
    labels = [0, 0, 1, 1, 0, 1]
    score = getattr(metrics, name)
    np.testing.assert_array_equal(score(X * 2.0**480, labels), score(X, labels))


@pytest.mark.parametrize("name", ["calinski_harabasz_score", "davies_bouldin_score"])
def test_sparse_data_is_refused_as_scikit_learn_does(name):
    for module in (sklearn.metrics, metrics):
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            getattr(module, name)(scipy.sparse.csr_matrix(X), [0, 0, 0, 1, 1, 1])
