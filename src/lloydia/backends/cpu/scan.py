"""The nearest centre of each row, by looking at all of them.

Float32 scores by the register-blocked scan of :mod:`micro`, the certificate of
:mod:`lloydia.exact.certificate` a row, and canonical D for the few rows in doubt.
:mod:`low_scan` is the scan of rows with few features, :mod:`sparse_scan` that of CSR rows.

Each scan takes a list of rows (or EVERY) and a range of it, writes the label of list entry p to
``fresh[p - start]``, and where `best` and `second` are not empty an upper bound on the squared
distance to that centre and a lower bound on those to all others.  They return the number of rows in
doubt.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.micro import LANES, MR, NV, scan_one, scan_three, scan_two, settle
from lloydia.backends.cpu.rows import load
from lloydia.exact.certificate import FAR

__all__ = ["canonical_row", "certified_scan", "two_nearest"]


@kernel(fastmath={"reassoc", "nsz", "contract"})
def square_norm(y):
    """Return the sum of squares of a float32 row, in any order."""
    total = np.float32(0.0)
    for f in range(len(y)):
        total += y[f] * y[f]
    return total


@kernel
def canonical_row(x, columns, out):
    """Write the D of one row to every centre; `columns` (d, k) is feature-major, float64."""
    out[:] = 0.0
    for f in range(len(x)):
        value = x[f]
        for j in range(len(out)):
            difference = value - columns[f, j]
            out[j] += difference * difference


@kernel
def two_nearest(D):
    """Return the index of the least D, the first of equals, and the least of the others."""
    nearest = 0
    rival = np.inf
    for j in range(1, len(D)):
        if D[j] < D[nearest]:
            rival = D[nearest]
            nearest = j
        elif D[j] < rival:
            rival = D[j]
    return nearest, rival


@kernel
def aligned(size):
    """Return an empty float32 array that starts at a multiple of 64 bytes."""
    raw = np.empty(size + 16, np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + size]


@kernel
def frame_rows(X, rows, at, m, origin, scale, y, radius):
    """Write ``(x - origin) * scale`` of `m` rows to `y` (float32), and its squared norms."""
    for p in range(m):
        i = rows[at + p] if len(rows) else at + p
        for f in range(X.shape[1]):
            y[p, f] = np.float32((np.float64(X[i, f]) - origin[f]) * scale)
        radius[p] = square_norm(y[p])


@kernel
def score_rows(y, m, panels, halves, lanes):
    """Scan `m` framed rows; `lanes` receives the best two scores and their vectors.

    `lanes` is three arrays of (len(y), LANES) end to end, the last of integers.
    """
    block, d = y.shape
    n_vectors = len(halves) // LANES
    for v in range(0, n_vectors, NV):
        panel = panels.ctypes.data + v * d * LANES * 4
        half = halves.ctypes.data + v * LANES * 4
        for p in range(0, m, MR):
            row = y.ctypes.data + p * d * 4
            a = lanes.ctypes.data + p * LANES * 4
            b = a + block * LANES * 4
            c = b + block * LANES * 4
            if n_vectors - v >= 3:
                scan_three(row, d, panel, half, a, b, c, v)
            elif n_vectors - v == 2:
                scan_two(row, d, panel, half, a, b, c, v)
            else:
                scan_one(row, d, panel, half, a, b, c, v)


@kernel
def certified_scan(
    X, rows, start, stop, panels, halves, origin, scale, terms, columns, fresh, best, second
):
    """Scan dense rows; see the module for what it writes.

    `panels`, `halves` and `columns` are those of :func:`lloydia.backends.cpu.centers.pack`;
    `origin`, `scale` and `terms` those of the certificate.
    """
    d = X.shape[1]
    block = max(4, min(32, 16384 // d // MR)) * MR
    y = np.zeros((block, d), np.float32)
    lanes = aligned(3 * block * LANES)
    radius = np.empty(block, np.float32)
    x = np.empty(d)
    D = np.empty(columns.shape[1])
    grow = 1.0 + (d + 8) * 2.0**-22
    inverse = 1.0 / scale
    # Undoes `grow`, and as much again.
    shrink = 1.0 - (d + 8) * 2.0**-21
    rechecked = 0
    for at in range(start, stop, block):
        m = min(block, stop - at)
        frame_rows(X, rows, at, m, origin, scale, y, radius)
        score_rows(y, m, panels, halves, lanes)
        for p in range(m):
            a = lanes.ctypes.data + p * LANES * 4
            b = a + block * LANES * 4
            score, runner_up, label = settle(a, b, b + block * LANES * 4)
            square = np.float64(radius[p]) * grow + 2.0**-100
            R = np.sqrt(square)
            error = terms[0] + R * (terms[1] + R * terms[2])
            out = at - start + p
            certain = R < FAR and np.float64(score) - np.float64(runner_up) > 2.0 * error
            if certain:
                fresh[out] = label
                if len(best):
                    most = square - 2.0 * (score - error) + 2.0**-80
                    least = square * shrink - 2.0 * (runner_up + error) - 2.0**-80
                    best[out] = max(0.0, most) * inverse * inverse
                    second[out] = max(0.0, least) * inverse * inverse
                continue
            rechecked += 1
            load(X, rows[at + p] if len(rows) else at + p, x)
            canonical_row(x, columns, D)
            fresh[out], rival = two_nearest(D)
            if len(best):
                best[out] = D[fresh[out]]
                second[out] = rival
    return rechecked
