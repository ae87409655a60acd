"""The scan of dense rows by panels of centres: see :mod:`lloydia.backends.cpu.scan.nearest`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, minimum, part, shaped
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan.group_scores import score_panels
from lloydia.backends.cpu.scan.nearest import (
    BLOCK_BYTES,
    FETCHED,
    bound,
    certify,
    end_to_end,
    frame_rows,
)
from lloydia.backends.cpu.simd.frames import LINE
from lloydia.backends.cpu.simd.points import GROUP, PANEL

__all__ = ["bound_kept", "panel_scan", "room_for"]

# What a block of rows that are asked for ahead, as they are and framed, should fill with the next
# one: most of the first-level cache.
NEAR_BYTES = 36_000


def room_for(
    n: int, d: int, itemsize: int, held: bool, kept: bool
) -> tuple[int, int, NDArray[np.float32]]:
    """Return the rows of a block, those that have a place, and the scratch for them.

    `n` rows are to be scanned; with `kept` what is found of each stays, for :func:`bound_kept`.
    """
    size = d * itemsize
    most = BLOCK_BYTES // (4 * GROUP * d)
    if size <= FETCHED:
        most = NEAR_BYTES // (GROUP * (4 * d + 2 * size))
    block = min(max(2, min(16, most)), -(-n // GROUP)) * GROUP
    places = -(-n // block) * block if kept else block
    numbers = 3 * places + block * (0 if held else 1 + d)
    return block, places, np.empty(numbers + 64 // 4, np.float32)


@kernel(**LEAN)
def panel_scan(
    X, rows, start, stop, packed, frame, errors, shape, held, room, fresh, doubtful
):  # fmt: skip
    """Scan dense rows; see the module of scans for what it writes.

    `packed` are the first two of the scores of :class:`lloydia.backends.cpu.scan.centers.Packed`,
    and `frame` and `errors` its too, the latter of panels for the scores of that `shape`, which is
    that of :func:`score_panels`; `held` is that of :class:`lloydia.backends.cpu.scan.held.Held` or
    its NOT_HELD; `room` that of :func:`room_for`.
    """
    if stop <= start:
        return 0
    panels, starts = packed
    origin, scale = frame
    far, lines, d = errors[0], errors[1:], X.shape[1]
    n_panels, size = len(starts) // PANEL, d * X.itemsize
    asked = end_to_end(X, rows) and size <= FETCHED
    framed, lengths, known = held
    own = len(framed) == 0
    block, places, room = room
    room = part(room, -room.ctypes.data % 64 // 4)
    # The place of `which` holds integers.
    which = part(room, 2 * places)
    if own:
        lengths = part(which, block)
        framed = shaped(part(lengths, places), (block // GROUP, d, GROUP))
    n_doubtful = 0
    for at in upto(start, stop, block):
        m, done = minimum(block, stop - at), at - start
        here = done if places > block else 0
        high, low = part(room, here), part(room, places + here)
        y, squares = part(framed, 0 if own else done // GROUP), part(lengths, here if own else done)
        # While this block is looked at, memory sends the next one.
        groups, ahead = -(-m // GROUP), X.ctypes.data + (at + m) * X.strides[0]
        left = minimum(block, stop - at - m) * size if asked else 0
        share = -(-left // (groups * (1 + n_panels) * LINE)) * LINE
        if not known:
            frame_rows(X, rows, at, m, shape, origin, scale, y, squares, ahead, share)
        ahead += groups * share
        width = score_panels(y, d, groups, panels, starts, high, low, which, shape, ahead, share)
        # Panels' errors do not depend on what is in the place of `rests`.
        n_doubtful += certify(
            m, squares, squares, high, low, which, width, lines, far, part(fresh, done), at,
            part(doubtful, n_doubtful),
        )  # fmt: skip
    return n_doubtful


@kernel(**LEAN)
def bound_kept(n, d, scale, lines, room, best, second):
    """Write the bounds of `n` rows, not held, of which what :func:`panel_scan` found was kept."""
    block, places, room = room
    room = part(room, -room.ctypes.data % 64 // 4)
    lengths = part(room, 2 * places + block)
    unit = 1.0 / np.float64(scale)
    bound(n, d, lengths, lengths, room, part(room, places), lines, unit, best, second)
