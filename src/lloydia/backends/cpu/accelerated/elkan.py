"""The assignment of :mod:`lloydia.algorithms.elkan`.

Elkan 2003, "Using the triangle inequality to accelerate k-means".  The bounds of a row are compared
LANES at a time.  Distances to the few centres that are left are sums of squared differences;
:mod:`lloydia.algorithms.geometry` derives their error.  If many centres are left for a row, float32
scores (:mod:`scan.scores`) give all of its k bounds.  Canonical D decides between centres that may
both be nearest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.features import distance, load
from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, maximum, minimum, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan.bounds import upper_bound
from lloydia.backends.cpu.scan.centers import aligned
from lloydia.backends.cpu.scan.nearest import near_error
from lloydia.backends.cpu.scan.panels import collect, score_block, store_bounds
from lloydia.backends.cpu.scan.scores import (
    above,
    below,
    finite_float32,
    frame,
    limits,
    stored_bound,
)
from lloydia.backends.cpu.simd.differences import difference
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import MR

__all__ = ["bound_rows", "elkan", "scratch_for_bounds", "scratch_for_distances"]

# A single distance takes about as long as this many distances of a scan.
COST_OF_ONE_DISTANCE = 8

# At most so many rows have their scores computed together.
BLOCK = 16 * MR


@subroutine(**LEAN)
def farther(square, padding):
    """Return an upper bound on a distance, from a sum of squared differences."""
    return np.sqrt(np.float64(square)) * (1.0 + padding[2]) + padding[3]


@subroutine(**LEAN)
def nearer(square, padding):
    """Return a lower bound on the same distance; float32."""
    return np.float32(maximum(np.sqrt(np.float64(square)) * (1.0 - padding[2]) - padding[3], 0.0))


def scratch_for_bounds(d: int, width: int) -> tuple[NDArray, ...]:
    """Return the scratch of :func:`bound_rows`, for scores of `width` centres, k or more."""
    block = max(1, min(BLOCK // MR, 65536 // width // MR)) * MR
    return np.zeros((block, d), np.float32), aligned((block, width)), np.empty(block), np.empty(d)


@kernel(**LEAN)
def bound_rows(
    X, rows, n, centers, wide, drift, total_drift, upper, nearest, lower, padding, fresh, scratch
):  # fmt: skip
    """Assign `n` listed rows by their scores with all centres, and set all their bounds.

    Parameters
    ----------
    X : IN
    rows : IN, ndarray of int64
    centers : Grouped, IN
        Panels of one vector, in the centres' own order.
    wide : IN, ndarray (k, d), float64
        The same centres.
    drift : IN, ndarray (k or more,), float32
        S_j of each centre.
    total_drift : float32
        The sum of the largest movements.
    upper, nearest : OUT, ndarray (n_samples,), float32
    lower : OUT, ndarray (n_samples, k or more), float32
    padding : tuple
    fresh : OUT, ndarray (n or more,), int32
    scratch : tuple
        From :func:`scratch_for_bounds`.

    Returns
    -------
    int
        Ambiguous rows.
    """
    near, (low, high) = centers.errors.near, centers.errors.factors
    low, high = low * padding[0] / centers.scale, high * padding[0] / centers.scale
    shrink, tiny = np.float32(1.0 - padding[1]), np.float32(padding[3])
    y, scores, squares, x = scratch
    block, rechecked = len(y), 0
    for at in upto(0, n, block):
        m = minimum(block, n - at)
        for p in upto(m):
            load(X, rows[at + p], x)
            squares[p], _ = frame(x, centers.origin, centers.scale, centers.rows, 0, y, p)
        score_block(y, m, centers.panels, centers.half_squares, scores)
        for p in upto(m):
            i = rows[at + p]
            error, low_square, high_square = limits(squares[p], centers.errors)
            best, second, j = store_bounds(
                scores, p, drift, lower, i, low_square, finite_float32(low), shrink, tiny
            )
            upper[i] = above(high_square, best, high, padding)
            # A centre whose score is lower than the best one by more than 2 E is farther.
            margin = 2.0 * minimum(error, near_error(high_square, np.float64(best), near))
            if not np.float64(best) - np.float64(second) > margin:
                rechecked += 1
                load(X, i, x)
                D = np.inf
                for c in upto(len(wide)):
                    if np.float64(best) - np.float64(scores[p, c]) > margin:
                        continue
                    other = distance(x, wide[c])
                    if other < D:
                        j, D = c, other
                upper[i] = upper_bound(np.sqrt(D) * padding[0], padding)
                # The centre of the best score may be one of the others.
                second = best
            second_bound = below(low_square, second, low, padding)
            nearest[i] = stored_bound(second_bound, total_drift, padding)
            fresh[at + p] = j
    return rechecked


@subroutine(inline="always")
def choose(X, i, a, own_square, numbers, squares, count, wide, x, padding):
    """Return the nearest of centre `a` and `count` others, from squared distances.

    `own_square` is that of centre `a`.  Also returns an upper bound on the distance to the nearest
    centre, a lower bound on those to the others, and whether the row was ambiguous.
    """
    best, second, j = own_square, np.float32(np.inf), a
    for q in upto(count):
        square = squares[q]
        nearest = square < best
        loser = best if nearest else square
        second = loser if loser < second else second
        j = np.int64(numbers[q]) if nearest else j
        best = square if nearest else best
    reach, second_bound = farther(best, padding), nearer(second, padding)
    if reach < second_bound:
        return j, reach, second_bound, False
    load(X, i, x)
    j, D = a, distance(x, wide[a])
    for q in upto(count):
        if not reach < nearer(squares[q], padding):
            other, number = distance(x, wide[numbers[q]]), np.int64(numbers[q])
            if other < D or (other == D and number < j):
                j, D = number, other
    return j, upper_bound(np.sqrt(D) * padding[0], padding), nearer(best, padding), True


def scratch_for_distances(d: int, width: int) -> tuple[NDArray, ...]:
    """Return the scratch of :func:`elkan`, for `width` centres, k or more."""
    numbers, squares = np.empty(width, np.int32), np.empty(width, np.float32)
    return numbers, squares, np.empty(d)


@kernel(**LEAN)
def elkan(
    X, start, stop, labels, wide, scaled, drift, total_drift, moved, half_gaps, half_nearest,
    upper, nearest, lower, padding, rows, fresh, many, scratch,
):  # fmt: skip
    """Assign a range of rows, and list those that :func:`bound_rows` is to assign.

    Parameters
    ----------
    X, start, stop : IN
    labels : IN, ndarray (n,), int32
    wide, scaled : IN, ndarray (k, d)
        The centres, in float64, and in X's type and the unit.
    drift : IN, ndarray (k or more,), total_drift : float; float32
    moved, half_nearest : IN, ndarray (k,), float32
        How far each centre moved, and s.
    half_gaps : IN, ndarray (k, k or more), float32
        Half the distances between centres; infinite on the diagonal and where there is none.
    upper, nearest, lower : IN/OUT
        The bounds of :class:`lloydia.algorithms.elkan.Elkan`.
    rows, fresh : OUT, ndarray (stop - start,), int64 and int32
        The rows that may have changed, and their labels.
    many : OUT, ndarray (stop - start,), int64
        The rows that are left to :func:`bound_rows`: most of their distances are needed.
    scratch : tuple
        From :func:`scratch_for_distances`.

    Returns
    -------
    n_rows, n_many, n_distances, n_rechecked : int
    """
    k = len(wide)
    unit = scaled.dtype.type(padding[0])
    grow, tiny = np.float32(1.0 + padding[1]), np.float32(padding[3])
    numbers, squares, x = scratch
    n_rows = n_many = evaluated = rechecked = 0
    for i in upto(start, stop):
        a = np.int64(labels[i])
        # A row has no bounds in the first iteration, or if another algorithm found its label.
        if upper[i] == np.inf:
            many[n_many] = i
            n_many += 1
            continue
        u = (upper[i] + moved[a]) * grow + tiny
        upper[i] = u
        bound = np.float32(maximum(nearest[i] - total_drift, half_nearest[a]))
        # Elkan 2003, lemma 1: u < s(a), or u < l_j for all j != a, keeps label a.
        if u * grow + tiny < bound:
            continue
        own_square = difference(X, i, scaled, a, unit)
        evaluated += 1
        u = np.float32(minimum(u, np.float32(farther(own_square, padding))))
        upper[i] = u
        # The same test, with the distance itself in place of u.
        if u * grow + tiny < bound:
            continue
        # Elkan 2003: centre j is farther if u < max(l_j, d(c_a, c_j) / 2).
        reach = u * grow + tiny
        count, lowest_bound = collect(lower, i, drift, half_gaps, a, reach, numbers)
        if count * COST_OF_ONE_DISTANCE > k:
            many[n_many] = i
            n_many += 1
            continue
        evaluated += count
        for q in upto(count):
            squares[q] = difference(X, i, scaled, np.int64(numbers[q]), unit)
        j, reach, second_bound, ambiguous = choose(
            X, i, a, own_square, numbers, squares, count, wide, x, padding
        )
        for q in upto(count):
            c = numbers[q]
            lower[i, c] = stored_bound(nearer(squares[q], padding), drift[c], padding)
        lower[i, a] = stored_bound(nearer(own_square, padding), drift[a], padding)
        nearest[i] = stored_bound(
            np.float32(minimum(lowest_bound, second_bound)), total_drift, padding
        )
        upper[i] = reach
        rechecked += ambiguous
        rows[n_rows] = i
        fresh[n_rows] = j
        n_rows += 1
    return n_rows, n_many, evaluated, rechecked
