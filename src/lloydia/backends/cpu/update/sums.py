"""The integers of :mod:`lloydia.exact.sums`, row by row.

A row that changes cluster is subtracted from the old one's sums and added to the new one's,
exactly.  Every thread has its own sums, and their total does not depend on which thread added a
row.  One thread may subtract what another added, so a thread's sums wrap around modulo ``2**64``;
the total does not.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, local, minimum, part, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.simd.limbs import move_rows
from lloydia.backends.cpu.update.changes import WIDTH, list_differing
from lloydia.exact.sums import DEKKER

__all__ = ["accumulate", "fold_magnitudes", "total_terms"]

# Rows whose changes are listed at a time, and the length of such a list.
LISTED = 1024
ROOM = LISTED + WIDTH


@kernel(**LEAN)
def fold_magnitudes(X, start, stop, largest, smallest):
    """Fold dense rows into the largest and smallest non-zero magnitudes, (d,), in X's type."""
    for i in upto(start, stop):
        for f in upto(len(largest)):
            magnitude = abs(X[i, f])
            high, low = largest[f], smallest[f]
            largest[f] = magnitude if magnitude > high else high
            smallest[f] = magnitude if (magnitude < low) & (magnitude > 0) else low


@kernel
def fold_sparse_magnitudes(X, start, stop, largest, smallest):
    """Fold CSR rows into the same."""
    data, indices, indptr = X
    high, low = largest.copy(), smallest.copy()
    for at in upto(indptr[start], indptr[stop]):
        f = indices[at]
        magnitude = abs(np.float64(data[at]))
        high[f] = magnitude if magnitude > high[f] else high[f]
        low[f] = magnitude if 0.0 < magnitude < low[f] else low[f]
    for f in upto(len(high)):
        largest[f] = high[f]
        smallest[f] = low[f]


@intrinsic
def product_error(typingctx, a, b, p):
    """Return ``a * b - p`` exactly (Dekker 1971)."""
    signature = types.float64(*[types.float64] * 3)

    def codegen(context, builder, sig, args):
        dekker = ir.Constant(ir.DoubleType(), DEKKER)

        def split(value):
            scaled = builder.fmul(value, dekker)
            high = builder.fsub(scaled, builder.fsub(scaled, value))
            return high, builder.fsub(value, high)

        a, b, p = args
        (a, a_low), (b, b_low) = split(a), split(b)
        error = builder.fsub(builder.fmul(a, b), p)
        for x, y in ((a, b_low), (a_low, b), (a_low, b_low)):
            error = builder.fadd(error, builder.fmul(x, y))
        return error

    return signature, codegen


@subroutine
def rounded(y):
    """Return rint(y) for ``|y| <= 2**51``: the sum's last bit is worth 1."""
    return (y + 1.5 * 2.0**52) - 1.5 * 2.0**52


@subroutine(inline="always")
def list_changed(rows, start, stop, fresh, first, labels, changed):
    """List the entries from `start` to `stop` whose label changes, minus `start`; return how many.

    The label of entry p is ``fresh[p - first]``.
    """
    n_changed = even = 0
    if len(rows) == 0:
        even = (stop - start) // WIDTH * WIDTH
        n_changed = list_differing(
            labels.ctypes.data + 4 * start,
            fresh.ctypes.data + 4 * (start - first),
            even,
            changed.ctypes.data,
        )
    for p in upto(even, stop - start):
        i = rows[start + p] if len(rows) else start + p
        changed[n_changed] = p
        n_changed += fresh[start + p - first] != labels[i]
    return n_changed


@kernel(**LEAN)
def accumulate(X, rows, start, stop, weights, grid, fresh, labels, sums, touched):
    """Move rows to their fresh clusters; return how many changed.

    Parameters
    ----------
    X : IN, ndarray (n, d)
    rows, start, stop : IN
        A list of rows (or EVERY) and a range of it.
    weights : IN, ndarray (n,) or (0,), float64
        Divided by ``2**weight_exponent``; empty: all are 1.
    grid : IN, (scale, quantum, inverse, step, recover)
        Arrays of shape (d + 1,), padded with 0; ``2**bits``; and a bool.
    fresh : IN, ndarray (stop - start,), int32
        The label of entry p is ``fresh[p - start]``.
    labels : IN/OUT, ndarray (n,), int32
        The old clusters, -1 for none.
    sums : IN/OUT, ndarray (n_limbs, k or more, d + 1), int64
        Padded like the grid.
    touched : OUT, ndarray (k or more,), bool
        True for clusters whose sums change.
    """
    scale, quantum, inverse, step, recover = grid
    grid_addresses = (scale.ctypes.data, quantum.ctypes.data, inverse.ctypes.data, step, recover)
    totals = (sums.ctypes.data, len(sums), sums.strides[0], sums.strides[1])
    listed = local(np.int32, ROOM)
    changed = 0
    for first in upto(start, stop, LISTED):
        n = list_changed(rows, first, minimum(first + LISTED, stop), fresh, start, labels, listed)
        changed += n
        move_rows(
            X,
            first,
            listed.ctypes.data,
            n,
            rows.ctypes.data if len(rows) else 0,
            weights.ctypes.data if len(weights) else 0,
            fresh.ctypes.data + 4 * (first - start),
            labels.ctypes.data,
            touched.ctypes.data,
            grid_addresses,
            totals,
        )
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
    for at in upto(start, stop):
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
        for e in upto(indptr[i], indptr[i + 1] + 1):
            # The column after the last feature is that of the weight.
            f = indices[e] if e < indptr[i + 1] else d
            a = np.float64(data[e]) * scale[f] if e < indptr[i + 1] else scale[d]
            p = a * w
            add_value(sums, 0, f, old, new, p, quantum[f], inverse[f], step)
            if recover:
                error = product_error(a, w, p) * step
                add_value(sums, 1, f, old, new, error, quantum[f], inverse[f], step)
    return changed


@subroutine
def add_value(sums, limb, f, old, new, remainder, quantum, inverse, step):
    """Add one product to the sums of its new cluster, and subtract it from those of its old one."""
    while remainder != 0.0 and limb < len(sums):
        v = rounded(remainder * inverse)
        sums[limb, new, f] += np.int64(v)
        if old >= 0:
            sums[limb, old, f] -= np.int64(v)
        remainder = (remainder - v * quantum) * step
        limb += 1


@subroutine(inline="always")
def split_limb(remainder, step):
    """Return the integer nearest to ``remainder * step``, and the new remainder."""
    scaled = remainder * step
    v = np.rint(scaled)
    return np.int64(v), scaled - v


@kernel(**LEAN)
def total_terms(D, weights, start, stop, low, high, step, limbs):
    """Add the limbs of ``weights * D`` to `limbs` (TOTAL_LIMBS,); see exact.sums.total.

    ``low * high`` is the scale ``2**-exponent``, in two factors that do not overflow.
    """
    # Indices begin at 0, so that none can be negative, and the loop is vectorised.
    D, weights = part(D, start, stop), part(weights, start, stop)
    first = second = third = np.int64(0)
    for i in upto(len(D)):
        term = weights[i] * D[i] if len(weights) else D[i]
        a, remainder = split_limb(term * low * high, step)
        b, remainder = split_limb(remainder, step)
        c, remainder = split_limb(remainder, step)
        first += a
        second += b
        third += c
    limbs[0] += first
    limbs[1] += second
    limbs[2] += third
