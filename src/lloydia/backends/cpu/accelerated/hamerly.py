"""The tests of :mod:`lloydia.algorithms.hamerly`, and the bounds that a scan gives.

Hamerly 2010, "Making k-means even faster".  Lists of rows are made without branches: every row
is written at the end of the list, which then grows by 0 or 1.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel
from lloydia.backends.cpu.scan.bounds import above, below, lower_bound, upper_bound
from lloydia.backends.cpu.simd.differences import difference

__all__ = ["list_failing", "set_bounds", "tighten"]


@kernel(**LEAN)
def list_failing(start, stop, labels, upper, lower, spent, near, rows):
    """List the rows whose stored bounds pass neither test of Hamerly; return their number.

    Parameters
    ----------
    labels : IN, ndarray (n,), int32
    upper, lower : IN, ndarray (n,), float32
        U and L.
    spent, near : IN, ndarray (k,), float32
        M + P and s - M; see :meth:`lloydia.algorithms.hamerly.Hamerly.tests`.
    rows : OUT, ndarray (stop - start,), int64
    """
    n, m = 0, 0
    # Indices are unsigned, so that Numba compiles no code for negative ones.
    for i in range(np.uintp(start), np.uintp(stop)):
        rows[n] = i
        # Hamerly 2010: u < l, which is L - U > M(a) + P(a), keeps label a.
        n += not lower[i] - upper[i] > spent[np.uintp(labels[i])]
    for p in range(n):
        row = np.uintp(rows[p])
        rows[m] = row
        # Hamerly 2010: u < s(a), which is U < s(a) - M(a), keeps label a.
        m += not upper[row] < near[np.uintp(labels[row])]
    return m


@kernel(**LEAN)
def tighten(X, rows, start, stop, labels, centers, bounds, tests, padding, m):
    """Measure the distances of listed rows to their centres; keep the rows that still fail.

    Parameters
    ----------
    X : IN
        Rows, dense or the parts of a CSR matrix.
    rows : IN/OUT, ndarray of int64
        Entries `start` to `stop` are read; those that fail are written to ``rows[m]`` and on.
    labels : IN, ndarray (n,), int32
    centers : IN, ndarray (k, d)
        Of X's type, in the unit of the bounds.
    bounds : (upper, lower), IN/OUT, ndarray (n,), float32
        `upper` is lowered to the distance.
    tests : (spent, near, moved), IN, ndarray (k,), float32
    padding : tuple
        See :mod:`scan.bounds`.
    m : int
        The length of the list before.

    Returns
    -------
    int
        The length of the list after.
    """
    upper, lower = bounds
    spent, near, moved = tests
    unit = centers.dtype.type(padding[0])
    # Padded twice, since the test is `upper_bound(u) < l`; 2**-20 covers the roundings below.
    grow = np.float32((1.0 + padding[2]) * (1.0 + padding[1]) + 2.0**-20)
    rise = np.float32(2.0 * padding[3])
    # Unsigned indices, as in list_failing.
    for p in range(np.uintp(start), np.uintp(stop)):
        i = np.uintp(rows[p])
        a = np.uintp(labels[i])
        root = np.sqrt(difference(X, i, centers, a, unit))
        u = above(root * grow + rise - moved[a])
        upper[i] = u
        rows[m] = i
        # The same two tests, with the distance itself in place of u.
        m += not (lower[i] - u > spent[a] or u < near[a])
    return m


@kernel(**LEAN)
def set_bounds(rows, start, stop, fresh, best, second, bounds, totals, padding):
    """Set the bounds of a range of a list of rows (or EVERY) from a scan.

    Parameters
    ----------
    fresh, best, second : IN
        Labels, and bounds on squared distances, as a scan writes them; see :mod:`scan.nearest`.
    bounds : (upper, lower), OUT, ndarray (n,), float32
    totals : (moved, total_drift), IN, ndarray (k,), float64
        M and P of the clusters.
    """
    upper, lower = bounds
    moved, total_drift = totals
    for at in range(start, stop):
        p = at - start
        i = rows[at] if len(rows) else at
        a = fresh[p]
        u = upper_bound(upper_bound(np.sqrt(best[p]) * padding[0], padding), padding)
        # U = u - M(a) and L = l + P(a): later moves change M and P, not the rows.
        upper[i] = above(u - moved[a])
        lower[i] = below(lower_bound(np.sqrt(second[p]) * padding[0], padding) + total_drift[a])
