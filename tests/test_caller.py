"""Warnings about a fit point at the line that called it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from lloydia import KMeans, MiniBatchKMeans, k_means, k_means_batched

X = np.array([[0.0], [0.0], [1.0], [1.0]])
WARNED = {
    "few clusters": lambda: KMeans(3, random_state=0).fit(X),
    "by fit_predict": lambda: KMeans(3, random_state=0).fit_predict(X),
    "by a function": lambda: k_means(X, 3, random_state=0),
    "in a pipeline": lambda: make_pipeline(KMeans(3, random_state=0)).fit(X),
    "mini-batches": lambda: MiniBatchKMeans(3, random_state=0).fit(X),
    "a batch": lambda: k_means_batched(X[None], 3, random_state=0),
    "elkan": lambda: KMeans(1, algorithm="elkan", random_state=0).fit(X),
    "one start": lambda: KMeans(2, init=X[1:3], n_init=3).fit(X),
    "init_size": lambda: MiniBatchKMeans(2, init_size=1, random_state=0).fit(X),
}


@pytest.mark.parametrize("what", WARNED)
def test_a_warning_is_at_the_callers_line(what):
    with pytest.warns((UserWarning, RuntimeWarning)) as seen:
        WARNED[what]()
    assert {warning.filename for warning in seen} == {__file__}
