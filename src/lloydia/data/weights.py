"""Weights of rows, checked."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrays import real_numbers
from lloydia.exact.sums import weight_magnitudes

__all__ = [
    "check_weights",
    "first_unacceptable",
    "positive_rows",
    "refuse_range",
    "refuse_weight",
]

# With a larger ratio of the largest to the smallest weight, products could leave float64's range.
LARGEST_RATIO = 2.0**200


def check_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
    """Return the weights on the host as float64, or None if there are none.

    Raises
    ------
    ValueError
        If the weights are not one finite number >= 0 per row, if all are 0, or if their ratio is
        too large.
    """
    if sample_weight is None:
        return None
    weights = real_numbers("sample_weight", sample_weight, "weights").astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    if weights.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim}D: sample_weight has "
            f"shape {weights.shape}."
        )
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_samples,)}!")
    if (bad := first_unacceptable(weights)) is not None:
        refuse_weight(bad, weights[bad])
    with np.errstate(over="ignore"):
        total = weights.sum()
    largest, least = weight_magnitudes(weights)
    refuse_range(total, least, largest)
    return weights


def first_unacceptable(weights: NDArray[np.float64]) -> int | None:
    """Return the place, as in a flat array, of the first weight that is not finite and >= 0."""
    # A comparison with NaN is false, and the extremes are NaN where a weight is.
    if weights.min(initial=0.0) >= 0.0 and weights.max(initial=0.0) < np.inf:
        return None
    return int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])


def positive_rows(
    weights: NDArray[np.float64] | None, n_samples: int, count: int
) -> NDArray[np.int64]:
    """Return the first rows of positive weight, at most `count`; without weights, all are."""
    if weights is None:
        return np.arange(min(count, n_samples))
    return np.flatnonzero(weights > 0)[:count]


def refuse_weight(row: int, weight: float) -> NoReturn:
    """Raise the error for an invalid weight."""
    raise ValueError(f"sample_weight[{row}] is {weight}: weights must be finite and >= 0.")


def refuse_range(total: float, least: float, largest: float) -> None:
    """Refuse weights by their sum, and by the ratio of the largest to the least positive one."""
    if not np.isfinite(total):
        raise ValueError("The sample weights add up to infinity: scale them down.")
    if largest == 0:
        raise ValueError("All sample weights are zero: give at least one row a positive weight.")
    if largest / LARGEST_RATIO > least:
        raise ValueError(
            f"The weights {least:.3g} and {largest:.3g} lie too far apart: their ratio must be at "
            f"most {LARGEST_RATIO:.3g}."
        )
