"""The assignment of :mod:`lloydia.algorithms.elkan`.

The bounds of a row are compared LANES at a time.  The few centres that are left are evaluated as
sums of squared differences, whose error :mod:`lloydia.algorithms.geometry` derives; a row that
keeps many gets all of its k bounds from float32 scores (:mod:`scan.scores`).  Near ties are settled
by canonical D among those that may be nearest.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from lloydia.backends.cpu.rows.features import canonical_row, distance, load
from lloydia.backends.cpu.runtime.compiled import hold, kernel
from lloydia.backends.cpu.scan.bounds import raised
from lloydia.backends.cpu.scan.nearest import aligned, two_nearest
from lloydia.backends.cpu.scan.panels import collect, keep_all, scores_of_one
from lloydia.backends.cpu.scan.scores import above, below, certain, frame, kept, limits, single
from lloydia.backends.cpu.simd.differences import difference, squared_differences
from lloydia.backends.cpu.simd.micro import LANES, MR

__all__ = ["bound_rows", "elkan"]

# A distance that is taken alone costs what about this many of a scan's do.
ALONE = 8


def measure(X, i, centers, numbers, count, unit, squares):
    """Write the squared distances, in the unit, of row `i` to `count` centres."""
    raise NotImplementedError("compiled code only")


@overload(measure, jit_options={"nogil": True, "error_model": "numpy"})
def _measure(X, i, centers, numbers, count, unit, squares):
    if isinstance(X, types.Array) and X.layout == "C":

        def dense(X, i, centers, numbers, count, unit, squares):
            d, size = centers.shape[1], centers.itemsize
            row, start = X.ctypes.data + i * d * size, centers.ctypes.data
            for q in range(count):
                center = start + numbers[q] * d * size
                squares[q] = squared_differences(row, center, d, unit)

        return dense

    def one_by_one(X, i, centers, numbers, count, unit, squares):
        for q in range(count):
            squares[q] = difference(X, i, centers, numbers[q], unit)

    return one_by_one


@kernel
def farther(square, padding):
    """Return an upper bound on a distance, from a sum of squared differences."""
    return np.sqrt(np.float64(square)) * (1.0 + padding[2]) + padding[3]


@kernel
def nearer(square, padding):
    """Return a lower bound on the same distance; float32."""
    return np.float32(max(np.sqrt(np.float64(square)) * (1.0 - padding[2]) - padding[3], 0.0))


@kernel
def bound_rows(X, rows, n, centers, drift, passed, upper, nearest, lower, padding, fresh):
    """Assign `n` listed rows by their scores with all centres, and set all their bounds.

    `centers` is a Grouped of panels of one vector, in the centres' own order.  Returns the number
    of rows in doubt.
    """
    origin, scale, columns = centers.origin, centers.scale, centers.columns
    near, (low, high) = centers.errors.near, centers.errors.factors
    panels, halves, packed = centers.panels, centers.halves, centers.rows
    d, width = len(origin), len(halves)
    low, high = low * padding[0] / scale, high * padding[0] / scale
    block = max(1, min(16, 65536 // width // MR)) * MR
    y, scores = np.zeros((block, d), np.float32), aligned(block * width)
    errors, most, least = np.empty(block), np.empty(block), np.empty(block, np.float32)
    best, second = np.empty(block, np.float32), np.empty(block, np.float32)
    which, addresses = np.empty(block, np.int32), np.empty(block, np.int64)
    x, D = np.empty(d), np.empty(columns.shape[1])
    for p in range(block):
        addresses[p] = y.ctypes.data + p * d * 4
    every, start, ends = addresses.ctypes.data, panels.ctypes.data, halves.ctypes.data
    a, b, c, out = best.ctypes.data, second.ctypes.data, which.ctypes.data, scores.ctypes.data
    lower_at, drift_at = lower.ctypes.data, drift.ctypes.data
    shrink, tiny = np.float32(1.0 - padding[1]), np.float32(padding[3])
    rechecked = 0
    for at in range(0, n, block):
        m = min(block, n - at)
        for p in range(m):
            load(X, rows[at + p], x)
            square, _ = frame(x, origin, scale, packed, 0, y, p)
            errors[p], least[p], most[p] = limits(square, centers.errors)
        for panel in range(len(panels)):
            for p in range(0, m, MR):
                scores_of_one(
                    every + p * 8, d, start + panel * d * LANES * 4, ends + panel * LANES * 4,
                    a + p * 4, b + p * 4, c + p * 4, panel * LANES, panel == 0,
                    out + (p * width + panel * LANES) * 4, width * 4,
                )  # fmt: skip
        for p in range(m):
            i, j = rows[at + p], np.int64(which[p])
            keep_all(
                out + p * width * 4, drift_at, lower_at + i * width * 4, width // LANES,
                least[p], single(low), shrink, tiny,
            )  # fmt: skip
            rival = below(least[p], second[p], low, padding)
            upper[i] = above(most[p], best[p], high, padding)
            if not certain(best[p], second[p], errors[p], most[p], near):
                rechecked += 1
                load(X, i, x)
                canonical_row(x, columns, D)
                found, _ = two_nearest(D)
                j = np.int64(found)
                rival = below(least[p], best[p], low, padding)
                upper[i] = raised(np.sqrt(D[j]) * padding[0], padding)
            nearest[i] = kept(rival, passed, padding)
            fresh[at + p] = j
    # Of these the loop has the addresses alone.
    hold(addresses)
    hold(scores)
    return rechecked


@kernel
def choose(X, i, a, own, numbers, squares, count, wide, x, padding):
    """Return the nearest of centre `a` and `count` others, from their squares.

    Returns also an upper bound on its distance, a lower bound on those of the others, and whether
    the row was in doubt.
    """
    best, second, j = own, np.float32(np.inf), a
    for q in range(count):
        square = squares[q]
        nearest = square < best
        loser = best if nearest else square
        second = loser if loser < second else second
        j = np.int64(numbers[q]) if nearest else j
        best = square if nearest else best
    reach, rival = farther(best, padding), nearer(second, padding)
    if reach < rival:
        return j, reach, rival, False
    load(X, i, x)
    j, D = a, distance(x, wide[a])
    for q in range(count):
        if not reach < nearer(squares[q], padding):
            other, number = distance(x, wide[numbers[q]]), np.int64(numbers[q])
            if other < D or (other == D and number < j):
                j, D = number, other
    return j, raised(np.sqrt(D) * padding[0], padding), nearer(best, padding), True


@kernel
def elkan(
    X, start, stop, labels, centers, wide, scaled, drift, passed, moved, half_gaps, half_nearest,
    upper, nearest, lower, padding, rows, fresh,
):  # fmt: skip
    """Assign a range of rows.

    Parameters
    ----------
    centers : Grouped
        For :func:`bound_rows`.
    wide, scaled : ndarray (k, d)
        The centres, in float64, and in X's type and the unit.
    drift : ndarray (k or more,), passed : float; float32
    moved, half_nearest : ndarray (k,), float32
    half_gaps : ndarray (k, k or more), float32
        Infinite on the diagonal and where there is no centre.
    rows, fresh : ndarray (stop - start,), int64 and int32
        Receive the rows that may have changed, and their labels.

    Returns
    -------
    n_rows, n_distances, n_rechecked : int
    """
    k, width = len(wide), lower.shape[1]
    unit = scaled.dtype.type(padding[0])
    grow, tiny = np.float32(1.0 + padding[1]), np.float32(padding[3])
    numbers, squares = np.empty(width, np.int32), np.empty(width, np.float32)
    one, own = np.zeros(1, np.int32), np.empty(1, np.float32)
    many, x = np.empty(stop - start, np.int64), np.empty(wide.shape[1])
    gaps_at, drift_at = half_gaps.ctypes.data, drift.ctypes.data
    lower_at, numbers_at = lower.ctypes.data, numbers.ctypes.data
    n_rows = n_many = evaluated = rechecked = 0
    for i in range(start, stop):
        a = np.int64(labels[i])
        # Without bounds: at first, and where another algorithm has found the label.
        if upper[i] == np.inf:
            many[n_many] = i
            n_many += 1
            continue
        u = (upper[i] + moved[a]) * grow + tiny
        upper[i] = u
        bound = max(nearest[i] - passed, half_nearest[a])
        if u * grow + tiny < bound:
            continue
        one[0] = a
        measure(X, i, scaled, one, 1, unit, own)
        evaluated += 1
        u = min(u, np.float32(farther(own[0], padding)))
        upper[i] = u
        if u * grow + tiny < bound:
            continue
        count, least = collect(
            lower_at + i * width * 4, drift_at, gaps_at + a * width * 4, width // LANES,
            u * grow + tiny, numbers_at,
        )  # fmt: skip
        if count * ALONE > k:
            many[n_many] = i
            n_many += 1
            continue
        evaluated += count
        measure(X, i, scaled, numbers, count, unit, squares)
        j, reach, rival, doubt = choose(X, i, a, own[0], numbers, squares, count, wide, x, padding)
        for q in range(count):
            c = numbers[q]
            lower[i, c] = kept(nearer(squares[q], padding), drift[c], padding)
        lower[i, a] = kept(nearer(own[0], padding), drift[a], padding)
        nearest[i] = kept(min(least, rival), passed, padding)
        upper[i] = reach
        rechecked += doubt
        rows[n_rows] = i
        fresh[n_rows] = j
        n_rows += 1
    rechecked += bound_rows(
        X, many, n_many, centers, drift, passed, upper, nearest, lower, padding, fresh[n_rows:]
    )
    for q in range(n_many):
        rows[n_rows + q] = many[q]
    return n_rows + n_many, evaluated + n_many * k, rechecked
