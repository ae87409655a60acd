"""Weights and centres of kinds that NumPy would read as numbers though they are none."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from lloydia import KMeans, MiniBatchKMeans, assign, k_means, k_means_batched, kmeans_plusplus
from lloydia.data.arrays import real_numbers

pd = pytest.importorskip("pandas")

A = np.array([[0, 0], [0, 1], [1, 0], [4, 4], [4, 5], [5, 4]], float)
DAYS = pd.Series(pd.date_range("2020", periods=6))

REFUSED = {
    "sparse column": (sp.csr_matrix(np.ones((6, 1))), "is sparse, a csr_matrix"),
    "sparse row": (sp.csr_array(np.ones((1, 6))), "is sparse, a csr_array"),
    "sparse vector": (sp.coo_array(np.ones(6)), "is sparse, a coo_array"),
    "dates": (np.arange(6).astype("M8[D]"), r"holds datetime64\[D\]"),
    "spans": (np.arange(6).astype("m8[s]"), r"holds timedelta64\[s\]"),
    "pandas dates": (DAYS, r"holds datetime64"),
    "dates in a zone": (DAYS.dt.tz_localize("UTC"), r"\[0\] is Timestamp\('2020-01-01"),
    "periods": (DAYS.dt.to_period("D"), r"\[0\] is Period\('2020-01-01"),
    "text": (list("123456"), "holds text"),
    "underscored text": (["1_2"] * 6, "holds text"),
    "bytes": ([b"1"] * 6, "holds text"),
    "mixed": (np.array([1, 2, 3, 4, 5, "6"], object), r"\[5\] is '6'"),
    "None": ([1, 2, 3, 4, 5, None], r"\[5\] is None"),
    "NA": (pd.array([1, 2, 3, 4, 5, None], dtype="Int64"), r"\[5\] is (<NA>|nan)"),
    "categories": (pd.Series(list("abcabc")).astype("category"), r"\[0\] is 'a'"),
    "complex": (np.ones(6) * 1j, "holds complex128"),
    "records": (np.zeros(6, dtype=[("a", float)]), r"holds \[\('a', '<f8'\)\]"),
    "masked": (np.ma.array(np.ones(6), mask=[0, 0, 0, 0, 0, 1]), "1 value is masked"),
    "a type": (type, "is <class 'type'>"),
    "a dict": ({}, "is {}"),
    "a set": ({1, 2}, "is {1, 2}"),
    "a word": ("abc", "holds text"),
    "ragged": ([[1], [1, 2], 1, 1, 1, 1], "holds 6 rows of different lengths"),
    "huge": ([10**400] * 6, "holds numbers too large for float64"),
    "column": (np.ones((6, 1)), r"1D array or scalar, got 2D: sample_weight has shape \(6, 1\)"),
    "frame": (pd.DataFrame({"w": np.ones(6)}), "1D array or scalar, got 2D"),
    "NaN": (np.full(6, np.nan), r"\[0\] is nan"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_weights_that_are_no_numbers_are_named(name):
    weights, message = REFUSED[name]
    for fit in (KMeans(2).fit, MiniBatchKMeans(2).fit, MiniBatchKMeans(2).partial_fit):
        with pytest.raises(ValueError, match=f"(?i)sample.weight.*{message}|{message}.*sample_w"):
            fit(A, sample_weight=weights)
    for use in (k_means, kmeans_plusplus):
        with pytest.raises(ValueError, match=message):
            use(A, 2, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        KMeans(2).fit(A).score(A, sample_weight=weights)


TAKEN = {
    "bool": np.array([1, 1, 0, 1, 1, 0], bool),
    "small": np.array([1, 1, 0, 1, 1, 0], np.int8),
    "half": np.array([1, 1, 0, 1, 1, 0], np.float16),
    "long": np.array([1, 1, 0, 1, 1, 0], np.longdouble),
    "big-endian": np.array([1, 1, 0, 1, 1, 0], ">f4"),
    "list": [1, 1, 0, 1, 1, 0],
    "mixed": [1, True, 0.0, Fraction(1), Decimal(1), np.float32(0)],
    "no mask": np.ma.array([1, 1, 0, 1, 1, 0]),
    "nullable": pd.array([1, 1, 0, 1, 1, 0], dtype="Int64"),
    "numbers as categories": pd.Series([1, 1, 0, 1, 1, 0]).astype("category"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_weights_of_any_type_of_numbers_are_taken(name):
    expected = KMeans(2, init="first").fit(A, sample_weight=np.array([1, 1, 0, 1, 1, 0.0]))
    found = KMeans(2, init="first").fit(A, sample_weight=TAKEN[name])
    assert found.inertia_ == expected.inertia_


@pytest.mark.parametrize("name", ["dates", "text", "complex", "None"])
def test_weights_of_a_batch_of_fits(name):
    weights, message = REFUSED[name]
    with pytest.raises(ValueError, match=f"sample_weight.*{message.replace('5', '0, 5')}"):
        k_means_batched(A[None], 2, sample_weight=[weights])


CENTERS = {
    "text": (A[:2].astype(str), "holds text"),
    "lists of text": ([["1_0", "2"], ["3", "4"]], "holds text"),
    "dates": (A[:2].astype("M8[s]"), r"holds datetime64\[s\]"),
    "complex": (A[:2] * 1j, "holds complex128"),
    "None": ([[None, 1], [2, 3]], r"\[0, 0\] is None"),
    "frame of text": (pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}), r"\[0, 0\] is 'x'"),
    "records": (np.zeros((2, 2), "f8,f8"), "holds "),
}


@pytest.mark.parametrize("name", CENTERS)
def test_centres_that_are_no_numbers_are_named(name):
    centers, message = CENTERS[name]
    for kind in (KMeans, MiniBatchKMeans):
        with pytest.raises(ValueError, match=f"init.*{message}"):
            kind(2, init=centers, n_init=1).fit(A)
        with pytest.raises(ValueError, match=f"init.*{message}"):
            kind(2, init=lambda X, k, random_state: centers, n_init=1).fit(A)
    with pytest.raises(ValueError, match=f"centers.*{message}"):
        assign(A, centers)


def test_numbers_stay_as_they_are():
    for values in (np.arange(3, dtype=np.int8), np.ones((2, 2), np.float32), True):
        found = real_numbers("x", values, "numbers")
        assert found.dtype == np.asarray(values).dtype
        assert found.shape == np.shape(values)
