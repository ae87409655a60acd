"""The parts of a model file, and the valid values of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms import ALGORITHMS
from lloydia.data.models.fields import check, is_real, is_whole
from lloydia.imports import load
from lloydia.parameters import check_mini_batches, check_parameters

__all__ = ["ESTIMATORS", "FORMAT", "OUTPUTS", "Estimator", "checked_array", "checked_fact"]

# Later formats have higher numbers; the first format was called "lloydia k-means 1".
FORMAT = "lloydia model 2"

# The possible settings of set_output(transform=...).
OUTPUTS = (None, "default", "pandas", "polars")


def _is_count(value: Any) -> bool:
    return is_whole(value, 0)


# Fitted attributes that are numbers or texts: the type each is converted to, and a validity test.
FACTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], bool]]] = {
    "inertia_": (float, lambda value: is_real(value) and value >= 0),
    "n_iter_": (int, _is_count),
    "converged_": (bool, lambda value: type(value) is bool),
    "n_distances_": (int, _is_count),
    "n_rechecked_": (int, _is_count),
    "algorithm_": (str, lambda value: type(value) is str and value in ALGORITHMS),
    "device_": (str, lambda value: type(value) is str),
    "n_steps_": (int, lambda value: is_whole(value, 1)),
    "_init_size": (int, lambda value: is_whole(value, 1)),
    "_n_init": (int, lambda value: is_whole(value, 1)),
    "_since": (int, _is_count),
    "_n_distinct": (int, lambda value: is_whole(value, 1)),
}


@dataclass(frozen=True)
class Estimator:
    """An estimator class that can be saved.

    Attributes
    ----------
    module, name : str
    facts : tuple of str
        The names in `FACTS` that a fitted estimator may have.
    arrays : tuple of str
        The arrays, besides the centres, that a fitted estimator may have.
    check : callable
        It raises ValueError for an instance whose parameters are out of range.
    """

    module: str
    name: str
    facts: tuple[str, ...]
    arrays: tuple[str, ...]
    check: Callable[[Any], None]

    @property
    def type(self) -> type:
        """The class."""
        return getattr(load(self.module), self.name)


_KMEANS = (
    ("inertia_", "n_iter_", "converged_", "n_distances_", "n_rechecked_", "algorithm_", "device_"),
    ("inertia_history_",),
    check_parameters,
)
_STEPS = ("n_steps_", "_init_size", "_n_init", "_since", "_n_distinct")

# Keys are the names of the classes in files.
ESTIMATORS = {
    "KMeans": Estimator("lloydia.estimators.kmeans", "KMeans", *_KMEANS),
    "MiniBatchKMeans": Estimator(
        "lloydia.estimators.minibatch",
        "MiniBatchKMeans",
        ("inertia_", "n_iter_", "device_", *_STEPS),
        ("counts_",),
        check_mini_batches,
    ),
    "dask.KMeans": Estimator("lloydia.dask", "KMeans", *_KMEANS),
}


def checked_fact(name: str, value: Any) -> Any:
    """Return a number or a text unchanged.

    Raises
    ------
    ValueError
        If it is out of range, or of another type.
    """
    check(FACTS[name][1](value))
    return value


def checked_array(name: str, values: NDArray, k: int) -> Any:
    """Return an array as the value of the attribute `name`; k is the number of centres.

    Raises
    ------
    ValueError
        If the array has another shape or type, or holds a negative or non-finite value.
    """
    check(values.dtype == np.float64 and values.ndim == 1)
    check(bool((np.isfinite(values) & (values >= 0)).all()))
    if name == "counts_":
        check(len(values) == k)
        return values
    return values.tolist()
