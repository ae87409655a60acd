"""The nearest centre of CSR rows; :mod:`scan` says what a scan takes and gives.

The certificate's bound with float64's unit, on scores over the non-zeros.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.counting import upto
from lloydia.backends.cpu.rows import distance, load
from lloydia.backends.cpu.scan import canonical_row, two_nearest

__all__ = ["sparse_scan"]


@kernel
def sparse_scan(X, rows, start, stop, columns, halves, reach, fresh, best, second):
    """Scan CSR rows `X` = (data, indices, indptr); `halves` (k,) is half of each |c|^2, float64."""
    data, indices, indptr = X
    d, k = columns.shape
    scores = np.empty(k)
    x = np.empty(d)
    unit = 2.0**-52
    rechecked = 0
    for at in upto(start, stop):
        i = rows[at] if len(rows) else at
        for j in upto(k):
            scores[j] = halves[j]
        square = 0.0
        for e in upto(indptr[i], indptr[i + 1]):
            value = np.float64(data[e])
            square += value * value
            column = columns[indices[e]]
            for j in upto(k):
                scores[j] -= value * column[j]
        label, rival = two_nearest(scores)
        # Scores are |c|^2/2 - x.c here: the certificate's bound with float64's unit, on both sides.
        R = np.sqrt(square) * (1.0 + d * unit) + 1e-150
        error = (d + 8) * unit * (R + reach) * (R + reach)
        certain = rival - scores[label] > 2.0 * error
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
            second[out] = max(0.0, square + 2.0 * (rival - error)) if certain else rival
    return rechecked
