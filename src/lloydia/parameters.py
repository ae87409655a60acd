"""Checks of the parameters of estimators, each with an error of one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.random import RandomState

from lloydia.algorithms import ALGORITHMS
from lloydia.data.device_arrays import on_gpu
from lloydia.data.frames import is_frame
from lloydia.loop.empty import POLICIES
from lloydia.seeding import SEEDINGS
from lloydia.seeding.generator import is_seed
from lloydia.spelling import meant
from lloydia.stopping import Rule

__all__ = [
    "InvalidParameterError",
    "check_choice",
    "check_init",
    "check_int",
    "check_mini_batches",
    "check_parameters",
    "check_seed",
    "check_threads",
    "is_name",
]


class InvalidParameterError(ValueError, TypeError):
    """The error for a parameter of the wrong type or out of range.

    It is a ValueError and a TypeError, as scikit-learn's.
    """


def check_parameters(estimator: Any) -> None:
    """Check the parameters of a :class:`lloydia.KMeans` that do not depend on the data.

    Raises
    ------
    InvalidParameterError
        If a parameter is invalid; the message names it, its value and the valid values.
    """
    _check_shared(estimator)
    if not isinstance(estimator.copy_x, bool | np.bool_):
        raise InvalidParameterError(f"copy_x={estimator.copy_x!r} must be True or False.")
    if estimator.stop is not None and not isinstance(estimator.stop, Rule):
        raise InvalidParameterError(
            f"stop={estimator.stop!r} must be None or a rule of lloydia.stopping, such as "
            "Labels(0.001)."
        )
    check_choice("algorithm", estimator.algorithm, ALGORITHMS)
    check_choice("empty", estimator.empty, POLICIES)


def check_mini_batches(estimator: Any) -> None:
    """Check the parameters of a :class:`lloydia.MiniBatchKMeans` that do not depend on the data.

    Raises
    ------
    InvalidParameterError
        As :func:`check_parameters`.
    """
    _check_shared(estimator)
    check_int("batch_size", estimator.batch_size)
    if estimator.init_size is not None:
        check_int("init_size", estimator.init_size, "None or ")
    if not isinstance(estimator.compute_labels, bool | np.bool_):
        raise InvalidParameterError(
            f"compute_labels={estimator.compute_labels!r} must be True or False."
        )
    limit = estimator.max_no_improvement
    if limit is not None and (not isinstance(limit, Integral) or limit < 0):
        raise InvalidParameterError(
            f"max_no_improvement={limit!r} must be None or an integer >= 0."
        )
    _check_least_0("reassignment_ratio", estimator.reassignment_ratio)


def _check_shared(estimator: Any) -> None:
    check_int("n_clusters", estimator.n_clusters)
    check_int("max_iter", estimator.max_iter)
    if not (isinstance(estimator.n_init, str) and estimator.n_init == "auto"):
        check_int("n_init", estimator.n_init, "'auto' or ")
    check_threads(estimator.n_threads)
    if not isinstance(estimator.verbose, int | Integral | np.bool_) or estimator.verbose < 0:
        raise InvalidParameterError(f"verbose={estimator.verbose!r} must be an integer >= 0.")
    _check_least_0("tol", estimator.tol)
    check_seed("random_state", estimator.random_state)
    check_init(estimator.init)


def _check_least_0(name: str, value: Any) -> None:
    if not isinstance(value, float | Real) or not float(value) >= 0:
        raise InvalidParameterError(f"{name}={value!r} must be a number >= 0.")


def check_int(name: str, value: Any, alternative: str = "") -> None:
    """Raise InvalidParameterError if the value is not an integer >= 1."""
    # The check of the plain type is much faster, and almost all values are plain integers.
    plain = type(value) is int
    if not (plain or (isinstance(value, Integral) and not isinstance(value, bool))) or value < 1:
        raise InvalidParameterError(f"{name}={value!r} must be {alternative}an integer >= 1.")


def check_threads(n_threads: Any) -> None:
    """Raise InvalidParameterError if `n_threads` is neither None nor an integer >= 1."""
    if n_threads is not None:
        check_int("n_threads", n_threads, "None or ")


def check_seed(name: str, seed: Any) -> None:
    """Raise InvalidParameterError if `seed` cannot seed random numbers."""
    if not (seed is None or is_seed(seed) or isinstance(seed, RandomState) or seed is np.random):
        raise InvalidParameterError(
            f"{name}={seed!r} must be None, an integer from 0 to 2**32 - 1, or a "
            "numpy.random.RandomState."
        )


def check_init(init: Any) -> None:
    """Raise InvalidParameterError if `init` is no name of a seeding, no array and no callable.

    :mod:`lloydia.seeding.given` checks the shape and the values of an array.
    """
    # A class is callable, but makes no centres.
    if isinstance(init, type) or (not callable(init) and is_name(init)):
        check_choice("init", init, SEEDINGS, ", an array or a callable")


def is_name(init: Any) -> bool:
    """Return whether `init` is a single value, such as the name of a seeding, and not an array."""
    if isinstance(init, str):
        return True
    # np.ndim may raise for lists and data frames.
    table = on_gpu(init) or is_frame(init) or isinstance(init, list | tuple)
    return not table and np.ndim(init) == 0


# Names that other libraries and papers use, and Lloydia's name of the same thing.
SAME = {
    "full": "lloyd",
    "kmeans": "k-means++",
    "k-means": "k-means++",
    "kmeanspp": "k-means++",
    "scalable-k-means++": "k-means||",
    "scalable-kmeans++": "k-means||",
    "forgy": "random",
    "maximin": "farthest",
    "raise": "error",
}


def check_choice(name: str, value: Any, choices: Iterable[str], alternative: str = "") -> None:
    """Raise InvalidParameterError if the value is not one of the names; suggest a near one."""
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameterError(
            f"{name}={value!r} must be one of {known}{alternative}{meant(value, choices, SAME)}"
        )
