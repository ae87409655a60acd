"""Chooses the scan of all centres for the data, the centres and the processor.

A scanner takes (rows, start, stop, fresh, best, second), see
:mod:`lloydia.backends.cpu.scan.nearest`, and returns the number of rows that needed exact
distances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan import tile_scores
from lloydia.backends.cpu.scan.centers import Packed, pack
from lloydia.backends.cpu.scan.framed_cache import NOT_CACHED, FramedCache
from lloydia.backends.cpu.scan.panel_scan import bound_framed, panel_scan, scratch_for
from lloydia.backends.cpu.scan.recheck import recheck_exact, scratch_for_scores
from lloydia.backends.cpu.simd.microkernel_low_dim import LOW_DIM, SEQUENTIAL_CENTERS
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import DEEP
from lloydia.imports import load

__all__ = ["Bf16Prefilter", "ScanState", "dense_scanner", "scanner"]

# Features and centres from which on matrix units are faster than vector units.  They score 32
# centres at a time, after rows and centres were split into bfloat16.  The same number of centres
# holds for vector units that multiply pairs of bfloat16.
TILED_FEATURES, TILED_CENTERS = 24, 48

# Numbers in the centres from which on the bfloat16 prefilter pays.
PREFILTER_NUMBERS = 6000

# After a scan in which the prefilter left more than half of the rows ambiguous, this many scans do
# not use it.
IDLE = 15


class PackedMemory(Protocol):
    """Where the packed centres are; see :class:`memory.RunMemory`."""

    packed: Packed | None


class ScanState(Protocol):
    """Centres, and what a scan stores for the next one; see :class:`run.Run`.

    Attributes
    ----------
    dataset : Dataset
    used : ndarray of shape (k, d)
        The centres that rows are assigned to.
    memory : PackedMemory
        Where the packed centres are.
    framed_cache : FramedCache or None
    scan : tuple
        The rows in the framed cache, the packed centres, and the scan made for both.
    bf16_prefilter : Bf16Prefilter
    """

    dataset: Dataset
    used: NDArray
    framed_cache: FramedCache | None
    scan: tuple[Any, Any, Any]
    bf16_prefilter: Bf16Prefilter

    @property
    def memory(self) -> PackedMemory: ...


class Bf16Prefilter:
    """Whether the bfloat16 prefilter certifies enough rows of a data set, as its scans found.

    Attributes
    ----------
    counts : list of (int, int)
        For each block since the last scan: rows tried, and those left ambiguous.
    idle : int
        Scans that will still be made without the prefilter.
    """

    def __init__(self) -> None:
        self.counts: list[tuple[int, int]] = []
        self.idle = 0

    def useful(self) -> bool:
        """Return whether the scan that begins should use the prefilter."""
        tried, left = (sum(count) for count in zip((0, 0), *self.counts, strict=True))
        self.counts.clear()
        self.idle = IDLE if 2 * left > tried else max(0, self.idle - 1)
        return self.idle == 0


def scanner(run: ScanState) -> Callable[..., int]:
    """Return the scan for the data set and the centres of a run."""
    X: Any = run.dataset.X
    if not run.dataset.sparse:
        return dense_scanner(run, X)
    wide = run.used.astype(np.float64)
    columns = np.ascontiguousarray(wide.T)
    squares = np.square(wide).sum(axis=1)
    half_squares, reach = 0.5 * squares, float(np.sqrt(squares.max())) * (1 + 2.0**-20)
    sparse_scan = load("lloydia.backends.cpu.scan.sparse_scan").sparse_scan
    return lambda rows, start, stop, *out: sparse_scan(
        X, rows, start, stop, columns, half_squares, reach, *out
    )


def dense_scanner(run: ScanState, X: NDArray) -> Callable[..., int]:
    """Return the scan for dense rows `X`, those of the run or others, and the run's centres."""
    used, memory = run.used, run.memory
    k, d = used.shape
    of_run = X is run.dataset.X
    tiled = tile_scores.AMX and d >= TILED_FEATURES and k >= TILED_CENTERS
    # Only small data sets have a framed cache.
    small = run.framed_cache is not None
    bf16 = tiled or (tile_scores.AVAILABLE and not small and k >= TILED_CENTERS)
    prefilter = bf16 and d >= tile_scores.PREFILTER_FEATURES and k * d >= PREFILTER_NUMBERS
    useful = prefilter and (not of_run or run.bf16_prefilter.useful())
    cache = run.framed_cache if of_run and not (tiled or prefilter) else None
    p = memory.packed
    if p is None or p.given is not used:
        p = memory.packed = pack(used, tiled or prefilter, run.dataset.each_block, p)
    rows, place, scan = run.scan
    # Packing mostly reuses the same object, for which the last scan is still valid.
    if rows is not X or place is not p:
        scan = full_scanner(X, p, tiled, cache)
        if useful:
            scan = prefiltered_scanner(
                X, p, scan, run.bf16_prefilter if of_run else Bf16Prefilter()
            )
        if cache:
            # Only the run's rows have a cache: others would stay in memory as long as the run.
            run.scan = X, p, scan
    return scan


def full_scanner(
    X: NDArray, p: Packed, tiled: bool, cache: FramedCache | None = None
) -> Callable[..., int]:
    """Return the scan that finds every label, on vector or on matrix units."""
    n, d = X.shape
    n_head_pairs = tile_scores.head_pairs_of(d)
    # A constant for kernels: code that they do not need is not compiled.
    shape: Any = True if d > DEEP else None
    if d <= LOW_DIM and not tiled:
        axes, k = tuple(range(d)), len(p.given)
        shape = (axes, k) if k <= SEQUENTIAL_CENTERS else axes

    def tile_by_tile(rows: NDArray, start: int, stop: int, *out: NDArray) -> int:
        return tile_scan(
            X,
            rows,
            start,
            stop,
            p.scores,
            p.tiles,
            p.centers,
            n_head_pairs,
            p.frame,
            p.errors,
            shape,
            *out,
        )

    if tiled:
        tile_scan = load("lloydia.backends.cpu.scan.tile_scan").tile_scan
        return tile_by_tile
    errors = p.panel_errors(indexed=not isinstance(shape, tuple))
    # Scratch of a scan of all rows at once; no two of these run at the same time.
    ready = (scratch_for(n, d, X.itemsize, True, False), np.empty(n, np.int64)) if cache else None

    def scan(
        rows: NDArray, start: int, stop: int, fresh: NDArray, best: NDArray, second: NDArray
    ) -> int:
        framed, m, bounded = NOT_CACHED, stop - start, len(best) > 0
        if cache and ready and rows is EVERY and m == n and not bounded:
            framed, (scratch, ambiguous) = cache.rows(p.frame), ready
        else:
            scratch = scratch_for(m, d, X.itemsize, False, bounded)
            ambiguous = np.empty(m, np.int64)
        some = (p.scores[:2], p.frame, errors)
        found = panel_scan(X, rows, start, stop, *some, shape, framed, scratch, fresh, ambiguous)
        if bounded and m > 0:
            bound_framed(m, d, p.frame[1], errors[1:], scratch, best, second)
        if found:
            left, scores = ambiguous[:found], scratch_for_scores(len(p.given))
            exact = (p.scores[1:], p.frame, p.panel_errors(indexed=False))
            recheck_exact(X, rows, start, left, p.centers, *exact, fresh, best, second, scores)
        return found

    return scan


def prefiltered_scanner(
    X: NDArray, p: Packed, full: Callable[..., int], prefilter: Bf16Prefilter
) -> Callable[..., int]:
    """Return the bfloat16 prefilter, followed by the `full` scan of rows left ambiguous."""
    n_head_pairs = tile_scores.head_pairs_of(X.shape[1])
    prefilter_rows = load("lloydia.backends.cpu.scan.bf16_prefilter").prefilter_rows

    def scan(rows: NDArray, start: int, stop: int, *out: NDArray) -> int:
        left = np.empty(stop - start, dtype=np.int64)
        far, *_, lines = p.errors
        some = (p.tiles, n_head_pairs, p.frame, far, lines)
        n, tried = prefilter_rows(X, rows, start, stop, *some, *out, left)
        # Rows that were not tried are all among those left.
        prefilter.counts.append((tried, n - (stop - start - tried)))
        if n == stop - start:
            return full(rows, start, stop, *out)
        left = left[:n]
        rescanned = [np.empty(n if len(a) else 0, dtype=a.dtype) for a in out]
        rechecked = full(rows[left] if len(rows) else left, 0, n, *rescanned)
        for a, found in zip(out, rescanned, strict=True):
            if len(a):
                a[left - start] = found
        return rechecked

    return scan
