"""The nearest centre of CSR rows; :mod:`nearest` defines what a scan takes and writes.

Scores are in float64, over the non-zeros.  With ``K = (d + 8) 2**-52`` a score ``|c|**2 / 2 - x.c``
of a centre of norm N, plus the rounding of D, is off by at most ``K (R + N)**2``.  As in
:mod:`lloydia.exact.certificate`, a centre at distance r has ``N <= R + r``, so that

    r^2  <=  R^2 + 2 s + 2 K (2 R + r)^2  <=  R^2 + 2 s + 16 K R^2 + 4 K r^2,

which is less than ``h(s)**2 = (R**2 + 2 s + 32 K R**2) (1 + 16 K)`` by more than the roundings of D
and of h.  So ``R + h(s)`` takes the place of the farthest centre's norm.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.rows.features import canonical_row, distance, load
from lloydia.backends.cpu.runtime.compiled import kernel, subroutine
from lloydia.backends.cpu.scan.nearest import two_nearest

__all__ = ["sparse_scan"]


@subroutine
def near_error(R, score, relative):
    """Return a bound on the errors of a row's scores that does not depend on the farthest centre.

    See :func:`lloydia.exact.certificate.near_error`; `relative` is K.
    """
    within = (R * R * (1.0 + 32.0 * relative) + 2.0 * score) * (1.0 + 16.0 * relative)
    # A NaN stays one, and certifies nothing.
    reach = R + np.sqrt(0.0 if within < 0.0 else within)
    return relative * (R + reach) * (R + reach)


@kernel
def sparse_scan(X, rows, start, stop, columns, half_squares, reach, fresh, best, second):
    """Scan CSR rows; return how many needed exact distances.

    Parameters
    ----------
    X : IN, (data, indices, indptr)
    rows, start, stop, fresh, best, second
        See :mod:`nearest`.
    columns : IN, ndarray (d, k), float64
        The centres, feature-major.
    half_squares : IN, ndarray (k,), float64
        Half of each centre's squared norm.
    reach : float
        A bound on all norms of centres.
    """
    data, indices, indptr = X
    d, k = columns.shape
    scores = np.empty(k)
    x = np.empty(d)
    unit = 2.0**-52
    rechecked = 0
    for at in range(start, stop):
        i = rows[at] if len(rows) else at
        for j in range(k):
            scores[j] = half_squares[j]
        square = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[e])
            square += value * value
            column = columns[indices[e]]
            for j in range(k):
                scores[j] -= value * column[j]
        label, second_nearest = two_nearest(scores)
        # The certificate: the smaller score is nearest if the gap is more than twice the error.
        R = np.sqrt(square) * (1.0 + d * unit) + 1e-150
        relative, gap = (d + 8) * unit, second_nearest - scores[label]
        error = relative * (R + reach) * (R + reach)
        certain = gap > 2.0 * error or gap > 2.0 * near_error(R, scores[label], relative)
        out = at - start
        if certain and len(best) == 0:
            fresh[out] = label
            continue
        load(X, i, x)
        if not certain:
            rechecked += 1
            canonical_row(x, columns, scores)
            label, second_nearest = two_nearest(scores)
        fresh[out] = label
        if len(best):
            best[out] = distance(x, columns[:, label])
            error = min(error, near_error(R, second_nearest, relative))
            second[out] = (
                max(0.0, square + 2.0 * (second_nearest - error)) if certain else second_nearest
            )
    return rechecked
