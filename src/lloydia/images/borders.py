"""The borders of the segments of a picture, and their small regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt
from scipy.sparse.csgraph import connected_components

from lloydia.data.arrays import on_host

__all__ = ["boundaries", "without_specks"]


def boundaries(labels: Any) -> Any:
    """Return the borders of segments: pixels whose right or lower neighbour has another label.

    Parameters
    ----------
    labels : array of shape (height, width)
        The labels of the pixels, in any array library.

    Returns
    -------
    edge : array of shape (height, width), bool
        True at the borders; an array of the same library.

    Examples
    --------
    >>> import numpy as np
    >>> from lloydia.images import boundaries
    >>> boundaries(np.array([[0, 0, 1], [0, 0, 1]]))
    array([[False,  True, False],
           [False,  True, False]])
    """
    edge = labels != labels
    edge[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    edge[:-1] |= labels[:-1] != labels[1:]
    return edge


def without_specks(labels: Any, least: int) -> NDArray[np.int32]:
    """Return labels in which small pieces of segments are merged into the nearest larger piece.

    A piece is a set of pixels of one label that are connected horizontally or vertically.

    Parameters
    ----------
    labels : array of shape (height, width)
        The labels of the pixels, in any array library.
    least : int
        Pieces of fewer pixels than this are small.  If all pieces are small, nothing changes.

    Returns
    -------
    ndarray of shape (height, width)
    """
    labels = on_host(labels)
    # 32-bit numbers take half the memory, which is large for a photograph.
    short = np.int32 if labels.size < 2**31 else np.int64
    number = np.arange(labels.size, dtype=short).reshape(labels.shape)
    across, down = labels[:, :-1] == labels[:, 1:], labels[:-1] == labels[1:]
    one = np.concatenate([number[:, :-1][across], number[:-1][down]])
    other = np.concatenate([number[:, 1:][across], number[1:][down]])
    joined = sp.coo_array((np.ones(len(one), bool), (one, other)), shape=[labels.size] * 2)
    pieces = connected_components(joined, directed=False)[1]
    small = (np.bincount(pieces) < least)[pieces].reshape(labels.shape)
    if small.all() or not small.any():
        return labels
    nearest = distance_transform_edt(small, return_distances=False, return_indices=True)
    return labels[tuple(nearest)]
