"""The scan of dense rows by panels of centres: see :mod:`lloydia.backends.cpu.scan.nearest`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, minimum, part, shaped
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan.group_scores import score_panels
from lloydia.backends.cpu.scan.nearest import (
    BLOCK_BYTES,
    PREFETCHED_BYTES,
    bound,
    certify,
    end_to_end,
    frame_rows,
)
from lloydia.backends.cpu.simd.frames import LINE
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import GROUP, PANEL

__all__ = ["bound_framed", "panel_scan", "scratch_for"]

# The memory of a block, raw and framed, with the raw rows of the next one, which are prefetched:
# most of the first-level cache.
NEAR_BYTES = 36_000


def scratch_for(
    n: int, d: int, itemsize: int, cache: bool, bounded: bool
) -> tuple[int, int, NDArray[np.float32]]:
    """Return scratch for a scan: (rows per block, rows whose scores are stored, memory).

    Parameters
    ----------
    n, d, itemsize : int
        Rows, features, and bytes of a number.
    cache : bool
        Whether a FramedCache stores the framed rows.
    bounded : bool
        Whether the scores of all rows are stored, for :func:`bound_framed`.
    """
    size = d * itemsize
    max_groups = BLOCK_BYTES // (4 * GROUP * d)
    if size <= PREFETCHED_BYTES:
        max_groups = NEAR_BYTES // (GROUP * (4 * d + 2 * size))
    block = min(max(2, min(16, max_groups)), -(-n // GROUP)) * GROUP
    places = -(-n // block) * block if bounded else block
    numbers = 3 * places + block * (0 if cache else 1 + d)
    return block, places, np.empty(numbers + 64 // 4, np.float32)


@kernel(**LEAN)
def panel_scan(
    X, rows, start, stop, packed, frame, errors, shape, cache, scratch, fresh, ambiguous
):  # fmt: skip
    """Scan dense rows, and list the ambiguous ones; return how many.

    Parameters
    ----------
    X, rows, start, stop, fresh
        See :mod:`nearest`.
    packed : IN
        Panels and initial scores: the first two `scores` of :class:`centers.Packed`.
    frame, errors : IN
        Those of :class:`centers.Packed`, `errors` for scores of this shape.
    shape
        As in :func:`score_panels`.
    cache : tuple
        From :class:`framed_cache.FramedCache`, or NOT_CACHED.
    scratch : tuple
        From :func:`scratch_for`.
    ambiguous : OUT, ndarray (stop - start,), int64
        List entries.
    """
    if stop <= start:
        return 0
    panels, half_squares = packed
    origin, scale = frame
    far, lines, d = errors[0], errors[1:], X.shape[1]
    n_panels, size = len(half_squares) // PANEL, d * X.itemsize
    prefetches = end_to_end(X, rows) and size <= PREFETCHED_BYTES
    framed, lengths, is_framed = cache
    uncached = len(framed) == 0
    block, places, scratch = scratch
    scratch = part(scratch, -scratch.ctypes.data % 64 // 4)
    # The memory of `which` is used as int32.
    which = part(scratch, 2 * places)
    if uncached:
        lengths = part(which, block)
        framed = shaped(part(lengths, places), (block // GROUP, d, GROUP))
    n_ambiguous = 0
    for at in upto(start, stop, block):
        m, done = minimum(block, stop - at), at - start
        here = done if places > block else 0
        high, low = part(scratch, here), part(scratch, places + here)
        y, squares = (
            part(framed, 0 if uncached else done // GROUP),
            part(lengths, here if uncached else done),
        )
        # While this block is scored, the next one is prefetched.
        groups, next_rows = -(-m // GROUP), X.ctypes.data + (at + m) * X.strides[0]
        left = minimum(block, stop - at - m) * size if prefetches else 0
        share = -(-left // (groups * (1 + n_panels) * LINE)) * LINE
        if not is_framed:
            frame_rows(X, rows, at, m, shape, origin, scale, y, squares, next_rows, share)
        next_rows += groups * share
        width = score_panels(
            y, d, groups, panels, half_squares, high, low, which, shape, next_rows, share
        )
        # The coefficient of residuals is 0 for panels, so that any array may stand for them.
        n_ambiguous += certify(
            m, squares, squares, high, low, which, width, lines, far, part(fresh, done), at,
            part(ambiguous, n_ambiguous),
        )  # fmt: skip
    return n_ambiguous


@kernel(**LEAN)
def bound_framed(n, d, scale, lines, scratch, best, second):
    """Write the bounds of `n` rows whose scores :func:`panel_scan` stored in `scratch`."""
    block, places, scratch = scratch
    scratch = part(scratch, -scratch.ctypes.data % 64 // 4)
    lengths = part(scratch, 2 * places + block)
    unit = 1.0 / np.float64(scale)
    bound(n, d, lengths, lengths, scratch, part(scratch, places), lines, unit, best, second)
