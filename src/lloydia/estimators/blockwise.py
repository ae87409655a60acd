"""predict and transform of Dask arrays and data frames: lazy, and block by block.

A label depends only on its row and the centres, so the blocks are independent of each other.  Dask
computes nothing before the result is needed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from lloydia.data.arrays import rows_on_host
from lloydia.data.collections import undeclared
from lloydia.data.device_arrays import center_dtype
from lloydia.estimators.base_kmeans import BaseKMeans
from lloydia.estimators.rows import check_width, features_of
from lloydia.imports import load

__all__ = ["blockwise"]


def blockwise(model: BaseKMeans, X: Any, method: str) -> Any:
    """Return the result of a fitted estimator's method for a Dask collection as a lazy Dask array.

    Parameters
    ----------
    model : BaseKMeans
        A fitted estimator.
    X : Dask array or data frame
        Chunks across columns are merged.
    method : {"predict", "transform"}

    Returns
    -------
    Dask array of shape (n_samples,), int32, or (n_samples, n_clusters)
        It has the row chunks of `X`; for a data frame the chunk lengths are unknown.

    Raises
    ------
    ValueError
        If the number or the names of the features are not those of the fit.  Values that are not
        finite numbers raise the error when their block is computed; it names the partition.
    """
    check_is_fitted(model)
    framed = hasattr(X, "columns")
    like = X._meta if framed else np.empty((0, X.shape[1]))
    validate_data(model, like, reset=False, skip_check_array=True)
    centers = model._fitted_centers()
    check_width(centers, X.shape[1])
    empty: NDArray = np.empty(0, np.int32)
    if method == "transform":
        kind = rows_on_host(X._meta) if framed else X
        empty = np.empty((0, len(centers)), center_dtype(kind))
    options = {"model": light(model, centers), "method": method, "empty": empty, "meta": empty}
    if framed:
        return X.map_partitions(of_block, **options)
    columns = [(n,) for n in empty.shape[1:]]
    gone = [] if columns else [1]
    X = X.rechunk({1: -1})
    return X.map_blocks(of_block, **options, chunks=(X.chunks[0], *columns), drop_axis=gone)


def light(model: BaseKMeans, centers: NDArray) -> BaseKMeans:
    """Return a small estimator to send to the workers: its centres, and one thread by default."""
    KMeans = load("lloydia.estimators.kmeans").KMeans
    own = KMeans(model.n_clusters, device=model.device, n_threads=model.n_threads or 1)
    vars(own).update(features_of(model), cluster_centers_=centers)
    return own


def of_block(
    block: Any,
    model: BaseKMeans,
    method: str,
    empty: NDArray,
    block_info: Any = None,
    partition_info: Any = None,
) -> Any:
    """Return the result of the method for one block.

    Dask passes `block_info` for a block of an array, `partition_info` for one of a data frame.
    """
    number = block_info[0]["chunk-location"][0] if block_info else partition_info["number"]
    if block_info:
        first, end = block_info[0]["array-location"][0]
        if not math.isnan(end - first) and end - first != block.shape[0]:
            raise ValueError(undeclared(number, "rows", block.shape[0], end - first))
    if block.shape[0] == 0:
        return empty
    try:
        return getattr(model, method)(block)
    except ValueError as error:
        raise ValueError(f"Partition {number} of X: {error}") from None
