"""The scan of dense rows by panels of centres: see :mod:`lloydia.backends.cpu.scan`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.compiled import LEAN, kernel, minimum, shaped
from lloydia.backends.cpu.frames import LINE
from lloydia.backends.cpu.points import GROUP, PANEL
from lloydia.backends.cpu.scan import (
    BLOCK_BYTES,
    FETCHED,
    bound,
    certify,
    end_to_end,
    frame_rows,
    score_panels,
)

__all__ = ["panel_scan", "room_for"]

# What a block of rows that are asked for ahead, as they are and framed, should fill with the next
# one: most of the first-level cache.
NEAR_BYTES = 36_000


def room_for(n: int, d: int, itemsize: int, held: bool) -> tuple[int, NDArray[np.float32]]:
    """Return the rows of a block, and the scratch for them, where `n` are to be scanned."""
    size = d * itemsize
    most = BLOCK_BYTES // (4 * GROUP * d)
    if size <= FETCHED:
        most = NEAR_BYTES // (GROUP * (4 * d + 2 * size))
    block = min(max(2, min(16, most)), -(-n // GROUP)) * GROUP
    return block, np.empty((3 if held else 4 + d) * block + 64 // 4, np.float32)


@kernel(**LEAN)
def panel_scan(
    X, rows, start, stop, packed, frame, errors, shape, held, room, fresh, best, second, doubtful
):  # fmt: skip
    """Scan dense rows; see the module of scans for what it writes.

    `packed`, `frame` and `errors` are those of :class:`lloydia.backends.cpu.centers.Packed`;
    `shape` is that of :func:`score_panels`; `held` that of :class:`lloydia.backends.cpu.held.Held`
    or its NOT_HELD; `room` that of :func:`room_for`.
    """
    if stop <= start:
        return 0
    panels, starts, _ = packed
    origin, scale = frame
    far, d = errors[0], X.shape[1]
    n_panels, size = len(starts) // PANEL, d * X.itemsize
    asked = end_to_end(X, rows) and size <= FETCHED
    framed, lengths, known = held
    own = len(framed) == 0
    block, place = room
    place = place[-place.ctypes.data % 64 // 4 :]
    # The place of `which` holds integers.
    high, low, which = place[:block], place[block:], place[2 * block :]
    if own:
        lengths = place[3 * block :]
        framed = shaped(place[4 * block :], (block // GROUP, d, GROUP))
    unit = 1.0 / np.float64(scale)
    n_doubtful = 0
    for at in range(start, stop, block):
        m = minimum(block, stop - at)
        skipped = 0 if own else at - start
        y, squares = framed[skipped // GROUP :], lengths[skipped:]
        # While this block is looked at, memory sends the next one.
        groups, ahead = -(-m // GROUP), X.ctypes.data + (at + m) * X.strides[0]
        left = minimum(block, stop - at - m) * size if asked else 0
        part = -(-left // (groups * (1 + n_panels) * LINE)) * LINE
        if not known:
            frame_rows(X, rows, at, m, shape, origin, scale, y, squares, ahead, part)
        ahead += groups * part
        width = score_panels(y, d, groups, panels, starts, high, low, which, shape, ahead, part)
        lines = (errors[3], errors[5]) if width == 1 else (errors[2], errors[4])
        labels, upper, lower = fresh[at - start :], best[at - start :], second[at - start :]
        places = doubtful[n_doubtful:]
        # Panels' errors do not depend on what is in the place of `rests`.
        n_doubtful += certify(
            m, squares, squares, high, low, which, width, lines, far, labels, at, places
        )
        if len(best):
            bound(m, d, squares, squares, high, low, lines, unit, upper, lower)
    return n_doubtful
