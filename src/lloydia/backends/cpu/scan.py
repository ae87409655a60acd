"""The nearest centre of each row, by looking at all of them.

Three ways, the same labels:

* :func:`tile_scan` (d <= 8): the canonical D itself, in float64, SIMD over a tile of rows with its
  features in registers.
* :func:`certified_scan`: float32 scores by the register-blocked scan of :mod:`micro`, the
  certificate of :mod:`lloydia.exact.certificate` a row, and the canonical D of all centres for the
  few rows in doubt.
* :func:`sparse_scan`: the same for CSR rows, with float64 scores over the non-zeros.

Each takes a list of rows (or EVERY) and a range of it, writes the label of list entry p to
``fresh[p - start]``, and where `best` and `second` are not empty the canonical D and a lower bound
on the squared distance to every other centre.  They return the number of rows in doubt.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.micro import LANES, MR, NV, scan_one, scan_three, scan_two, settle
from lloydia.backends.cpu.rows import distance, load
from lloydia.exact.certificate import FAR

__all__ = ["LOW", "certified_scan", "sparse_scan", "tile_scan"]

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
            if certain and len(best) == 0:
                fresh[out] = label
                continue
            load(X, rows[at + p] if len(rows) else at + p, x)
            if certain:
                fresh[out] = label
                best[out] = distance(x, columns[:, label])
                least = square * (1.0 - (d + 8) * 2.0**-20) - 2.0 * (runner_up + error) - 2.0**-80
                second[out] = max(0.0, least) / scale / scale
                continue
            rechecked += 1
            canonical_row(x, columns, D)
            fresh[out], rival = two_nearest(D)
            if len(best):
                best[out] = D[fresh[out]]
                second[out] = rival
    return rechecked


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
