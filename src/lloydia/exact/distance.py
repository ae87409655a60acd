"""The canonical squared distance, and the nearest centre it defines.

D(x, c) is the sum over the features, in their order, of ``(x_f - c_f)**2``.  Every operation is in
IEEE float64 and rounded once, without fused multiply-add.  The label of x is the lowest index j
that minimises D(x, c_j).

Each of the ``d`` non-negative terms has two roundings, and each addition has one more.  So the
relative error of the computed D is at most ``(d + 2) * 2**-53`` to first order (Higham, "Accuracy
and Stability of Numerical Algorithms", 2002, section 3.1); :func:`relative_error` returns a bound
that includes the higher orders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "check_magnitudes",
    "in_order",
    "largest_magnitude",
    "movement",
    "nearest",
    "own_distances",
    "relative_error",
    "squared_distances",
]

# A sum of non-negative terms is representable while it stays below this.
LARGEST_SUM = 2.0**1023


def squared_distances(X: NDArray, centers: NDArray) -> NDArray[np.float64]:
    """Return the canonical squared distance of every row to every centre.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
    centers : ndarray of shape (k, d), float32 or float64

    Returns
    -------
    ndarray of shape (n, k), float64
    """
    X = X.astype(np.float64, copy=False)
    centers = centers.astype(np.float64, copy=False)
    total = np.zeros((len(X), len(centers)))
    if X.shape[1] > max(total.shape):
        # Python's loop over many features would take longer than the arithmetic.
        for j in range(len(centers)):
            total[:, j] = _sums_of_squares(X - centers[j])
        return total
    for f in range(X.shape[1]):
        difference = X[:, f, None] - centers[None, :, f]
        total += difference * difference
    return total


def nearest(X: NDArray, centers: NDArray) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the label of each row, ties to the lowest index, and its D.

    Returns
    -------
    labels : ndarray of shape (n,), int32
    distances : ndarray of shape (n,), float64
        Squared distance to the centre of the label.
    """
    D = squared_distances(X, centers)
    labels = D.argmin(axis=1)  # argmin takes the first of equal values
    return labels.astype(np.int32), D[np.arange(len(X)), labels]


def own_distances(X: NDArray, labels: NDArray, centers: NDArray) -> NDArray[np.float64]:
    """Return the D of each row to the centre of its label, shape (n,)."""
    return _sums_of_squares(X.astype(np.float64, copy=False) - centers[labels])


def _sums_of_squares(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of squares of each row, added in the order of the features."""
    return np.cumsum(differences * differences, axis=1)[:, -1].copy()


def movement(old: NDArray, new: NDArray) -> tuple[float, float]:
    """Return the movements of centres.

    Returns
    -------
    shift : float
        The sum of D between old and new centres, added in the order of the centres.
    move : float
        The largest change of a coordinate of any centre.
    """
    squares = own_distances(old, np.arange(len(old)), new)
    difference = new.astype(np.float64) - old.astype(np.float64)
    return in_order(squares), float(np.abs(difference).max(initial=0.0))


def in_order(values: NDArray[np.float64]) -> float:
    """Return the float64 sum of `values`, added one after another (as cumsum does)."""
    return float(np.cumsum(values)[-1])


def relative_error(n_features: int) -> float:
    """Return a bound on ``|D - true squared distance| / true squared distance``."""
    return (n_features + 4) * 2.0**-53


def largest_magnitude(n_features: int, total_weight: float = 1.0) -> float:
    """Return the magnitude up to which weighted sums of squared distances cannot overflow."""
    return math.sqrt(LARGEST_SUM / (4.0 * n_features) / max(total_weight, 1.0))


def check_magnitudes(
    largest: float, centers: Sequence | NDArray, n_features: int, total_weight: float = 1.0
) -> None:
    """Refuse data for which a weighted sum of squared distances could overflow float64.

    Parameters
    ----------
    largest : float
        Largest magnitude in X.
    centers : array-like
        Centres that are not means of X, whose magnitudes count as well; may be empty.
    n_features : int
    total_weight : float
        Sum of the sample weights; without weights, the number of rows.

    Raises
    ------
    ValueError
        If a magnitude is too large; the message names it and the largest possible one.
    """
    magnitude, where = largest, "X"
    if len(centers):
        of_centers = float(np.abs(np.asarray(centers, dtype=np.float64)).max())
        if of_centers > magnitude:
            magnitude, where = of_centers, "the centres"
    limit = largest_magnitude(n_features, total_weight)
    if not magnitude <= limit:
        finds = f", or leave out the values where abs(X) > {limit:.3g}" if where == "X" else ""
        raise ValueError(
            f"A value of magnitude {magnitude:.3g} in {where} is too large: squared distances "
            f"overflow float64 above {limit:.3g} here; rescale the data{finds}."
        )
