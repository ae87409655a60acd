"""A cache of the framed rows of a small data set: they are framed again only if the frame changes.

Any frame is valid for the certificate (:mod:`lloydia.exact.certificate`), and in a frame in which
the centres have hardly moved the error bounds are as small as in a new one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.scan.centers import aligned
from lloydia.backends.cpu.scan.nearest import BLOCK_BYTES
from lloydia.backends.cpu.simd.microkernel_low_dim import LOW_DIM
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import GROUP

__all__ = ["NOT_CACHED", "FramedCache"]

# For the scan: there is no cache, and rows are framed block by block.
NOT_CACHED = (np.empty((0, 0, GROUP), np.float32), np.empty(0, np.float32), False)


class FramedCache:
    """All rows of a data set, framed, if they take no more memory than a block of a scan may.

    Parameters
    ----------
    X : ndarray of shape (n, d)

    Attributes
    ----------
    frame : tuple or None
        The frame that the rows are in.  Frames are compared by identity.
    """

    def __init__(self, X: NDArray) -> None:
        self.shape = -(-len(X) // GROUP), X.shape[1], GROUP
        self.frame: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, X: NDArray) -> FramedCache | None:
        """Return a cache for `X` if it is small, but has enough features that framing pays."""
        return cls(X) if X.shape[1] > LOW_DIM and 4 * X.size <= BLOCK_BYTES else None

    def rows(self, frame: tuple[Any, ...]) -> tuple[NDArray, NDArray, bool]:
        """Return memory for framed rows and their squares, and whether it is filled already."""
        there, self.frame = frame is self.frame, frame
        if not hasattr(self, "y"):
            self.y = aligned(self.shape)
            self.squares = aligned((self.shape[0] * GROUP,))
        return self.y, self.squares, there
