"""Validated rows grouped by their label, the input of every score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_X_y

from lloydia.data.arrays import ROWS, array_of, on_host, rows_on_host
from lloydia.data.chunks.source import Chunks
from lloydia.data.frames import labels_of
from lloydia.data.non_finite import refuse_non_finite
from lloydia.exact.distance import check_magnitudes
from lloydia.metrics.coincidence import NEAR

__all__ = ["Partition", "checked_labels", "labelled_rows", "partition"]


@dataclass(frozen=True)
class Partition:
    """Rows grouped by label.

    Attributes
    ----------
    X : ndarray of shape (n, d), float32 or float64
        The rows, finite, in their original order.
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

    def rows(self, cluster: int) -> np.ndarray:
        """Return the rows of a cluster, shape (size, d)."""
        return self.X[self.order[self.bounds[cluster] : self.bounds[cluster + 1]]]

    def centered(self, cluster: int, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the centroid of a cluster minus `origin`, and its rows minus the centroid.

        `origin` is subtracted first, so that an offset common to all rows costs no precision.  If
        the cluster is very small compared with its distance from `origin`, its first row is
        subtracted instead, so that rounding does not make equal rows different.

        Returns
        -------
        centroid : ndarray of shape (d,), float64
        deviations : ndarray of shape (size, d), float64
            All 0 if, and only if, the rows are equal.
        """
        rows = self.rows(cluster)
        shifted = np.subtract(rows, origin, dtype=np.float64)
        centroid = shifted.mean(axis=0)
        deviations = shifted - centroid
        if np.abs(deviations).max() <= NEAR * np.abs(shifted).max():
            own = np.subtract(rows, rows[0], dtype=np.float64)
            mean = own.mean(axis=0)
            centroid = np.subtract(rows[0], origin, dtype=np.float64) + mean
            deviations = own - mean
        return centroid, deviations


def labelled_rows(X: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rows as float32 or float64, and labels.

    The errors are those of `sklearn.utils.check_X_y`, except for NaN and infinity.
    """
    labels = checked_labels(labels)
    rows, labels = check_X_y(rows_on_host(X), labels, ensure_all_finite=False)
    refuse_non_finite(rows, given=X, names=labels_of(X))
    return (rows if rows.dtype in ROWS["dtype"] else rows.astype(np.float64)), labels


def checked_labels(labels: Any) -> Any:
    """Return labels on the host; refuse missing ones."""
    labels = on_host(labels)
    array = array_of("labels", labels)
    if array.ndim == 1:
        refuse_non_finite(array, "labels", advice="give each row a label")
    return labels


def partition(X: Any, labels: Any) -> Partition:
    """Validate data and labels as scikit-learn does and group the rows.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Real numbers.
    labels : array-like of shape (n,)
        Integers, strings, or other labels that `sklearn.preprocessing.LabelEncoder` accepts.

    Returns
    -------
    Partition
        The groups, numbered in the sorted order of the labels.

    Raises
    ------
    ValueError
        If the lengths differ, if X holds NaN or infinity, if there are fewer than 2 or more than
        n - 1 distinct labels, or if squared distances could overflow float64.
    TypeError
        If X is sparse or Chunks.
    """
    if isinstance(X, Chunks):
        raise TypeError(
            f"Scores need rows in memory, and X is read in blocks ({X!r}): pass an array, for "
            "example of a random sample of the rows."
        )
    X, labels = labelled_rows(X, labels)
    encoder = LabelEncoder()
    codes = encoder.fit_transform(labels)
    n, k = len(codes), len(encoder.classes_)
    if not 1 < k < n:
        raise ValueError(
            f"Number of labels is {k}. Valid values are 2 to n_samples - 1 (inclusive)"
        )
    # The numerator of the Calinski-Harabasz index is n times a sum of n squared distances.
    check_magnitudes(_largest_magnitude(X), (), X.shape[1], total_weight=float(n) ** 2)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.intp)
    return Partition(X, np.argsort(codes, kind="stable"), bounds)


def _largest_magnitude(X: np.ndarray) -> float:
    return float(max(X.max(initial=0), -X.min(initial=0)))
