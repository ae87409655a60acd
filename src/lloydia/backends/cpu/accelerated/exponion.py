"""The balls of :mod:`lloydia.algorithms.exponion`: rows of one cluster, and the centres near it.

Newling and Fleuret 2016, "Fast k-means with accurate bounds".  Rows that fail Hamerly's tests are
grouped by label.  For each group the centres in its ball are packed into panels, with the cluster's
own centre as origin, scanned, and certified as in :mod:`scan.nearest`.  Ambiguous rows get their
label from canonical D to the centres in the ball.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.rows.features import distance, load
from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, subroutine
from lloydia.backends.cpu.scan.bounds import above, below, lower_bound, upper_bound
from lloydia.backends.cpu.scan.nearest import aligned, two_nearest
from lloydia.backends.cpu.scan.row_scan import frame_rows, score_rows
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import (
    LANES,
    LOWEST_SCORE,
    MR,
    NV,
    reduce_lanes,
)

__all__ = ["REACH", "group", "scan_balls", "worthwhile"]

# If a ball holds more than this share of the centres, its rows are compared with all centres; so
# are groups of fewer than MIN_ROWS rows: making a ball takes as long as scanning some rows.
MAX_SHARE = 0.5
MIN_ROWS = 3

# A ball is scaled to a radius of at most 1.  No centre in it is farther than REACH, which includes
# the errors of the distances between centres: a few hundredths in a million dimensions.
REACH = 1.25

# Sorting a row and making its ball takes as long as about this many distances of a scan.
COST_OF_SORTING = 150

# The number of sampled rows that decide whether balls are worthwhile.
SAMPLE = 16


@kernel
def group(listed, starts, lengths, labels, ends, order):
    """Sort listed rows by label.

    Parameters
    ----------
    listed : IN, ndarray
        Lists of rows: `lengths` of them from each of `starts` on.
    labels : IN, ndarray (n,), int32
    ends : OUT, ndarray (k,), int64, zeros before
        The end of each label's group.
    order : OUT, ndarray (sum of lengths,), int64
        The rows.
    """
    for s in range(len(starts)):
        for p in range(starts[s], starts[s] + lengths[s]):
            ends[labels[listed[p]]] += 1
    total = 0
    for a in range(len(ends)):
        size = ends[a]
        ends[a] = total
        total += size
    for s in range(len(starts)):
        for p in range(starts[s], starts[s] + lengths[s]):
            a = labels[listed[p]]
            order[ends[a]] = listed[p]
            ends[a] += 1


@subroutine(**LEAN)
def smallest(values):
    """Return the smallest of non-negative float32; as integers they have the same order."""
    bits = values.view(np.int32)
    found = bits[0]
    for j in range(1, len(bits)):
        found = min(found, bits[j])
    return np.int32(found).view(np.float32)


@subroutine(**LEAN)
def square_gaps(columns, a, out):
    """Write the squared distances of centre `a` to all, in the unit, float32."""
    out[:] = np.float32(0.0)
    for f in range(len(columns)):
        column, origin = columns[f], columns[f, a]
        for j in range(np.uintp(len(out))):
            difference = np.float32(column[j] - origin)
            out[j] += difference * difference


@subroutine(**LEAN)
def ball(columns, a, reach, padding, gaps, inside):
    """List the centres that may be nearest or second nearest to a row of cluster `a`, ascending.

    Parameters
    ----------
    columns : IN, ndarray (d, k)
        The centres in the unit of the bounds, feature-major.
    reach : float
        u: an upper bound on the distances of the rows to centre `a`.
    gaps : scratch, ndarray (k,), float32
    inside : OUT, ndarray (k,), int64

    Returns
    -------
    radius : float
    count : int
    """
    square_gaps(columns, a, gaps)
    gaps[a] = np.inf
    loose = 1.0 + padding[2]
    nearest = upper_bound(np.sqrt(np.float64(smallest(gaps))) * loose + padding[3], padding)
    gaps[a] = 0.0
    # Newling and Fleuret 2016: centres with d(c_a, c_j) > 2 u + g(a) are not among the two nearest.
    radius = upper_bound(2.0 * reach + nearest, padding)
    # The distances between centres have the same relative error.
    limit = np.float32((radius * loose * loose + padding[3]) ** 2)
    count = 0
    for j in range(np.uintp(len(gaps))):
        inside[count] = j
        count += not gaps[j] > limit
    return radius, count


@kernel
def worthwhile(columns, labels, upper, moved, padding):
    """Return whether the balls of most rows of a sample hold few enough centres."""
    k, n = columns.shape[1], len(labels)
    gaps, inside = np.empty(k, np.float32), np.empty(k, np.int64)
    small = 0
    for s in range(SAMPLE):
        i = s * n // SAMPLE
        a = labels[i]
        reach = np.float64(upper[i]) + moved[a]
        count = ball(columns, a, reach, padding, gaps, inside)[1]
        # The limits are halved, because the rows that fail have larger balls than most.
        small += count < min(0.5 * MAX_SHARE * k, k - COST_OF_SORTING)
    return small > SAMPLE // 2


@subroutine(**LEAN)
def pack_ball(centers, a, inside, count, scale, panels, half_squares):
    """Pack the listed centres, relative to centre `a`, as :func:`scan.centers.pack`; float64."""
    d = centers.shape[1]
    n_vectors = -(-count // LANES)
    for q in range(n_vectors * LANES):
        vector, lane = q // LANES, q % LANES
        before = vector // NV * NV
        pitch = min(NV, n_vectors - before) * LANES
        at = before * d * LANES + (vector - before) * LANES + lane
        if q >= count:
            half_squares[q] = np.float32(LOWEST_SCORE)
            for f in range(d):
                panels[at + f * pitch] = np.float32(0.0)
            continue
        j = inside[q]
        square = 0.0
        for f in range(d):
            value = np.float32((centers[j, f] - centers[a, f]) * scale)
            panels[at + f * pitch] = value
            square += np.float64(value) * np.float64(value)
        half_squares[q] = np.float32(-0.5 * square)
    return n_vectors * LANES


@kernel
def scan_balls(
    X, order, start, stop, labels, centers, columns, bounds, totals, terms, padding, fresh, left
):
    """Scan rows of a grouped list, each among the centres in the ball of its group.

    Parameters
    ----------
    X : IN, ndarray (n, d)
    order, start, stop : IN
        The list, and a range of it.
    labels : IN, ndarray (n,), int32
    centers : IN, ndarray (k, d), float64
    columns : IN, ndarray (d, k)
        The centres in X's type and the unit of the bounds, feature-major.
    bounds : (upper, lower), IN/OUT, ndarray (n,), float32
    totals : (moved, total_drift), IN, ndarray (k,), float64
    terms : tuple
        Those of the certificate for a reach of REACH.
    fresh : OUT, ndarray (stop - start,), int32
    left : OUT, ndarray (stop - start,), int64
        Places in the list of the rows that are left to the scan of all centres.

    Returns
    -------
    n_left, n_distances, n_rechecked : int
    """
    k, d = centers.shape
    block = max(4, min(32, 16384 // d // MR)) * MR
    y, norms = np.zeros((block, d), np.float32), np.empty(block, np.float32)
    scratch = y, aligned(3 * block * LANES), norms
    gaps, inside = np.empty(k, np.float32), np.empty(k, np.int64)
    n_vectors = -(-k // LANES)
    panels, half_squares = aligned(n_vectors * d * LANES), aligned(n_vectors * LANES)
    n_left = n_distances = n_rechecked = 0
    first_row = start
    while first_row < stop:
        a = labels[order[first_row]]
        reach, end = 0.0, first_row
        while end < stop and labels[order[end]] == a:
            reach = max(reach, np.float64(bounds[0][order[end]]) + totals[0][a])
            end += 1
        radius, count = np.inf, k
        if end - first_row >= MIN_ROWS:
            radius, count = ball(columns, a, reach, padding, gaps, inside)
            n_distances += k
        if count > MAX_SHARE * k or not 2.0**-50 < radius < 2.0**100:
            for p in range(first_row, end):
                left[n_left] = p
                n_left += 1
        else:
            # The scaled radius is between 1/2 and 1.
            scale = 2.0 ** -np.ceil(np.log2(radius))
            filled = pack_ball(centers, a, inside, count, scale * padding[0], panels, half_squares)
            n_distances += (end - first_row) * count
            n_rechecked += scan_group(
                X, order, first_row, end, start, a, centers, inside[:count],
                panels, half_squares[:filled], scale, bounds, totals, terms, padding, scratch,
                fresh,
            )  # fmt: skip
        first_row = end
    return n_left, n_distances, n_rechecked


@subroutine
def scan_group(
    X, order, first_row, end, start, a, centers, inside, panels, half_squares, scale, bounds,
    totals, terms, padding, scratch, fresh,
):  # fmt: skip
    """Scan the rows of one group, and set their bounds; return how many were ambiguous."""
    upper, lower = bounds
    moved, total_drift = totals
    y, lanes, norms = scratch
    block, d = y.shape
    grow, shrink = 1.0 + (d + 8) * 2.0**-22, 1.0 - (d + 8) * 2.0**-21
    x, D = np.empty(d), np.empty(len(inside))
    inverse = 1.0 / scale
    n_rechecked = 0
    for at in range(first_row, end, block):
        m = min(block, end - at)
        frame_rows(X, order, at, m, centers[a], scale * padding[0], y, norms)
        score_rows(y, m, panels, half_squares, lanes)
        for p in range(m):
            i = order[at + p]
            first = lanes.ctypes.data + p * LANES * 4
            second = first + block * LANES * 4
            score, runner_up, chosen = reduce_lanes(first, second, second + block * LANES * 4)
            square = np.float64(norms[p]) * grow + 2.0**-100
            R = np.sqrt(square)
            error = terms[0] + R * (terms[1] + R * terms[2])
            high_square = square - 2.0 * (score - error) + 2.0**-80
            other = square * shrink - 2.0 * (runner_up + error) - 2.0**-80
            reach, low = (
                np.sqrt(max(0.0, high_square)) * inverse,
                np.sqrt(max(0.0, other)) * inverse,
            )
            # The certificate: a gap of more than twice the error of a score.
            if not np.float64(score) - np.float64(runner_up) > 2.0 * error:
                n_rechecked += 1
                load(X, i, x)
                for q in range(len(inside)):
                    D[q] = distance(x, centers[inside[q]])
                chosen, second_D = two_nearest(D)
                reach, low = np.sqrt(D[chosen]) * padding[0], np.sqrt(second_D) * padding[0]
            label = inside[chosen]
            fresh[at - start + p] = label
            u = above(upper_bound(upper_bound(reach, padding), padding) - moved[label])
            upper[i] = u if label != a else min(u, upper[i])
            lower[i] = below(lower_bound(low, padding) + total_drift[label])
    return n_rechecked
