"""The nearest centre of CSR rows; :mod:`nearest` says what a scan takes and gives.

The certificate's bound with float64's unit, on scores over the non-zeros: with ``K = (d + 8)
2**-52`` a score ``|c|**2 / 2 - x.c`` of a centre of norm N, and what D rounds, are off by at most
``K (R + N)**2``.  As :mod:`lloydia.exact.certificate` says of near centres, ``N <= R + r`` for one
at distance r, so that

    r^2  <=  R^2 + 2 s + 2 K (2 R + r)^2  <=  R^2 + 2 s + 16 K R^2 + 4 K r^2,

which is less than ``h(s)**2 = (R**2 + 2 s + 32 K R**2) (1 + 16 K)`` by more than D and this round.
Then ``R + h(s)`` takes the place of the farthest centre's norm.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.rows.features import canonical_row, distance, load
from lloydia.backends.cpu.runtime.compiled import kernel, subroutine
from lloydia.backends.cpu.scan.nearest import two_nearest

__all__ = ["sparse_scan"]


@subroutine
def near_error(R, score, relative):
    """Return a bound on the errors of a row's scores that the farthest centre has no part in.

    It is that of :func:`lloydia.exact.certificate.near_error`; `relative` is K.
    """
    within = (R * R * (1.0 + 32.0 * relative) + 2.0 * score) * (1.0 + 16.0 * relative)
    # What is not a number stays so, and proves nothing.
    reach = R + np.sqrt(0.0 if within < 0.0 else within)
    return relative * (R + reach) * (R + reach)


@kernel
def sparse_scan(X, rows, start, stop, columns, halves, reach, fresh, best, second):
    """Scan CSR rows `X` = (data, indices, indptr); `halves` (k,) is half of each |c|^2, float64."""
    data, indices, indptr = X
    d, k = columns.shape
    scores = np.empty(k)
    x = np.empty(d)
    unit = 2.0**-52
    rechecked = 0
    for at in range(start, stop):
        i = rows[at] if len(rows) else at
        for j in range(k):
            scores[j] = halves[j]
        square = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[e])
            square += value * value
            column = columns[indices[e]]
            for j in range(k):
                scores[j] -= value * column[j]
        label, rival = two_nearest(scores)
        # Scores are |c|^2/2 - x.c here: the certificate's bound with float64's unit, on both sides.
        R = np.sqrt(square) * (1.0 + d * unit) + 1e-150
        relative, gap = (d + 8) * unit, rival - scores[label]
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
            label, rival = two_nearest(scores)
        fresh[out] = label
        if len(best):
            best[out] = distance(x, columns[:, label])
            error = min(error, near_error(R, rival, relative))
            second[out] = max(0.0, square + 2.0 * (rival - error)) if certain else rival
    return rechecked
