"""Centres that the caller gives, as an array or from a callable."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from lloydia.data.arrays import on_host
from lloydia.data.device_arrays import center_dtype

__all__ = ["checked"]


def checked(centers: Any, X: Any, n_clusters: int) -> NDArray:
    """Return a copy of `centers`, dense, on the host, in the type of the centres of `X`.

    Raises
    ------
    ValueError
        If they are not finite, or their shape is not (n_clusters, n_features).
    """
    if sp.issparse(centers):
        centers = centers.toarray()
    centers = check_array(on_host(centers), dtype=center_dtype(X), copy=True, order="C")
    for axis, (name, expected) in enumerate(
        (("clusters", n_clusters), ("features of the data", X.shape[1]))
    ):
        if centers.shape[axis] != expected:
            raise ValueError(
                f"The shape of the initial centers {centers.shape} does not match the number of "
                f"{name} {expected}."
            )
    return centers
