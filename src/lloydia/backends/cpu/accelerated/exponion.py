"""The balls of :mod:`lloydia.algorithms.exponion`: rows of one cluster, and the centres near it.

The rows to be scanned are grouped by label.  For each group the centres in its ball are packed into
panels, with the cluster's own centre as origin, and scanned and certified as all centres are by
:mod:`scan.nearest`; a row in doubt is settled by canonical D to the centres in the ball.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.rows.features import distance, load
from lloydia.backends.cpu.runtime.compiled import kernel
from lloydia.backends.cpu.scan.bounds import above, below, lowered, raised
from lloydia.backends.cpu.scan.nearest import aligned, two_nearest
from lloydia.backends.cpu.scan.row_scan import frame_rows, score_rows
from lloydia.backends.cpu.simd.micro import LANES, LEAST, MR, NV, settle

__all__ = ["REACH", "group", "scan_balls", "worthwhile"]

# A ball with more than this part of the centres is left to the scan of all, as is a group of fewer
# rows than FEW: the ball itself costs about as much as the scan of some rows.
MOST = 0.5
FEW = 3

# A ball is scaled to a radius of at most 1.  With the errors of the gaps, a few hundredths in a
# million dimensions, no centre in it is farther than this.
REACH = 1.25

# To sort a row and to make its ball costs what about this many distances of a scan do.
SORTED = 150

# Rows whose balls are looked at before any row is sorted.
SAMPLE = 16


@kernel
def group(listed, starts, lengths, labels, ends, order):
    """Sort listed rows by label.

    Parameters
    ----------
    listed : ndarray
        Lists of rows: `lengths` of them from each of `starts` on.
    ends : ndarray (k,), int64, of zeros
        Receives the end of each label's group.
    order : ndarray (sum of lengths,), int64
        Receives the rows.
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


@kernel
def least(values):
    """Return the least of some non-negative float32: as integers they have the same order."""
    bits = values.view(np.int32)
    found = bits[0]
    for j in range(1, len(bits)):
        found = min(found, bits[j])
    return np.int32(found).view(np.float32)


@kernel
def square_gaps(columns, a, out):
    """Write the squared distances of centre `a` to all, in the unit, float32."""
    out[:] = np.float32(0.0)
    for f in range(len(columns)):
        column, own = columns[f], columns[f, a]
        for j in range(np.uintp(len(out))):
            difference = np.float32(column[j] - own)
            out[j] += difference * difference


@kernel
def ball(columns, a, reach, padding, gaps, inside):
    """List the centres that may be nearest or second to a row of cluster `a`, ascending.

    Parameters
    ----------
    reach : float
        Upper bound on the distances of the rows to centre `a`.

    Returns
    -------
    radius : float
    count : int
    """
    square_gaps(columns, a, gaps)
    gaps[a] = np.inf
    loose = 1.0 + padding[2]
    nearest = raised(np.sqrt(np.float64(least(gaps))) * loose + padding[3], padding)
    gaps[a] = 0.0
    radius = raised(2.0 * reach + nearest, padding)
    # Gaps come with the same error.
    limit = np.float32((radius * loose * loose + padding[3]) ** 2)
    count = 0
    for j in range(np.uintp(len(gaps))):
        inside[count] = j
        count += not gaps[j] > limit
    return radius, count


@kernel
def worthwhile(columns, labels, upper, moved, padding):
    """Return whether the balls of most of a few rows hold few enough centres."""
    k, n = columns.shape[1], len(labels)
    gaps, inside = np.empty(k, np.float32), np.empty(k, np.int64)
    small = 0
    for s in range(SAMPLE):
        i = s * n // SAMPLE
        a = labels[i]
        reach = np.float64(upper[i]) + moved[a]
        count = ball(columns, a, reach, padding, gaps, inside)[1]
        # Rows that fail have larger balls than most.
        small += count < min(0.5 * MOST * k, k - SORTED)
    return small > SAMPLE // 2


@kernel
def pack_ball(centers, a, inside, count, scale, panels, halves):
    """Pack the listed centres, relative to centre `a`, as :func:`scan.centers.pack`; float64."""
    d = centers.shape[1]
    n_vectors = -(-count // LANES)
    for q in range(n_vectors * LANES):
        vector, lane = q // LANES, q % LANES
        before = vector // NV * NV
        pitch = min(NV, n_vectors - before) * LANES
        at = before * d * LANES + (vector - before) * LANES + lane
        if q >= count:
            halves[q] = np.float32(LEAST)
            for f in range(d):
                panels[at + f * pitch] = np.float32(0.0)
            continue
        j = inside[q]
        square = 0.0
        for f in range(d):
            value = np.float32((centers[j, f] - centers[a, f]) * scale)
            panels[at + f * pitch] = value
            square += np.float64(value) * np.float64(value)
        halves[q] = np.float32(-0.5 * square)
    return n_vectors * LANES


@kernel
def scan_balls(
    X, order, start, stop, labels, centers, columns, bounds, totals, terms, padding, fresh, rest
):
    """Scan rows of a grouped list, each among the centres in the ball of its group.

    Parameters
    ----------
    order, start, stop
        The list, and a range of it.
    centers : ndarray (k, d), float64
    columns : ndarray (d, k)
        The centres in X's type and the unit of the bounds, feature-major.
    bounds : (upper, lower)
        Tightened; overwritten.
    totals : (moved, passed), float64
    terms : tuple
        The certificate's for a reach of REACH.
    fresh : ndarray (stop - start,), int32
    rest : ndarray (stop - start,), int64
        Receives the places in the list of the rows that are left to another scan.

    Returns
    -------
    n_rest, n_distances, n_rechecked : int
    """
    k, d = centers.shape
    block = max(4, min(32, 16384 // d // MR)) * MR
    y, norms = np.zeros((block, d), np.float32), np.empty(block, np.float32)
    scratch = y, aligned(3 * block * LANES), norms
    gaps, inside = np.empty(k, np.float32), np.empty(k, np.int64)
    n_vectors = -(-k // LANES)
    panels, halves = aligned(n_vectors * d * LANES), aligned(n_vectors * LANES)
    n_rest = n_distances = n_rechecked = 0
    begin = start
    while begin < stop:
        a = labels[order[begin]]
        reach, end = 0.0, begin
        while end < stop and labels[order[end]] == a:
            reach = max(reach, np.float64(bounds[0][order[end]]) + totals[0][a])
            end += 1
        radius, count = np.inf, k
        if end - begin >= FEW:
            radius, count = ball(columns, a, reach, padding, gaps, inside)
            n_distances += k
        if count > MOST * k or not 2.0**-50 < radius < 2.0**100:
            for p in range(begin, end):
                rest[n_rest] = p
                n_rest += 1
        else:
            # Brings the radius to between 1/2 and 1.
            scale = 2.0 ** -np.ceil(np.log2(radius))
            filled = pack_ball(centers, a, inside, count, scale * padding[0], panels, halves)
            n_distances += (end - begin) * count
            n_rechecked += scan_group(
                X, order, begin, end, start, a, centers, inside[:count],
                panels, halves[:filled], scale, bounds, totals, terms, padding, scratch, fresh,
            )  # fmt: skip
        begin = end
    return n_rest, n_distances, n_rechecked


@kernel
def scan_group(
    X, order, begin, end, start, a, centers, inside, panels, halves, scale, bounds, totals, terms,
    padding, scratch, fresh,
):  # fmt: skip
    """Scan the rows of one group, and renew their bounds; return how many were in doubt."""
    upper, lower = bounds
    moved, passed = totals
    y, lanes, norms = scratch
    block, d = y.shape
    grow, shrink = 1.0 + (d + 8) * 2.0**-22, 1.0 - (d + 8) * 2.0**-21
    x, D = np.empty(d), np.empty(len(inside))
    inverse = 1.0 / scale
    n_rechecked = 0
    for at in range(begin, end, block):
        m = min(block, end - at)
        frame_rows(X, order, at, m, centers[a], scale * padding[0], y, norms)
        score_rows(y, m, panels, halves, lanes)
        for p in range(m):
            i = order[at + p]
            first = lanes.ctypes.data + p * LANES * 4
            second = first + block * LANES * 4
            score, runner_up, chosen = settle(first, second, second + block * LANES * 4)
            square = np.float64(norms[p]) * grow + 2.0**-100
            R = np.sqrt(square)
            error = terms[0] + R * (terms[1] + R * terms[2])
            most = square - 2.0 * (score - error) + 2.0**-80
            other = square * shrink - 2.0 * (runner_up + error) - 2.0**-80
            reach, low = np.sqrt(max(0.0, most)) * inverse, np.sqrt(max(0.0, other)) * inverse
            if not np.float64(score) - np.float64(runner_up) > 2.0 * error:
                n_rechecked += 1
                load(X, i, x)
                for q in range(len(inside)):
                    D[q] = distance(x, centers[inside[q]])
                chosen, rival = two_nearest(D)
                reach, low = np.sqrt(D[chosen]) * padding[0], np.sqrt(rival) * padding[0]
            label = inside[chosen]
            fresh[at - start + p] = label
            u = above(raised(raised(reach, padding), padding) - moved[label])
            upper[i] = u if label != a else min(u, upper[i])
            lower[i] = below(lowered(low, padding) + passed[label])
    return n_rechecked
