"""Lazy predictions, on Dask's scheduler in this process: no cluster is needed."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans, MiniBatchKMeans
from table import blobs

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
def test_blocks_have_the_labels_and_distances_of_the_whole(kind):
    X = blobs(300, 3, "float32")
    model = kind(5, random_state=0).fit(X)
    # Columns are in two chunks, and one block of rows is empty.
    rows = da.from_array(X, chunks=((100, 0, 200), (2, 1)))
    labels, distances = model.predict(rows), model.transform(rows)
    assert labels.chunks == ((100, 0, 200),)
    assert distances.chunks == ((100, 0, 200), (5,))
    assert (labels.dtype, distances.dtype) == (np.int32, X.dtype)
    assert (labels.compute() == model.predict(X)).all()
    assert (distances.compute() == model.transform(X)).all()


def test_nothing_is_computed_before_it_is_asked_for():
    X = blobs(300, 3, "float32")
    model = KMeans(5, random_state=0).fit(X)
    X[210, 1] = np.nan
    labels = model.predict(da.from_array(X, chunks=(100, 3)))
    assert (labels[:100].compute() == model.predict(X[:100])).all()
    with pytest.raises(ValueError, match="Partition 2 of X: Input X contains NaN"):
        labels.compute()


def test_the_number_of_features_is_known_before():
    model = KMeans(5, random_state=0).fit(blobs(300, 3, "float32"))
    with pytest.raises(ValueError, match="X has 2 features, but KMeans is expecting 3"):
        model.predict(da.zeros((300, 2)))
