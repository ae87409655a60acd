"""Rows on a GPU grouped by their label; see :mod:`lloydia.metrics.partition`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_X_y

from lloydia.data.arrays import on_host
from lloydia.data.device_arrays import as_tensor, on_gpu
from lloydia.data.device_rows import refuse_non_finite
from lloydia.exact.distance import check_magnitudes
from lloydia.metrics.partition import checked_labels

__all__ = ["DevicePartition", "checked", "device_partition"]


@dataclass(frozen=True)
class DevicePartition:
    """Rows sorted by cluster.

    Attributes
    ----------
    X : tensor of shape (n, d), float64
        The rows sorted by cluster; within a cluster they keep their order.
    codes : tensor of shape (n,), int32
        The cluster of each of these rows.
    order : tensor of shape (n,), int64
        The original index of each of these rows.
    bounds : tensor of shape (k + 1,), int32
        The rows of cluster j are ``bounds[j]`` to ``bounds[j + 1] - 1``; none is empty.
    """

    X: torch.Tensor
    codes: torch.Tensor
    order: torch.Tensor
    bounds: torch.Tensor

    @property
    def sizes(self) -> torch.Tensor:
        """Number of rows in each cluster: shape (k,)."""
        return self.bounds.diff()

    def rows_of(self, cluster: int) -> torch.Tensor:
        """Return the original indices of the rows of a cluster."""
        start, stop = self.bounds[cluster : cluster + 2].tolist()
        return self.order[start:stop]


def checked(X: Any, labels: Any) -> tuple[torch.Tensor, Any]:
    """Return rows as a tensor and labels as a tensor or ndarray.

    The errors are those of `sklearn.utils.check_X_y`, except for NaN and infinity.
    """
    rows = as_tensor(X)
    if rows.ndim != 2 or 0 in rows.shape or rows.is_complex():
        check_X_y(on_host(rows), on_host(labels))
    if not finite(rows):
        refuse_non_finite(rows)
    if not rows.is_floating_point():
        rows = rows.double()
    if on_gpu(labels):
        labels = as_tensor(labels)
        if labels.shape == rows.shape[:1] and not labels.is_floating_point():
            return rows, labels.to(rows.device)
    # The rows have been checked; check_X_y gets zeros in their place and checks the labels.
    return rows, check_X_y(np.zeros((len(rows), 1)), checked_labels(labels))[1]


def finite(rows: torch.Tensor) -> bool:
    """Return whether all numbers of any real type are finite."""
    return not rows.is_floating_point() or math.isfinite(largest(rows))


def largest(rows: torch.Tensor) -> float:
    """Return the largest magnitude, or NaN if the rows hold NaN."""
    low, high = (float(bound) for bound in torch.aminmax(rows))
    return max(-low, high)


def device_partition(X: torch.Tensor, labels: Any) -> DevicePartition:
    """Group the rows that :func:`checked` returned.

    Raises
    ------
    ValueError
        If there are fewer than 2 or more than n - 1 distinct labels, or if squared distances could
        overflow float64.
    """
    n = len(X)
    if isinstance(labels, torch.Tensor):
        classes, codes = torch.unique(labels, return_inverse=True)
        k = len(classes)
    else:
        encoder = LabelEncoder()
        codes = torch.as_tensor(encoder.fit_transform(labels), device=X.device)
        k = len(encoder.classes_)
    if not 1 < k < n:
        raise ValueError(
            f"Number of labels is {k}. Valid values are 2 to n_samples - 1 (inclusive)"
        )
    check_magnitudes(largest(X), (), X.shape[1], total_weight=float(n) ** 2)
    codes, order = torch.sort(codes, stable=True)
    bounds = torch.searchsorted(codes, torch.arange(k + 1, device=X.device), out_int32=True)
    return DevicePartition(X[order].to(torch.float64), codes.to(torch.int32), order, bounds)
