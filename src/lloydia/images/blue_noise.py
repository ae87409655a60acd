"""A blue-noise texture: thresholds of which neighbours differ much, by void and cluster.

R. A. Ulichney, "The void-and-cluster method for dither array generation", *Proc. SPIE* 1913, 1993.
A pattern of ones on a torus is *tightest* where the sum of Gaussians around its ones is largest
among the ones, and has its *largest void* where that sum is least among the zeros.  A first pattern
is evened out by moving its tightest one into its largest void until that changes nothing.  Then all
places are ranked: the ones of that pattern by taking away the tightest, over and over, the rest by
filling the largest void, over and over.  (Ulichney changes to the sum around zeros when half of the
places are ones; the sums around ones and around zeros add up to a constant, so the largest void of
the ones is the tightest cluster of the zeros, and nothing changes.)
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["texture"]

DEVIATION = 1.5  # of the Gaussian, in pixels: Ulichney's
FIRST = 0.1  # share of ones in the first pattern


class _Pattern:
    """Ones on a torus, and the sum of Gaussians around them."""

    def __init__(self, size: int) -> None:
        away = np.minimum(np.arange(size), size - np.arange(size))
        bell = np.exp(-0.5 * (away / DEVIATION) ** 2)
        # Twice in each direction: the Gaussian around any place is a window of it.  In integers:
        # sums do not drift, and the texture is the same everywhere.
        self.bells = np.tile(np.rint(np.outer(bell, bell) * 2**32).astype(np.int64), (2, 2))
        self.ones = np.zeros((size, size), bool)
        self.sums = np.zeros((size, size), np.int64)

    def put(self, place: int, one: bool) -> None:
        """Make the place a one, or a zero."""
        size = len(self.ones)
        y, x = divmod(place, size)
        bell = self.bells[size - y : 2 * size - y, size - x : 2 * size - x]
        self.ones[y, x] = one
        self.sums += bell if one else -bell

    def tightest(self) -> int:
        return int(np.where(self.ones, self.sums, -1).argmax())

    def largest_void(self) -> int:
        return int(np.where(self.ones, np.iinfo(np.int64).max, self.sums).argmin())


@lru_cache(maxsize=1)
def texture(size: int = 64) -> NDArray[np.float32]:
    """Return thresholds in (0, 1), each once, that tile the plane; it takes a fifth of a second.

    Parameters
    ----------
    size : int
        Height and width.

    Returns
    -------
    ndarray of float32, shape (size, size), read-only
        ``(rank + 1/2) / size^2``.
    """
    pattern = _Pattern(size)
    n_first = int(FIRST * size * size)
    for place in np.random.RandomState(0).permutation(size * size)[:n_first]:
        pattern.put(int(place), True)
    while True:
        taken = pattern.tightest()
        pattern.put(taken, False)
        void = pattern.largest_void()
        pattern.put(void, True)
        if void == taken:
            break
    ranks = np.empty(size * size, np.int64)
    first = pattern.ones.copy()
    for rank in range(n_first - 1, -1, -1):
        ranks[place := pattern.tightest()] = rank
        pattern.put(place, False)
    pattern.ones[:] = False
    pattern.sums[:] = 0
    for place in np.flatnonzero(first):
        pattern.put(int(place), True)
    for rank in range(n_first, size * size):
        ranks[place := pattern.largest_void()] = rank
        pattern.put(place, True)
    thresholds = ((ranks + 0.5) / size**2).astype(np.float32).reshape(size, size)
    thresholds.flags.writeable = False
    return thresholds
