"""A blue-noise texture, whose neighbouring thresholds differ strongly, by void and cluster.

R. A. Ulichney, "The void-and-cluster method for dither array generation", *Proc. SPIE* 1913, 1993.
In a pattern of ones on a torus, the *tightest* one is where the sum of Gaussians around the ones is
largest, and the *largest void* is the zero where this sum is least.  A first pattern is evened out:
its tightest one moves into its largest void until that changes nothing.  Then all places are
ranked: the ones of this pattern by repeatedly removing the tightest one, and the other places by
repeatedly filling the largest void.  (Ulichney uses the sum around zeros when half of the places
are ones.  The sums around ones and zeros add up to a constant, so the largest void of the ones is
the tightest cluster of the zeros, and the result is the same.)
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
        # The Gaussian is repeated in each direction, so that the one around any place is a window.
        # It consists of integers, so that sums are exact and the texture is the same everywhere.
        self.bells = np.tile(np.rint(np.outer(bell, bell) * 2**32).astype(np.int64), (2, 2))
        self.ones = np.zeros((size, size), bool)
        self.sums = np.zeros((size, size), np.int64)

    def put(self, place: int, one: bool) -> None:
        """Set a place to one or zero."""
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
    """Return distinct thresholds in (0, 1) that tile the plane; this takes a fifth of a second.

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
