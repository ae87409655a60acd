"""The tests of :mod:`lloydia.algorithms.hamerly` and :mod:`lloydia.algorithms.elkan`, row by row.

Bounds are stored in float32 and computed in float64, in the unit of `padding`, which is
(unit, relative, difference, absolute) and covers the rounding between.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.rows import distance, load

__all__ = ["elkan", "hamerly_bounds", "hamerly_select"]


@kernel
def raised(value, padding):
    """Return an upper bound from a computed value."""
    return value * (1.0 + padding[1]) + padding[3]


@kernel
def lowered(value, padding):
    """Return a lower bound from a computed value."""
    return max(value * (1.0 - padding[1]) - padding[3], 0.0)


@kernel
def hamerly_select(
    X, start, stop, labels, centers, moved, largest, half_nearest, upper, lower, padding, active
):
    """Move the bounds of a range of rows and list those that must be scanned.

    Parameters
    ----------
    moved, half_nearest : ndarray (k,)
    largest : (j, the largest movement, the largest but that of centre j)
    active : ndarray (stop - start,), int64
        Receives the rows.

    Returns
    -------
    n_active, n_distances : int
    """
    x = np.empty(centers.shape[1])
    n_active = n_distances = 0
    for i in range(start, stop):
        a = labels[i]
        if a < 0:
            active[n_active] = i
            n_active += 1
            continue
        other = largest[2] if a == largest[0] else largest[1]
        u = raised(np.float64(upper[i]) + moved[a], padding)
        low = lowered(np.float64(lower[i]) - other, padding)
        bound = max(low, half_nearest[a])
        if not raised(u, padding) < bound:
            load(X, i, x)
            n_distances += 1
            u = raised(np.sqrt(distance(x, centers[a])) * padding[0], padding)
            if not raised(u, padding) < bound:
                active[n_active] = i
                n_active += 1
        upper[i] = u
        lower[i] = low
    return n_active, n_distances


@kernel
def hamerly_bounds(active, n_active, best, second, upper, lower, padding):
    """Set the bounds of scanned rows from their two smallest squared distances."""
    for p in range(n_active):
        upper[active[p]] = raised(np.sqrt(best[p]) * padding[0], padding)
        lower[active[p]] = lowered(np.sqrt(second[p]) * padding[0], padding)


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
