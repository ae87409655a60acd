"""The order of rows along a Hilbert curve: neighbours on it are neighbours in space.

A feature is cut into ``2**bits`` steps, of the same width for all features, because distances treat
all features alike.  The numbers of the steps become the position on the curve by Skilling's
transformation ("Programming the Hilbert curve", AIP Conf. Proc. 707, 2004), many rows at a time
without branches.  Positions are sorted by their digits from the last to the first; each block of
rows counts its digits and places its own rows.

The order only changes speed.  If the scales of features differ much, or there are more features
than bits, the order is less useful, but still valid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, maximum, minimum, part, subroutine
from lloydia.backends.cpu.runtime.counting import upto

__all__ = ["curve_order"]

EachBlock = Callable[..., None]

# Rows that are transformed at a time.
STRIP = 512

DIGIT = 12

# Digits of a position, for up to FINE_FEATURES features and for more.
FINE_FEATURES, DIGITS = 4, (2, 3)

# Nanoseconds per row, for counting and placing: both passes must use the same blocks.
PLACING = 3.0

# Rows of the sample that gives the range of the features, and the share ignored at each end.
SAMPLE = 4096
BEYOND = 1 / 256


def curve_order(X: NDArray, each_block: EachBlock) -> NDArray:
    """Return the numbers of the rows of X (n, d), in the order of the curve.

    Parameters
    ----------
    X : ndarray (n, d), float32 or float64
    each_block : callable
        ``each_block(task, cost)`` calls ``task(thread, start, stop)`` for blocks of the rows, of
        equal size but the last, on its threads.
    """
    n, d = X.shape
    n_used = min(d, 64)
    kind = np.uint32 if n_used <= FINE_FEATURES else np.uint64
    bits = max(1, min(DIGIT * DIGITS[n_used > FINE_FEATURES] // n_used, 16))
    low, inverse = frame(X[:, :n_used], bits)
    keys = np.empty(n, kind)

    def task(thread: int, start: int, stop: int) -> None:
        scratch = np.zeros((n_used, STRIP), np.uint32), np.empty(STRIP, np.uint32)
        positions(X, start, stop, low, inverse, bits, keys, *scratch)

    each_block(task, 2.0 + bits * n_used)
    return sorted_rows(keys, bits * n_used, each_block)


def frame(X: NDArray, bits: int) -> tuple[NDArray[np.float64], float]:
    """Return where the first step of each feature begins, and the steps in a unit.

    A sample gives the range, and a small share of it is ignored at each end, so that a few rows far
    away do not widen the steps.  Such rows belong to the outermost steps.
    """
    sample = np.sort(X[:: max(1, len(X) // SAMPLE)].astype(np.float64), axis=0)
    beyond = int(len(sample) * BEYOND)
    low, high = sample[beyond], sample[-1 - beyond]
    width = float((high - low).max())
    return low, 2.0**bits / width if width > 2.0**-900 else 0.0


@kernel(**LEAN)
def positions(X, start, stop, low, inverse, bits, keys, q, gray):
    """Write the positions of rows `start` to `stop` on the curve.

    `q` (d, STRIP) of zeros and `gray` (STRIP,), uint32, are scratch.
    """
    d = len(low)
    top = np.float64((1 << bits) - 1)
    for at in upto(start, stop, STRIP):
        m = minimum(STRIP, stop - at)
        for p in upto(m):
            for f in upto(d):
                step = (np.float64(X[at + p, f]) - low[f]) * inverse
                q[f, p] = np.uint32(minimum(maximum(step, 0.0), top))
        transpose(q, bits, gray)
        key = part(keys, at, at + m)
        for p in upto(m):
            key[p] = 0
        for place in upto(bits):
            shift = np.uint32(bits - 1 - place)
            for f in upto(d):
                for p in upto(m):
                    key[p] = (key[p] << 1) | ((q[f, p] >> shift) & np.uint32(1))


@subroutine(inline="always")
def transpose(q, bits, gray):
    """Turn coordinates (d, STRIP) into the bits of the curve's positions, in place (Skilling).

    `gray` (STRIP,) is overwritten.
    """
    d, zero, one = len(q), np.uint32(0), np.uint32(1)
    for place in upto(bits - 1):
        bit = np.uint32(bits - 1 - place)
        mask = (one << bit) - one
        # Where the bit is set invert the lower bits of feature 0, else exchange them.
        for p in upto(STRIP):
            q[0, p] ^= mask & (zero - ((q[0, p] >> bit) & one))
        for f in upto(1, d):
            for p in upto(STRIP):
                there = mask & (zero - ((q[f, p] >> bit) & one))
                swap = (q[0, p] ^ q[f, p]) & (mask ^ there)
                q[0, p] ^= swap | there
                q[f, p] ^= swap
    for f in upto(1, d):
        for p in upto(STRIP):
            q[f, p] ^= q[f - 1, p]
    for p in upto(STRIP):
        gray[p] = 0
    for place in upto(bits - 1):
        bit = np.uint32(bits - 1 - place)
        mask = (one << bit) - one
        for p in upto(STRIP):
            gray[p] ^= mask & (zero - ((q[d - 1, p] >> bit) & one))
    for f in upto(d):
        for p in upto(STRIP):
            q[f, p] ^= gray[p]


def sorted_rows(keys: NDArray, bits: int, each_block: EachBlock) -> NDArray:
    """Return row numbers in the order of their keys, ties by row; `keys` is overwritten."""
    n = len(keys)
    rows: NDArray = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
    spare = np.empty_like(keys), np.empty_like(rows)
    for shift in range(0, bits, DIGIT):
        sort_by_digit(keys, rows, shift, spare, each_block)
        (keys, rows), spare = spare, (keys, rows)
    return rows


def sort_by_digit(
    keys: NDArray, rows: NDArray, shift: int, out: tuple[NDArray, NDArray], each_block: EachBlock
) -> None:
    """Write keys and rows to `out` in the order of one digit, equal ones as they are."""
    counts: dict[int, NDArray[np.int64]] = {}

    def count(thread: int, start: int, stop: int) -> None:
        counts[start] = of_block = np.zeros(1 << DIGIT, dtype=np.int64)
        digits(keys, start, stop, shift, of_block)

    each_block(count, PLACING)
    starts = sorted(counts)
    table = np.stack([counts[start] for start in starts])
    before = np.cumsum(table.T.ravel()).reshape(table.T.shape).T - table
    places = dict(zip(starts, before))

    def place(thread: int, start: int, stop: int) -> None:
        scatter(keys, rows, start, stop, shift, places[start], *out)

    each_block(place, PLACING)


@kernel(**LEAN)
def digits(keys, start, stop, shift, counts):
    """Count the digits of a block of keys."""
    for i in range(start, stop):
        counts[(keys[i] >> shift) & ((1 << DIGIT) - 1)] += 1


@kernel(**LEAN)
def scatter(keys, rows, start, stop, shift, places, keys_out, rows_out):
    """Put a block's keys and rows where their digit begins; `places` (digits,) is overwritten."""
    for i in range(start, stop):
        digit = (keys[i] >> shift) & ((1 << DIGIT) - 1)
        to = places[digit]
        places[digit] = to + 1
        keys_out[to] = keys[i]
        rows_out[to] = rows[i]
