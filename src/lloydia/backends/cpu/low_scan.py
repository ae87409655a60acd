"""The nearest centre of rows with few features; :mod:`scan` says what a scan takes and gives."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lloydia.backends.cpu.compiled import kernel

__all__ = ["LOW", "tile_scan"]

# Largest d of the tile scan.
LOW = 8

TILE = 64


@lru_cache
def tile_scan(d: int):
    """Return the kernel for exactly `d` features: the compiler unrolls them."""

    @kernel
    def scan(X, rows, start, stop, centers, fresh, best, second):
        x = np.empty((d, TILE))
        least = np.empty(TILE)
        rival = np.empty(TILE)
        index = np.empty(TILE)
        for at in range(start, stop, TILE):
            m = min(TILE, stop - at)
            for p in range(m):
                i = rows[at + p] if len(rows) else at + p
                for f in range(d):
                    x[f, p] = X[i, f]
            least[:] = np.inf
            rival[:] = np.inf
            index[:] = 0.0
            for j in range(len(centers)):
                for p in range(TILE):
                    total = 0.0
                    for f in range(d):
                        difference = x[f, p] - centers[j, f]
                        total += difference * difference
                    last = least[p]
                    nearer = total < last
                    loser = last if nearer else total
                    rival[p] = loser if loser < rival[p] else rival[p]
                    index[p] = float(j) if nearer else index[p]
                    least[p] = total if nearer else last
            for p in range(m):
                fresh[at - start + p] = np.int32(index[p])
            if len(best):
                for p in range(m):
                    best[at - start + p] = least[p]
                    second[at - start + p] = rival[p]
        return 0

    return scan
