"""Which scan looks at all centres, for the data, the centres and the processor at hand.

A scanner takes (rows, start, stop, fresh, best, second), see :mod:`lloydia.backends.cpu.scan`, and
returns the number of rows whose scores did not settle them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu import amx
from lloydia.backends.cpu.centers import Packed, pack
from lloydia.backends.cpu.coarse_scan import coarse_scan
from lloydia.backends.cpu.held import NOT_HELD, Held
from lloydia.backends.cpu.low_points import FEW, LOW
from lloydia.backends.cpu.points import DEEP
from lloydia.backends.cpu.rows import EVERY
from lloydia.backends.cpu.scan import panel_scan
from lloydia.backends.cpu.settle import settle
from lloydia.backends.cpu.sparse_scan import sparse_scan
from lloydia.backends.cpu.tile_scan import tile_scan

if TYPE_CHECKING:
    from lloydia.backends.cpu import CPU

__all__ = ["dense_scanner", "scanner"]

# Features and centres from which on matrix units are faster than vector units, where there are any:
# they look at 32 centres at a time, and take rows and centres apart first.
TILED, SEVERAL = 24, 48

# Numbers in the centres from which on a scan of their leading parts pays.
AMPLE = 6000


def scanner(engine: CPU) -> Callable[..., int]:
    """Return the scan for the engine's data and centres."""
    X: Any = engine.X
    if not engine.sparse:
        return dense_scanner(engine, X)
    wide = engine.used.astype(np.float64)
    columns = np.ascontiguousarray(wide.T)
    squares = np.square(wide).sum(axis=1)
    halves, reach = 0.5 * squares, float(np.sqrt(squares.max())) * (1 + 2.0**-20)
    return lambda rows, start, stop, *out: sparse_scan(
        X, rows, start, stop, columns, halves, reach, *out
    )


def dense_scanner(engine: CPU, X: NDArray) -> Callable[..., int]:
    """Return the scan for dense rows `X` and the engine's centres."""
    tiled = amx.AVAILABLE and engine.n_features >= TILED and len(engine.used) >= SEVERAL
    held = engine.held if X is engine.X and not tiled else None
    p = engine.packed
    if p is None or p.given is not engine.used:
        p = engine.packed = pack(engine.used, tiled, engine.each_block, p)
    whole = whole_scanner(X, p, tiled, held)
    ample = engine.n_features >= amx.COARSE and p.given.size >= AMPLE
    return leading_scanner(X, p, whole) if tiled and ample else whole


def whole_scanner(
    X: NDArray, p: Packed, tiled: bool, held: Held | None = None
) -> Callable[..., int]:
    """Return the scan that leaves no doubt, on vector or on matrix units."""
    n, d = X.shape
    lead = amx.lead(d)
    # What a kernel must know to compile no more than it needs.
    shape: Any = True if d > DEEP else None
    if d <= LOW and not tiled:
        axes, k = tuple(range(d)), len(p.given)
        shape = (axes, k) if k <= FEW else axes

    def scan(rows: NDArray, start: int, stop: int, *out: NDArray) -> int:
        some = (X, rows, start, stop, p.scores)
        if tiled:
            return tile_scan(*some, p.tiles, p.centers, lead, p.frame, p.errors, shape, *out)
        doubtful = np.empty(stop - start, dtype=np.int64)
        whole = held and rows is EVERY and stop - start == n
        framed = held.rows(p.frame) if held and whole else NOT_HELD
        found = panel_scan(*some, p.frame, p.errors, shape, framed, *out, doubtful)
        if found:
            left = doubtful[:found]
            settle(X, rows, start, left, p.centers, p.scores, p.frame, p.errors, *out)
        return found

    return scan


def leading_scanner(X: NDArray, p: Packed, whole: Callable[..., int]) -> Callable[..., int]:
    """Return the scan of the leading parts, then the `whole` one of what they leave in doubt."""
    lead = amx.lead(X.shape[1])

    def scan(rows: NDArray, start: int, stop: int, *out: NDArray) -> int:
        left = np.empty(stop - start, dtype=np.int64)
        far, *_, line = p.errors
        n = coarse_scan(X, rows, start, stop, p.tiles, lead, p.frame, far, line, *out, left)
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
