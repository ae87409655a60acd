"""What the fields of a file of ours may be: types and ranges of models and checkpoints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.loop.resuming import MT, State

__all__ = [
    "check",
    "is_real",
    "is_text",
    "is_whole",
    "sound_centers",
    "sound_costs",
    "sound_state",
]

# Words of the state of a generator; its position among them is at most as many.
WORDS = 624

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def check(sound: bool) -> None:
    """Raise a ValueError for a field that is not sound; the reader says which file is damaged."""
    if not sound:
        raise ValueError("a field of another type, or out of range")


def is_whole(value: Any, least: int, most: int = 2**63 - 1) -> bool:
    """Return whether this is an integer in a range; True and 1.0 are none."""
    return type(value) is int and least <= value <= most


def is_real(value: Any) -> bool:
    """Return whether this is a finite float."""
    return type(value) is float and math.isfinite(value)


def is_text(array: NDArray, ndim: int = 0) -> bool:
    """Return whether an array holds text only."""
    return array.dtype.kind == "U" and array.ndim == ndim


def sound_centers(
    centers: NDArray, shape: tuple[int, int] | None = None, dtype: np.dtype | None = None
) -> NDArray:
    """Return finite centres of some shape and type, or of any.

    Raises
    ------
    ValueError
        They are others.
    """
    check(centers.dtype in FLOATS if dtype is None else centers.dtype == dtype)
    check(centers.ndim == 2 and centers.size > 0 if shape is None else centers.shape == shape)
    check(bool(np.isfinite(centers).all()))
    return np.ascontiguousarray(centers)


def sound_costs(costs: NDArray, most: int) -> list[float]:
    """Return the inertias of at most so many iterations.

    Raises
    ------
    ValueError
        They are more, or no finite numbers of at least 0.
    """
    check(costs.dtype == np.float64 and costs.ndim == 1 and len(costs) <= most)
    check(bool((np.isfinite(costs) & (costs >= 0)).all()))
    return costs.tolist()


def sound_state(given: list[Any], words: NDArray) -> State:
    """Return the state of a generator, all of it in range: NumPy itself reads beyond its words.

    Raises
    ------
    ValueError
        A part of it is of another type, or out of range.
    """
    kind, position, has_gauss, gauss = given
    check(kind == MT and words.dtype == np.uint32 and words.shape == (WORDS,))
    check(is_whole(position, 0, WORDS) and is_whole(has_gauss, 0, 1) and is_real(gauss))
    check(has_gauss == 1 or gauss == 0.0)
    return kind, words, position, has_gauss, gauss
