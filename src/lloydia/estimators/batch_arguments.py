"""What a batch is given: rows, starts, weights and seeds of all members, checked."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state

from lloydia.data.arrays import (
    ROWS,
    real_numbers,
    rows_on_host,
)
from lloydia.data.device_arrays import as_tensor, center_dtype, load_torch, on_gpu
from lloydia.data.device_rows import check_rows
from lloydia.data.non_finite import refuse_non_finite
from lloydia.loop.several_runs import about
from lloydia.parameters import check_seed

__all__ = ["check_batch", "places_of", "split", "starts_of", "states_of"]


def check_batch(X: Any) -> Any:
    """Return the batch as an ndarray or a tensor, checked except for NaN and infinity on a GPU."""
    there = on_gpu(X)
    X = as_tensor(X) if there else rows_on_host(X)
    if not there:
        X = check_array(
            X, dtype=ROWS["dtype"], allow_nd=True, ensure_2d=False, ensure_min_samples=0,
            ensure_all_finite=False,
        )  # fmt: skip
    if X.ndim != 3 or 0 in X.shape:
        raise ValueError(
            f"X has shape {tuple(X.shape)} and must have the shape (n_members, n_samples, "
            "n_features), without zeros: for a single data set use lloydia.k_means, or pass "
            "X[None]."
        )
    if there:
        return check_rows(X.flatten(0, 1)).unflatten(0, X.shape[:2])
    _refuse_non_finite(X)
    return X


def _refuse_non_finite(X: NDArray) -> None:
    """Raise the error about the first member that holds NaN or infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        doubtful = np.flatnonzero(~np.isfinite(X.sum(axis=(1, 2))))
    for b in doubtful.tolist():
        with about(b):
            refuse_non_finite(X[b], f"X[{b}]", advice="all its values must be finite")


def starts_of(init: Any, X: Any, n_clusters: int) -> Any:
    """Return the initial centres of all members, on the GPU if they need no conversion.

    float64 centres are checked on the host, because their squares may overflow.
    """
    shape = (X.shape[0], n_clusters, X.shape[2])
    if on_gpu(init) and on_gpu(X):
        starts = as_tensor(init)
        single = str(starts.dtype) == "torch.float32" and center_dtype(X) == np.float32
        there = starts.device == X.device and starts.shape == shape
        if single and there:
            return starts
    return split("init", init, shape)


def split(name: str, values: Any, shape: tuple[int, ...]) -> NDArray | None:
    """Return `values` as an ndarray of `shape`, one entry per member; None remains None."""
    if values is None:
        return None
    array = real_numbers(name, values, "centres" if name == "init" else "weights")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape} and must have shape {shape}.")
    return array


def states_of(random_state: Any, size: int) -> list[RandomState]:
    """Return the random generator of each member."""
    if isinstance(random_state, Integral):
        if not 0 <= random_state <= 2**32 - size:  # type: ignore[operator]
            raise ValueError(
                f"random_state={random_state!r} must be from 0 to 2**32 - {size}, because member b "
                f"of the {size} members gets the seed random_state + b."
            )
        return [check_random_state(int(random_state) + b) for b in range(size)]
    if isinstance(random_state, list | tuple | np.ndarray):
        if len(random_state) != size:
            raise ValueError(
                f"random_state has {len(random_state)} seeds for {size} members: give one seed for "
                "each member."
            )
        for b, seed in enumerate(random_state):
            check_seed(f"random_state[{b}]", seed)
        return [check_random_state(seed) for seed in random_state]
    check_seed("random_state", random_state)
    return [check_random_state(random_state)] * size


def places_of(X: Any, n_clusters: int) -> tuple[Any, Any]:
    """Return uninitialised arrays for the centres and labels of all members, on X's device."""
    size, n, d = X.shape
    if not on_gpu(X):
        centers = np.empty((size, n_clusters, d), dtype=X.dtype)
        return centers, np.empty((size, n), dtype=np.int32)
    torch = load_torch()
    wide = getattr(torch, center_dtype(X).name)
    new = {"device": X.device}
    return (
        torch.empty((size, n_clusters, d), dtype=wide, **new),
        torch.empty((size, n), dtype=torch.int32, **new),
    )
