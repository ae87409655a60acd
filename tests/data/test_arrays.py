"""Arrays that need no validation: those that scikit-learn's would return as they are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from lloydia.data.arrays import ROWS, is_sound

X = np.random.default_rng(0).normal(size=(40, 6))
SOUND = {
    "float64": X,
    "float32": X.astype("float32"),
    "columns": np.asfortranarray(X),
    "view": X[::2, ::-2],
    "one number": X[:1, :1],
}
UNSOUND = {
    "integers": X.astype(int),
    "half": X.astype("float16"),
    "other byte order": X.astype(">f8"),
    "list": X.tolist(),
    "one dimension": X[0],
    "no rows": X[:0],
    "no features": X[:, :0],
    "a number that is none": np.where(X == X[3, 3], np.nan, X),
    "infinities": np.where(X == X[3, 3], np.inf, np.where(X == X[5, 5], -np.inf, X)),
    "subclass": X.view(type("Named", (np.ndarray,), {})),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_arrays_are_what_validation_would_return(name):
    array = SOUND[name]
    assert is_sound(array)
    assert validate_data(BaseEstimator(), array, **ROWS) is array


@pytest.mark.parametrize("name", UNSOUND)
def test_others_are_for_validation(name):
    assert not is_sound(UNSOUND[name])


def test_sums_that_overflow_are_looked_at_more_closely():
    assert not is_sound(np.full((50, 2), 3e38, dtype=np.float32))
