"""Initial centres that the caller gives, as an array or by a callable."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from lloydia.data.centers import dense, in_order_of, is_plain
from lloydia.data.device_arrays import center_dtype, on_gpu
from lloydia.data.non_finite import FINITE_CENTERS, refuse_non_finite

__all__ = ["called", "checked", "fits"]


def fits(centers: Any, X: Any, n_clusters: int) -> bool:
    """Return whether an engine can use the centres as they are, on X's GPU.

    Then only their magnitudes need a check.
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


def called(init: Callable[..., Any], X: Any, n_clusters: int, random_state: Any) -> Any:
    """Return the result of a callable `init`.

    Raises
    ------
    TypeError
        If the callable does not accept the arguments.  Errors from within it are not changed.
    """
    try:
        return init(X, n_clusters, random_state=random_state)
    except TypeError as error:
        # The traceback of an error from within the callable has another frame.
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        raise TypeError(
            f"init={init!r} cannot be called as init(X, n_clusters, random_state=...): "
            f"{str(error).rstrip('.')}."
        ) from None


def checked(centers: Any, X: Any, n_clusters: int, names: Sequence[Any] | None = None) -> NDArray:
    """Return a copy of `centers` as an ndarray, in the type of the centres of `X`.

    Parameters
    ----------
    centers : array-like, sparse matrix or data frame of shape (n_clusters, n_features)
    X : array of shape (n_samples, n_features)
    n_clusters : int
    names : sequence, optional
        Labels of the features; the columns of a data frame are put in this order.

    Raises
    ------
    ValueError
        If they are not finite real numbers, or their shape is not (n_clusters, n_features), or
        their columns have other labels than the features.
    """
    there, dtype = on_gpu(centers), center_dtype(X)
    wanted = (
        "gives an array of shape {shape} and must give one of shape "
        f"{(n_clusters, X.shape[1])}: a row of features for each cluster."
    )
    centers = in_order_of(names, "init", *dense("init", centers, wanted))
    if is_plain(centers, dtype):
        # An array from a GPU is a copy already.
        centers = np.ascontiguousarray(centers) if there else centers.copy(order="C")
    else:
        centers = check_array(
            centers, dtype=dtype, copy=True, order="C", input_name="init", ensure_min_samples=0,
            ensure_min_features=0, ensure_all_finite=False,
        )  # fmt: skip
        refuse_non_finite(centers, "init", advice=FINITE_CENTERS)
    for axis, (name, expected) in enumerate(
        (("clusters", n_clusters), ("features of the data", X.shape[1]))
    ):
        if centers.shape[axis] != expected:
            raise ValueError(
                f"The shape of the initial centers {centers.shape} does not match the number of "
                f"{name} {expected}: give centres of shape {(n_clusters, X.shape[1])}."
            )
    return centers
