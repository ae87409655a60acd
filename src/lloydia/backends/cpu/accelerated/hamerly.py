"""The tests of :mod:`lloydia.algorithms.hamerly`, and the bounds that a scan gives.

Lists of rows are made without a branch on the outcome: every candidate is written at the end of the
list, which then grows by 0 or 1.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import kernel
from lloydia.backends.cpu.scan.bounds import above, below, lowered, raised
from lloydia.backends.cpu.simd.differences import difference

__all__ = ["renew", "tighten", "unsettled"]


@kernel
def unsettled(start, stop, labels, upper, lower, spent, near, rows):
    """List the rows that neither test settles; return how many.

    Parameters
    ----------
    spent, near : ndarray (k,), float32
        See :meth:`lloydia.algorithms.hamerly.Hamerly.tests`.
    rows : ndarray (stop - start,), int64
        Receives the rows.
    """
    n, m = 0, 0
    # Unsigned numbers need no look at their sign.
    for i in range(np.uintp(start), np.uintp(stop)):
        rows[n] = i
        n += not lower[i] - upper[i] > spent[np.uintp(labels[i])]
    for p in range(n):
        row = np.uintp(rows[p])
        rows[m] = row
        m += not upper[row] < near[np.uintp(labels[row])]
    return m


@kernel
def tighten(X, rows, start, stop, labels, centers, bounds, tests, padding, m):
    """Measure the distances of listed rows to their centres, and keep those that still fail.

    Parameters
    ----------
    rows, start, stop
        A range of a list of rows; what is left of it is written to ``rows[m]`` and on.
    centers : ndarray (k, d)
        Of X's type, and in the unit of the bounds.
    bounds : (upper, lower)
    tests : (spent, near, moved)

    Returns
    -------
    int
        Where the list ends.
    """
    upper, lower = bounds
    spent, near, moved = tests
    unit = centers.dtype.type(padding[0])
    # Raised twice, as `raised(u) < l` asks for; 2**-20 covers the roundings below.
    grow = np.float32((1.0 + padding[2]) * (1.0 + padding[1]) + 2.0**-20)
    rise = np.float32(2.0 * padding[3])
    # Unsigned, as above.
    for p in range(np.uintp(start), np.uintp(stop)):
        i = np.uintp(rows[p])
        a = np.uintp(labels[i])
        root = np.sqrt(difference(X, i, centers, a, unit))
        u = above(root * grow + rise - moved[a])
        upper[i] = u
        rows[m] = i
        m += not (lower[i] - u > spent[a] or u < near[a])
    return m


@kernel
def renew(rows, start, stop, fresh, best, second, bounds, totals, padding):
    """Set the bounds of a range of a list of rows (or EVERY) from what a scan found.

    `totals` is (moved, passed), float64.
    """
    upper, lower = bounds
    moved, passed = totals
    for at in range(start, stop):
        p = at - start
        i = rows[at] if len(rows) else at
        a = fresh[p]
        u = raised(raised(np.sqrt(best[p]) * padding[0], padding), padding)
        upper[i] = above(u - moved[a])
        lower[i] = below(lowered(np.sqrt(second[p]) * padding[0], padding) + passed[a])
