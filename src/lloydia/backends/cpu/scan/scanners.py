"""Which scan looks at all centres, for the data, the centres and the processor at hand.

A scanner takes (rows, start, stop, fresh, best, second), see
:mod:`lloydia.backends.cpu.scan.nearest`, and returns the number of rows whose scores did not settle
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.protocols import Rows
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan import tile_scores
from lloydia.backends.cpu.scan.centers import Packed, pack
from lloydia.backends.cpu.scan.held import NOT_HELD, Held
from lloydia.backends.cpu.scan.panel_scan import bound_kept, panel_scan, room_for
from lloydia.backends.cpu.scan.settle import room_for_scores, settle
from lloydia.backends.cpu.simd.low_points import FEW, LOW
from lloydia.backends.cpu.simd.points import DEEP
from lloydia.imports import load

__all__ = ["Leading", "ScannedRows", "dense_scanner", "scanner"]

# Features and centres from which on matrix units are faster than vector units, where there are any:
# they look at 32 centres at a time, and take rows and centres apart first.  So many centres, too,
# for vector units that multiply pairs.
TILED, SEVERAL = 24, 48

# Numbers in the centres from which on a scan of their leading parts pays.
AMPLE = 6000

# Scans without leading parts after one of which these settled less than half of the rows tried.
IDLE = 15


class ScannedRows(Rows, Protocol):
    """Rows, and what scans of them have stored for the next one; see :class:`engine.CPU`.

    Attributes
    ----------
    used : ndarray of shape (k, d)
        The centres that rows are assigned to.
    """

    used: NDArray
    held: Held | None
    packed: Packed | None
    scan: tuple[Any, Any, Any]
    leading: Leading


class Leading:
    """Whether leading parts settle enough rows of a data set, as its scans found.

    Attributes
    ----------
    counts : list of (int, int)
        Rows tried since it was asked, and of those the ones left in doubt, by any thread.
    idle : int
        Scans that are still to be without.
    """

    def __init__(self) -> None:
        self.counts: list[tuple[int, int]] = []
        self.idle = 0

    def useful(self) -> bool:
        """Return whether the scan that begins should try them."""
        tried, left = (sum(count) for count in zip((0, 0), *self.counts, strict=True))
        self.counts.clear()
        self.idle = IDLE if 2 * left > tried else max(0, self.idle - 1)
        return self.idle == 0


def scanner(engine: ScannedRows) -> Callable[..., int]:
    """Return the scan for the engine's data and centres."""
    X: Any = engine.X
    if not engine.sparse:
        return dense_scanner(engine, X)
    wide = engine.used.astype(np.float64)
    columns = np.ascontiguousarray(wide.T)
    squares = np.square(wide).sum(axis=1)
    halves, reach = 0.5 * squares, float(np.sqrt(squares.max())) * (1 + 2.0**-20)
    sparse_scan = load("lloydia.backends.cpu.scan.sparse_scan").sparse_scan
    return lambda rows, start, stop, *out: sparse_scan(
        X, rows, start, stop, columns, halves, reach, *out
    )


def dense_scanner(engine: ScannedRows, X: NDArray) -> Callable[..., int]:
    """Return the scan for dense rows `X` and the engine's centres."""
    k, d = engine.used.shape
    tiled = tile_scores.WHOLE and d >= TILED and k >= SEVERAL
    # Rows that are held are few.
    units = tiled or (tile_scores.AVAILABLE and engine.held is None and k >= SEVERAL)
    leading = units and d >= tile_scores.COARSE and k * d >= AMPLE
    useful = leading and (X is not engine.X or engine.leading.useful())
    held = engine.held if X is engine.X and not (tiled or leading) else None
    p = engine.packed
    if p is None or p.given is not engine.used:
        p = engine.packed = pack(engine.used, tiled or leading, engine.each_block, p)
    rows, place, scan = engine.scan
    # Mostly it is what the centres before were packed into.
    if rows is not X or place is not p:
        scan = whole_scanner(X, p, tiled, held)
        if useful:
            scan = leading_scanner(X, p, scan, engine.leading if X is engine.X else Leading())
        if held:
            # Other rows may be let go.
            engine.scan = X, p, scan
    return scan


def whole_scanner(
    X: NDArray, p: Packed, tiled: bool, held: Held | None = None
) -> Callable[..., int]:
    """Return the scan that leaves no doubt, on vector or on matrix units."""
    n, d = X.shape
    lead = tile_scores.lead(d)
    # What a kernel must know to compile no more than it needs.
    shape: Any = True if d > DEEP else None
    if d <= LOW and not tiled:
        axes, k = tuple(range(d)), len(p.given)
        shape = (axes, k) if k <= FEW else axes

    def tile_by_tile(rows: NDArray, start: int, stop: int, *out: NDArray) -> int:
        return tile_scan(
            X, rows, start, stop, p.scores, p.tiles, p.centers, lead, p.frame, p.errors, shape, *out
        )

    if tiled:
        tile_scan = load("lloydia.backends.cpu.scan.tile_scan").tile_scan
        return tile_by_tile
    errors = p.panel_errors(named=not isinstance(shape, tuple))
    # What a scan of all rows at once needs, which is never done twice at a time.
    ready = (room_for(n, d, X.itemsize, True, False), np.empty(n, np.int64)) if held else None

    def scan(
        rows: NDArray, start: int, stop: int, fresh: NDArray, best: NDArray, second: NDArray
    ) -> int:
        framed, m, bounded = NOT_HELD, stop - start, len(best) > 0
        if held and ready and rows is EVERY and m == n and not bounded:
            framed, (room, doubtful) = held.rows(p.frame), ready
        else:
            room = room_for(m, d, X.itemsize, False, bounded)
            doubtful = np.empty(m, np.int64)
        some = (p.scores[:2], p.frame, errors)
        found = panel_scan(X, rows, start, stop, *some, shape, framed, room, fresh, doubtful)
        if bounded and m > 0:
            bound_kept(m, d, p.frame[1], errors[1:], room, best, second)
        if found:
            left, scores = doubtful[:found], room_for_scores(len(p.given))
            exact = (p.scores[1:], p.frame, p.panel_errors(named=False))
            settle(X, rows, start, left, p.centers, *exact, fresh, best, second, scores)
        return found

    return scan


def leading_scanner(
    X: NDArray, p: Packed, whole: Callable[..., int], leading: Leading
) -> Callable[..., int]:
    """Return the scan of the leading parts, then the `whole` one of what they leave in doubt."""
    lead = tile_scores.lead(X.shape[1])
    coarse_scan = load("lloydia.backends.cpu.scan.coarse_scan").coarse_scan

    def scan(rows: NDArray, start: int, stop: int, *out: NDArray) -> int:
        left = np.empty(stop - start, dtype=np.int64)
        far, *_, lines = p.errors
        some = (p.tiles, lead, p.frame, far, lines)
        n, tried = coarse_scan(X, rows, start, stop, *some, *out, left)
        # The others are all among those left.
        leading.counts.append((tried, n - (stop - start - tried)))
        if n == stop - start:
            return whole(rows, start, stop, *out)
        left = left[:n]
        again = [np.empty(n if len(a) else 0, dtype=a.dtype) for a in out]
        rechecked = whole(rows[left] if len(rows) else left, 0, n, *again)
        for a, found in zip(out, again, strict=True):
            if len(a):
                a[left - start] = found
        return rechecked

    return scan
