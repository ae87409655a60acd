"""Which column has nearly all of the variance."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from lloydia.data import variances
from lloydia.data.columns import Columns
from lloydia.data.variances import Variances, warn_of_dominant, warning_of_blocks


def table(scales, n=500, offset=0.0):
    rng = np.random.default_rng(0)
    # Columns of the same variance but for their scales.
    X = np.stack([rng.permutation(n) for _ in scales], axis=1) - (n - 1) / 2
    return X * np.sqrt(np.asarray(scales, dtype=float)) + offset


@pytest.mark.parametrize("form", [np.array, np.float32, sp.csr_array])
@pytest.mark.parametrize(
    ("scales", "dominant"),
    [
        ([1, 1], None),
        ([94, 6], None),
        ([3, 97], (1, 0.97)),
        ([1, 1, 198], (2, 0.99)),
        ([0, 1], (1, 1.0)),
        ([0, 0], None),
        ([5], None),
    ],
)
def test_a_column_with_nearly_all_of_the_variance(form, scales, dominant, monkeypatch):
    monkeypatch.setattr(variances, "PORTION", 700)
    X = table(scales)
    found = Variances(len(scales))
    found.add(form(X[:130]))
    found.add(form(X[130:]))
    if dominant is None:
        assert found.dominant() is None
    else:
        assert found.dominant() == (dominant[0], pytest.approx(dominant[1], rel=1e-5))


def test_an_offset_is_no_variance():
    found = Variances(2)
    found.add(table([1, 1], offset=np.array([1e12, 0.0])))
    assert found.dominant() is None


def test_numbers_whose_squares_overflow_are_not_warned_of():
    found = Variances(2)
    found.add(np.array([[1e300, 1.0], [-1e300, 2.0]]))
    assert found.dominant() is None


COLUMNS = Columns((0, 4), ("age", "income"))


def test_the_warning_names_the_column_and_its_share():
    with pytest.warns(
        UserWarning, match=r"^x: column 5 \('income'\) has 97\.0 % of the variance of all columns"
    ):
        warn_of_dominant(table([3, 97]), COLUMNS, "x")


def test_a_share_is_not_rounded_up():
    with pytest.warns(UserWarning, match=r"99\.9 %"):
        warn_of_dominant(table([1, 1e9]), COLUMNS, "x")


def test_blocks_are_warned_of_once_when_all_have_come():
    X = table([3, 97])
    look = warning_of_blocks(COLUMNS, X.shape, "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        look(X[:499])
    with pytest.warns(UserWarning, match="income"):
        look(X[499:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        look(X)
