"""Errors for NaN and infinity name the place, and the calls that they advise work."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.impute  # noqa: F401 - advised

import lloydia
from lloydia import KMeans, MiniBatchKMeans
from lloydia.data.non_finite import refuse_non_finite

ROWS = np.arange(24.0).reshape(8, 3) ** 2


def rows(value, second=None):
    X = ROWS.copy()
    X[4, 1] = value
    if second is not None:
        X[6, 0] = second
    return X


def pandas(X):
    return pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])


def nullable(X):
    frame = pandas(X)
    return frame.mask(frame.isna(), None).convert_dtypes()


def polars(X):
    return pytest.importorskip("polars").DataFrame(X, schema=["a", "b", "c"], nan_to_null=True)


def arrow(X):
    return pytest.importorskip("pyarrow").table(dict(zip("abc", X.T)))


def torch(X):
    return pytest.importorskip("torch").tensor(X)


def dask(X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(3, 3))


NAMED, NUMBERED = "row 5, column 'b'", "row 5, column 2 (X[4, 1])"
GIVEN = {
    "NumPy": (np.array, NUMBERED),
    "float32": (lambda X: X.astype("float32"), NUMBERED),
    "list": (np.ndarray.tolist, "row 5, column 2 (X[4][1])"),
    "CSR array": (sp.csr_array, NUMBERED),
    "CSC matrix": (sp.csc_matrix, NUMBERED),
    "COO array": (sp.coo_array, NUMBERED),
    "pandas": (pandas, NAMED),
    "pandas, nullable": (nullable, NAMED),
    "polars": (polars, NAMED),
    "Arrow": (arrow, NAMED),
    "torch": (torch, NUMBERED),
    "Dask": (dask, NUMBERED),
}
MODULES = ("numpy", "pandas", "polars", "torch", "dask.array", "sklearn")


def advised(message, X):
    """Return the rows that each advised call returns."""
    there = {name.split(".")[0]: __import__(name) for name in MODULES if name.split(".")[0]}
    drop, _, fill = re.search(r"by (.*?)(, or fill them in by (.*))?\.$", message).groups()
    drop, _, before = drop.partition(" after X = ")
    if before:
        X = eval(before, there, {"X": X})
    return [eval(call, there, {"X": X}) for call in (drop, fill) if call]


@pytest.mark.parametrize("library", GIVEN)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_advice_works(library, value):
    make, place = GIVEN[library]
    X = make(rows(value))
    for name in MODULES:
        pytest.importorskip(name)
    with pytest.raises(ValueError, match="Input X contains") as caught:
        KMeans(2, random_state=0).fit(X)
    message = str(caught.value)
    what = "NaN" if np.isnan(value) else "infinity"
    assert message.startswith(f"Input X contains {what} in 1 of 8 rows, at {place}; drop such rows")
    assert "\n" not in message
    found = advised(message, X)
    assert len(found) == (2 if np.isnan(value) and library not in ("Arrow", "Dask") else 1)
    for each, n in zip(found, (7, 8)):
        assert len(KMeans(2, random_state=0).fit(each).labels_) == n


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_rows_are_counted(make):
    X = make(rows(np.inf, np.nan))
    X[6, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN in 1 of 8 rows, at row 7, column 1 \(X\[6, 0\]\)"):
        refuse_non_finite(X)
    X = make(rows(np.nan, np.nan))
    with pytest.raises(ValueError, match=r"NaN in 2 of 8 rows, first at row 5, column 2 \("):
        refuse_non_finite(X)


def test_sums_that_overflow_are_no_infinity():
    refuse_non_finite(np.full((4, 2), 3e38, dtype=np.float32))
    refuse_non_finite(np.full((4, 2), 1.5e308))
    refuse_non_finite(np.array([[1, 2]]))


def test_values_beyond_float64():
    X = rows(0.0).astype(np.longdouble)
    X[4, 1] = np.longdouble("1e4000") if np.finfo(np.longdouble).maxexp > 1024 else np.inf
    with pytest.raises(ValueError, match="infinity") as caught:
        KMeans(2).fit(X)
    if X.dtype.itemsize > 8:
        assert "too large for float64, in 1 of 8 rows, at row 5" in str(caught.value)
        assert str(caught.value).endswith("scale the values down to the range of float64.")


@pytest.mark.parametrize("make", [list, pandas])
def test_whole_numbers_beyond_float64(make):
    X = rows(0.0).astype(object)
    X[4, 1] = 10**400
    with pytest.raises(ValueError, match="holds numbers too large for float64: scale them down"):
        KMeans(2).fit(make(X.tolist()))


def test_columns_of_vectors():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"v": [[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]]})
    with pytest.raises(ValueError, match=r"row 2, column 'v\[1\]'; drop such rows, or give finite"):
        KMeans(2).fit(X)


def test_texts_have_no_mean():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"a": ["1", None, "3"], "b": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"row 2, column 'a'; drop such rows by X.dropna\(\)\.$"):
        KMeans(2).fit(X)


CALLS = {
    "predict": (lambda X: KMeans(2).fit(ROWS).predict(X), "X contains NaN in 1 of 8 rows, at"),
    "transform": (lambda X: KMeans(2).fit(ROWS).transform(X), "X contains NaN in 1 of 8 rows"),
    "score": (lambda X: KMeans(2).fit(ROWS).score(X), "X contains NaN in 1 of 8 rows"),
    "mini batches": (lambda X: MiniBatchKMeans(2).fit(X), "X contains NaN in 1 of 8 rows"),
    "partial_fit": (lambda X: MiniBatchKMeans(2).partial_fit(X), "X contains NaN in 1 of 8 rows"),
    "k_means": (lambda X: lloydia.k_means(X, 2), "X contains NaN in 1 of 8 rows"),
    "assign": (lambda X: lloydia.assign(X, ROWS[:2]), "X contains NaN in 1 of 8 rows"),
    "kmeans_plusplus": (lambda X: lloydia.kmeans_plusplus(X, 2), "X contains NaN in 1 of 8 rows"),
    "batched": (
        lambda X: lloydia.k_means_batched(np.stack([ROWS, X]), 2),
        r"X\[1\] contains NaN in 1 of 8 rows, at row 5, column 2 \(X\[1\]\[4, 1\]\); all its",
    ),
    "init": (
        lambda X: KMeans(2, init=X[3:5], n_init=1).fit(ROWS),
        r"init contains NaN in 1 of 2 rows, at row 2, column 2 \(init\[1, 1\]\); every number of",
    ),
    "callable init": (
        lambda X: KMeans(2, init=lambda *_, random_state: X[3:5], n_init=1).fit(ROWS),
        r"init contains NaN in 1 of 2 rows, at row 2, column 2 \(init\[1, 1\]\); every number of",
    ),
    "centers": (
        lambda X: lloydia.assign(ROWS, X[3:5]),
        r"centers contains NaN in 1 of 2 rows, at row 2, column 2 \(centers\[1, 1\]\); every",
    ),
    "norms": (
        lambda X: lloydia.kmeans_plusplus(ROWS, 2, x_squared_norms=X[:, 1]),
        r"x_squared_norms contains NaN at x_squared_norms\[4\]; leave them out",
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_every_argument(call):
    function, message = CALLS[call]
    with pytest.raises(ValueError, match=f"^Input {message}"):
        function(rows(np.nan))


@pytest.mark.parametrize(
    ("X", "init", "message"),
    [
        (
            rows(1e300),
            "random",
            r"1e\+300 in X is .*, or leave out the values where abs\(X\) > [0-9]",
        ),
        (ROWS, rows(1e300)[3:5], r"1e\+300 in the centres is .*; rescale the data\.$"),
    ],
)
def test_values_that_are_too_large(X, init, message):
    with pytest.raises(ValueError, match=message):
        KMeans(2, init=init, n_init=1).fit(X)
