"""Centres that the caller gives, as an array or from a callable."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from lloydia.data.arrays import array_of, on_host
from lloydia.data.device_arrays import center_dtype, on_gpu

__all__ = ["checked", "fits"]


def fits(centers: Any, X: Any, n_clusters: int) -> bool:
    """Return whether centres are beside X on a GPU, and need no check but of their magnitudes.

    Then an engine takes them as they are.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(centers, torch.Tensor):
        return False
    return (
        centers.shape == (n_clusters, X.shape[1])
        and centers.device == X.device
        and centers.dtype == (torch.float64 if X.dtype == torch.float64 else torch.float32)
        and X.dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
        and centers.layout == torch.strided
        and centers.is_contiguous()
        and not centers.is_neg()
    )


def checked(centers: Any, X: Any, n_clusters: int) -> NDArray:
    """Return a copy of `centers`, dense, on the host, in the type of the centres of `X`.

    Raises
    ------
    ValueError
        If they are not finite, or their shape is not (n_clusters, n_features).
    """
    if sp.issparse(centers):
        centers = centers.toarray()
    there, dtype = on_gpu(centers), center_dtype(X)
    centers = on_host(centers)
    if isinstance(centers, list | tuple):
        centers = array_of("init", centers)
    if np.ndim(centers) != 2:
        raise ValueError(
            f"init gives an array of shape {np.shape(centers)} and must give one of shape "
            f"{(n_clusters, X.shape[1])}: a row of features for each cluster."
        )
    if _plain(centers, dtype):
        # What comes from a GPU is a copy.
        centers = np.ascontiguousarray(centers) if there else centers.copy(order="C")
    else:
        centers = check_array(
            centers, dtype=dtype, copy=True, order="C", input_name="init", ensure_min_samples=0,
            ensure_min_features=0,
        )  # fmt: skip
    for axis, (name, expected) in enumerate(
        (("clusters", n_clusters), ("features of the data", X.shape[1]))
    ):
        if centers.shape[axis] != expected:
            raise ValueError(
                f"The shape of the initial centers {centers.shape} does not match the number of "
                f"{name} {expected}."
            )
    return centers


def _plain(centers: Any, dtype: np.dtype) -> bool:
    """Return whether there is nothing to convert or to refuse.

    To ask scikit-learn takes longer than an iteration over few rows.
    """
    plain = type(centers) is np.ndarray and centers.dtype == dtype and centers.ndim == 2
    return plain and centers.size > 0 and bool(np.isfinite(centers).all())
