"""The integers of :mod:`lloydia.exact.sums`, row by row.

A row that changes cluster is subtracted from the old one's sums and added to the new one's,
exactly.  Every thread has sums of its own; their total is what they would be in any other split.
One thread may subtract what another added, so a thread's sums wrap around modulo ``2**64``; the
total does not.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.candidates import differing, lowest_bit
from lloydia.backends.cpu.compiled import floats, integers, kernel, subroutine
from lloydia.backends.cpu.limbs import move_limb
from lloydia.exact.sums import DEKKER

__all__ = ["accumulate", "extent", "total_terms"]

# Rows whose changes are listed at a time.
LISTED = 64


@kernel
def extent(X, start, stop, largest, smallest):
    """Fold dense rows into the largest and smallest non-zero magnitudes, shape (d,)."""
    # Threads' results share cache lines: they are written once.
    high, low = largest.copy(), smallest.copy()
    for i in range(start, stop):
        for f in range(X.shape[1]):
            magnitude = abs(np.float64(X[i, f]))
            high[f] = magnitude if magnitude > high[f] else high[f]
            low[f] = magnitude if 0.0 < magnitude < low[f] else low[f]
    for f in range(len(high)):
        largest[f] = high[f]
        smallest[f] = low[f]


@kernel
def sparse_extent(X, start, stop, largest, smallest):
    """Fold CSR rows into the same."""
    data, indices, indptr = X
    high, low = largest.copy(), smallest.copy()
    for at in range(indptr[start], indptr[stop]):
        f = indices[at]
        magnitude = abs(np.float64(data[at]))
        high[f] = magnitude if magnitude > high[f] else high[f]
        low[f] = magnitude if 0.0 < magnitude < low[f] else low[f]
    for f in range(len(high)):
        largest[f] = high[f]
        smallest[f] = low[f]


@subroutine
def product_error(a, b, p):
    """Return ``a * b - p`` exactly (Dekker 1971)."""
    a_high = a * DEKKER - (a * DEKKER - a)
    b_high = b * DEKKER - (b * DEKKER - b)
    a_low = a - a_high
    b_low = b - b_high
    return ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@subroutine
def rounded(y):
    """Return rint(y) for ``|y| <= 2**51``: the sum's last bit is worth 1."""
    return (y + 1.5 * 2.0**52) - 1.5 * 2.0**52


@subroutine
def move_limbs(sums, old, new, rest, quantum, inverse, step, trash):
    """Move products from one cluster to another, limb by limb until nothing is left.

    `rest` holds what limbs before these left, raised by ``2**bits`` each; it is overwritten.  What
    would be taken from cluster -1 goes to the `trash`.
    """
    pitch, cluster = sums.strides[0], sums.strides[1]
    base = sums.ctypes.data
    left, limb = True, 0
    while left and limb < len(sums):
        to = base + limb * pitch + new * cluster
        off = base + limb * pitch + old * cluster if old >= 0 else trash.ctypes.data
        left = move_limb(
            rest.ctypes.data,
            len(rest),
            inverse.ctypes.data,
            quantum.ctypes.data,
            step,
            to,
            off,
        )
        limb += 1


@subroutine
def list_changed(rows, start, stop, fresh, first, labels, changed):
    """List the entries ``start`` to ``stop`` whose label changes; return their number.

    The label of entry p is ``fresh[p - first]``.
    """
    n_changed = 0
    if len(rows) == 0 and stop - start == LISTED:
        # Mostly few change.
        bits = differing(labels.ctypes.data + 4 * start, fresh.ctypes.data + 4 * (start - first))
        while bits != 0:
            changed[n_changed] = start + lowest_bit(bits)
            n_changed += 1
            bits &= bits - np.uint64(1)
        return n_changed
    for at in range(start, stop):
        i = rows[at] if len(rows) else at
        changed[n_changed] = at
        n_changed += fresh[at - first] != labels[i]
    return n_changed


@kernel
def accumulate(X, rows, start, stop, weights, grid, fresh, labels, sums, touched):
    """Move rows to their fresh clusters.

    Parameters
    ----------
    X : ndarray (n, d)
    rows, start, stop
        A list of rows (or EVERY) and a range of it; the label of entry p is ``fresh[p - start]``.
    weights : ndarray (n,), scaled by ``2**-weight_exponent``; empty: all 1
    grid : (scale, quantum, inverse, step, recover)
        Arrays of shape (d + 1,), padded with 0, and ``2**bits``.
    labels : ndarray (n,), int32
        The old clusters, -1 for none; overwritten.
    sums : ndarray (n_limbs, k or more, d + 1), int64, padded like the grid
    touched : ndarray (k or more,), bool
        True for clusters whose sums change.

    Returns
    -------
    int
        Rows that changed.
    """
    scale, quantum, inverse, step, recover = grid
    d = X.shape[1]
    rest, trash = floats(len(scale)), integers(len(scale))
    rest[:] = 0.0
    listed = integers(np.int64(LISTED))
    changed = 0
    w = 1.0
    for first in range(start, stop, LISTED):
        n = list_changed(rows, first, min(first + LISTED, stop), fresh, start, labels, listed)
        changed += n
        for at in listed[:n]:
            i = rows[at] if len(rows) else at
            old, new = labels[i], fresh[at - start]
            labels[i] = new
            touched[new] = True
            if old >= 0:
                touched[old] = True
            if len(weights):
                w = weights[i]
            for f in range(d):
                rest[f] = np.float64(X[i, f]) * scale[f] * w
            rest[d] = scale[d] * w
            move_limbs(sums, old, new, rest, quantum, inverse, step, trash)
            if recover:
                # |error| <= 2**-53 |p| is less than half a step of limb 0.
                for f in range(d):
                    a = np.float64(X[i, f]) * scale[f]
                    rest[f] = product_error(a, w, a * w) * step
                rest[d] = 0.0
                move_limbs(sums[1:], old, new, rest, quantum, inverse, step, trash)
    return changed


@kernel
def sparse_accumulate(X, rows, start, stop, weights, grid, fresh, labels, sums, touched):
    """Move CSR rows to their fresh clusters, as :func:`accumulate` does dense ones."""
    data, indices, indptr = X
    scale, quantum, inverse, step, recover = grid
    d = len(scale) - 1
    every = len(rows) == 0
    changed = 0
    w = 1.0
    for at in range(start, stop):
        i = at if every else rows[at]
        old, new = labels[i], fresh[at - start]
        if old == new:
            continue
        changed += 1
        labels[i] = new
        touched[new] = True
        if old >= 0:
            touched[old] = True
        if len(weights):
            w = weights[i]
        for e in range(indptr[i], indptr[i + 1] + 1):
            # The column after the last feature is the weight's.
            f = indices[e] if e < indptr[i + 1] else d
            a = np.float64(data[e]) * scale[f] if e < indptr[i + 1] else scale[d]
            p = a * w
            add_value(sums, 0, f, old, new, p, quantum[f], inverse[f], step)
            if recover:
                error = product_error(a, w, p) * step
                add_value(sums, 1, f, old, new, error, quantum[f], inverse[f], step)
    return changed


@subroutine
def add_value(sums, limb, f, old, new, rest, quantum, inverse, step):
    """Do for one product what `move_limbs` does for a row's."""
    while rest != 0.0 and limb < len(sums):
        v = rounded(rest * inverse)
        sums[limb, new, f] += np.int64(v)
        if old >= 0:
            sums[limb, old, f] -= np.int64(v)
        rest = (rest - v * quantum) * step
        limb += 1


@kernel
def total_terms(D, weights, start, stop, low, high, step, limbs):
    """Add the limbs of ``weights * D`` to `limbs` (TOTAL_LIMBS,); see exact.sums.total.

    ``low * high`` is the scale ``2**-exponent``, in two factors that do not overflow.
    """
    for i in range(start, stop):
        rest = weights[i] * D[i] if len(weights) else D[i]
        rest = rest * low * high
        for limb in range(len(limbs)):
            rest = rest * step
            v = np.rint(rest)
            limbs[limb] += np.int64(v)
            rest = rest - v
