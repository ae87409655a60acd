"""The tests of :mod:`lloydia.algorithms.elkan`, row by row."""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.bounds import lowered, raised
from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.rows import distance, load

__all__ = ["elkan"]


@kernel
def elkan_row(x, a, u, lower, centers, half_gaps, padding):
    """Return the label of one row, its upper bound, and the distances evaluated."""
    n_distances = 0
    tight = False
    D = np.inf
    for j in range(len(centers)):
        if j == a:
            continue
        if a >= 0:
            reach = raised(u, padding)
            if reach < lower[j] or reach < half_gaps[a, j]:
                continue
            if not tight:
                D = distance(x, centers[a])
                n_distances += 1
                tight = True
                u = raised(np.sqrt(D) * padding[0], padding)
                lower[a] = lowered(np.sqrt(D) * padding[0], padding)
                reach = raised(u, padding)
                if reach < lower[j] or reach < half_gaps[a, j]:
                    continue
        other = distance(x, centers[j])
        n_distances += 1
        lower[j] = lowered(np.sqrt(other) * padding[0], padding)
        if a < 0 or other < D or (other == D and j < a):
            a = j
            D = other
            tight = True
            u = raised(np.sqrt(D) * padding[0], padding)
    return a, u, n_distances


@kernel
def elkan(
    X, start, stop, labels, centers, moved, half_nearest, half_gaps, upper, lower, padding, fresh
):
    """Move the bounds of a range of rows and assign them; return the distances evaluated."""
    x = np.empty(centers.shape[1])
    n_distances = 0
    for i in range(start, stop):
        a = labels[i]
        fresh[i - start] = a
        row = lower[i]
        if a >= 0:
            for j in range(len(row)):
                row[j] = lowered(np.float64(row[j]) - moved[j], padding)
            upper[i] = raised(np.float64(upper[i]) + moved[a], padding)
            if raised(np.float64(upper[i]), padding) < half_nearest[a]:
                continue
        load(X, i, x)
        a, u, count = elkan_row(x, a, np.float64(upper[i]), row, centers, half_gaps, padding)
        fresh[i - start] = a
        upper[i] = u
        n_distances += count
    return n_distances
