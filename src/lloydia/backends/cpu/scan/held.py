"""Few rows, held in their frame: they need not be framed again while that stays as it is.

Any frame is right for the certificate (:mod:`lloydia.exact.certificate`), and one that centres have
hardly moved in is as sharp as their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.scan.centers import aligned
from lloydia.backends.cpu.scan.nearest import BLOCK_BYTES
from lloydia.backends.cpu.simd.low_points import LOW
from lloydia.backends.cpu.simd.points import GROUP

__all__ = ["NOT_HELD", "Held"]

# For the scan: rows are framed block by block.
NOT_HELD = (np.empty((0, 0, GROUP), np.float32), np.empty(0, np.float32), False)


class Held:
    """All rows of a data set, framed, where these take no more than a block of them may.

    Parameters
    ----------
    X : ndarray of shape (n, d)

    Attributes
    ----------
    frame : tuple or None
        The one that the rows are in: that very object.
    """

    def __init__(self, X: NDArray) -> None:
        self.shape = -(-len(X) // GROUP), X.shape[1], GROUP
        self.frame: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, X: NDArray) -> Held | None:
        """Return the place to hold `X`, if they are few enough, and to frame them takes a while."""
        return cls(X) if X.shape[1] > LOW and 4 * X.size <= BLOCK_BYTES else None

    def rows(self, frame: tuple[Any, ...]) -> tuple[NDArray, NDArray, bool]:
        """Return where the rows of a frame are or will be, their squares, and if they are there."""
        there, self.frame = frame is self.frame, frame
        if not hasattr(self, "y"):
            self.y = aligned(self.shape)
            self.squares = aligned((self.shape[0] * GROUP,))
        return self.y, self.squares, there
