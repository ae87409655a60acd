"""The engine's parts as lower packages see them, so that these need not import them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["SummedClusters"]


class SummedClusters(Protocol):
    """Sums of the rows of each cluster; see :class:`clusters.Clusters`.

    Attributes
    ----------
    sums : ndarray of shape (n_threads, n_limbs, k, d + 1 or more), int64
    touched : ndarray of shape (n_threads, k or more), bool
        Whether a thread changed a cluster's sums since its mean was taken.
    """

    sums: NDArray[np.int64]
    touched: NDArray[np.bool_]
