"""Checks of the fields of model and checkpoint files: types and ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.loop.stored_parameters import MT, State

__all__ = [
    "check",
    "is_real",
    "is_text",
    "is_whole",
    "sound_centers",
    "sound_costs",
    "sound_state",
]

# The number of words in the state of a generator; its position is at most this.
WORDS = 624

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def check(sound: bool) -> None:
    """Raise ValueError for an invalid field; the reader turns it into an error about the file."""
    if not sound:
        raise ValueError("a field of another type, or out of range")


def is_whole(value: Any, least: int, most: int = 2**63 - 1) -> bool:
    """Return whether this is an integer in a range; True and 1.0 are not integers here."""
    return type(value) is int and least <= value <= most


def is_real(value: Any) -> bool:
    """Return whether this is a finite float."""
    return type(value) is float and math.isfinite(value)


def is_text(array: NDArray, ndim: int = 0) -> bool:
    """Return whether an array is a text of `ndim` dimensions."""
    return array.dtype.kind == "U" and array.ndim == ndim


def sound_centers(
    centers: NDArray, shape: tuple[int, int] | None = None, dtype: np.dtype | None = None
) -> NDArray:
    """Return centres that are finite and have the given shape and type; None means any.

    Raises
    ------
    ValueError
        If they do not.
    """
    check(centers.dtype in FLOATS if dtype is None else centers.dtype == dtype)
    check(centers.ndim == 2 and centers.size > 0 if shape is None else centers.shape == shape)
    check(bool(np.isfinite(centers).all()))
    return np.ascontiguousarray(centers)


def sound_costs(costs: NDArray, most: int) -> list[float]:
    """Return the inertias of at most `most` iterations.

    Raises
    ------
    ValueError
        If there are more, or they are not finite numbers >= 0.
    """
    check(costs.dtype == np.float64 and costs.ndim == 1 and len(costs) <= most)
    check(bool((np.isfinite(costs) & (costs >= 0)).all()))
    return costs.tolist()


def sound_state(given: list[Any], words: NDArray) -> State:
    """Return the state of a generator, with all parts in range.

    NumPy does not check the position, and would read beyond the words.

    Raises
    ------
    ValueError
        If a part is of another type, or out of range.
    """
    kind, position, has_gauss, gauss = given
    check(kind == MT and words.dtype == np.uint32 and words.shape == (WORDS,))
    check(is_whole(position, 0, WORDS) and is_whole(has_gauss, 0, 1) and is_real(gauss))
    check(has_gauss == 1 or gauss == 0.0)
    return kind, words, position, has_gauss, gauss
