"""What every score starts from: the rows of X grouped by their label, validated once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_X_y

from lloydia.data.arrays import on_host
from lloydia.data.chunks.source import Chunks
from lloydia.exact.distance import check_magnitudes

__all__ = ["Partition", "partition"]


@dataclass(frozen=True)
class Partition:
    """Rows grouped by label.

    Attributes
    ----------
    X : {ndarray, sparse matrix in CSR format} of shape (n, d)
        The finite data, in their own order and dtype.
    order : ndarray of shape (n,), intp
        The row numbers sorted by cluster, ascending within one.
    bounds : ndarray of shape (k + 1,), intp
        The rows of cluster ``j`` are ``order[bounds[j] : bounds[j + 1]]``; none is empty.
    """

    X: Any
    order: np.ndarray
    bounds: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows in each cluster, shape (k,), intp."""
        return np.diff(self.bounds)

    def residuals(self, cluster: int, origin: np.ndarray) -> np.ndarray:
        """Return the rows of a cluster minus `origin` (d,), float64, shape (size, d)."""
        rows = self.order[self.bounds[cluster] : self.bounds[cluster + 1]]
        return np.subtract(self.X[rows], origin, dtype=np.float64)

    def centroids(self, origin: np.ndarray) -> np.ndarray:
        """Return the mean of each cluster minus `origin`, float64, shape (k, d).

        The subtraction comes first: an offset common to all rows then costs no digits.
        """
        k = len(self.bounds) - 1
        return np.stack([self.residuals(j, origin).mean(axis=0) for j in range(k)])


def partition(X: Any, labels: Any, *, accept_sparse: str | bool = False) -> Partition:
    """Validate data and labels as scikit-learn does and group the rows.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Real numbers; CSR where `accept_sparse` says so.
    labels : array-like of shape (n,)
        Integers, strings: whatever `sklearn.preprocessing.LabelEncoder` takes.
    accept_sparse : str or bool
        As in `sklearn.utils.check_X_y`.

    Returns
    -------
    Partition
        The groups, numbered in the sorted order of the labels.

    Raises
    ------
    ValueError
        Lengths that differ, NaN or infinity, fewer than 2 or more than n - 1 different labels, or
        magnitudes whose squared distances overflow float64.
    TypeError
        Sparse X where it is not accepted, or X that is read by blocks.
    """
    if isinstance(X, Chunks):
        raise TypeError(
            f"scores take rows in memory, and X is read by blocks, {X!r}: give an array."
        )
    X, labels = check_X_y(on_host(X), on_host(labels), accept_sparse=accept_sparse)
    encoder = LabelEncoder()
    codes = encoder.fit_transform(labels)
    n, k = len(codes), len(encoder.classes_)
    if not 1 < k < n:
        raise ValueError(
            f"Number of labels is {k}. Valid values are 2 to n_samples - 1 (inclusive)"
        )
    # Calinski and Harabasz's numerator is n times a sum of n squared distances
    check_magnitudes(_largest_magnitude(X), (), X.shape[1], total_weight=float(n) ** 2)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.intp)
    return Partition(X, np.argsort(codes, kind="stable"), bounds)


def _largest_magnitude(X: Any) -> float:
    values = X if isinstance(X, np.ndarray) else X.data
    return float(max(values.max(initial=0), -values.min(initial=0)))
