"""Conversion of sparse matrices to the format of the engines: CSR with 32-bit indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from lloydia.spelling import either

__all__ = ["as_csr"]

# The largest index that 32 bits hold.
LARGEST = np.iinfo(np.int32).max


def as_csr(X: Any) -> Any:
    """Return a sparse matrix in CSR format with sorted, unique 32-bit indices.

    Duplicates are summed.  The result shares the memory of `X` if nothing must change; `X` itself
    is never changed.

    Parameters
    ----------
    X : sparse matrix or array of SciPy, of shape (n, d), in any format

    Raises
    ------
    ValueError
        If X does not have two dimensions, has more columns or stored values than 32-bit indices can
        count, or has indices outside of its columns.
    """
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a sparse array of shape {X.shape} instead.")
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X is sparse and holds {X.dtype}.")
    X = X.tocsr()
    _check(X)
    if X.indices.dtype != np.int32 or X.indptr.dtype != np.int32:
        narrow = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        # A new matrix, because the caller's matrix must not change.
        X = type(X)((X.data, *narrow), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _check(X: Any) -> None:
    """Refuse matrices too large for 32-bit indices, and indices that are out of bounds."""
    for what, count in (("columns", X.shape[1]), ("stored values", int(X.indptr[-1]))):
        if count > LARGEST:
            raise ValueError(
                f"X is sparse and has {count:,} {what}, and at most {LARGEST:,} are possible: "
                + ("leave out columns." if what == "columns" else "give fewer rows at a time.")
            )
    indptr, stored = X.indptr, min(len(X.indices), len(X.data))
    sound = len(indptr) == X.shape[0] + 1 and indptr[0] == 0 and indptr[-1] <= stored
    if sound and (indptr[1:] >= indptr[:-1]).all():
        indices = X.indices[: indptr[-1]]
        if len(indices) == 0 or (indices.min() >= 0 and indices.max() < X.shape[1]):
            return
    raise ValueError(
        "X is sparse and its indices do not fit its shape: "
        f"{either('X.check_format() tells where', 'write the file anew')}."
    )
