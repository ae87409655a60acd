"""Potentials of candidates for rows of many features.

The :mod:`screen` finds the rows that some candidate may bring nearer to a seed.  Only for these,
canonical distances are evaluated, to eight candidates per vector.  A long seeding continues with
:mod:`sketched_potentials`, as long as the sketch excludes enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, local, minimum, shaped
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.seeding.protocols import SeedingState
from lloydia.backends.cpu.seeding.screen import Screen, aligned, list_reachable_rows
from lloydia.backends.cpu.seeding.weights import MAX_CANDIDATES, TILE, everywhere, fixed
from lloydia.backends.cpu.simd.lanes import OCTET, ROWS, squares
from lloydia.imports import load

if TYPE_CHECKING:
    from lloydia.backends.cpu.seeding.sketched_potentials import SketchedPotentials

__all__ = ["WidePotentials"]

# The sketch is made where a seeding is expected to read at least this many numbers of rows, which
# takes a tenth of a second without it.  Sketching rows takes as long as two to eight evaluations,
# and its kernels compile in 2 to 3 seconds where no process has compiled them before.
SKETCHED_NUMBERS = 1 << 28


@kernel(**LEAN)
def evaluate_candidates(
    X, first, last, m, panel, initial_scores, columns, test, nearest, norms, weights, low, high,
    scratch, hits, counts, reductions,
):  # fmt: skip
    """Add to `reductions` what each candidate takes off the integers of some tiles.

    Parameters
    ----------
    X : IN, ndarray (n, d)
    first, last : int
        The tiles.
    m : int
        Candidates.
    panel, initial_scores, columns, test : IN
        Those of :class:`Screen`.
    nearest, norms : IN, ndarray (n,), float64
        D to the nearest and to the first seed.
    weights : IN, ndarray (n,) or (0,), float64
    low, high : float
        Powers of two whose product brings a term to its grid.
    scratch : tuple
        From :func:`scratch_for`.
    hits : OUT, ndarray (n,), uint32
        From the first row of each tile on: rows that some candidate lowers, see MAX_CANDIDATES.
    counts : OUT, ndarray (n_tiles,), int64
        Hits of each tile.
    reductions : IN/OUT, ndarray (m or more,), int64
    """
    n, d = X.shape
    limits, bits, copies, x, squared = scratch
    D, pitch = shaped(squared, (ROWS, columns.shape[1])), 8 * columns.shape[1]
    for tile in upto(first, last):
        start, stop = tile * TILE, minimum((tile + 1) * TILE, n)
        found = list_reachable_rows(
            X, start, stop, panel, initial_scores, test, nearest, norms, limits, bits, copies, hits
        )
        n_hits = 0
        for at in upto(0, found, ROWS):
            here = minimum(ROWS, found - at)
            for p in upto(here):
                i = start + (hits[start + at + p] >> MAX_CANDIDATES)
                for f in upto(d):
                    x[p, f] = X[i, f]
            for octet in upto(0, pitch, 8 * OCTET):
                some = columns.ctypes.data + octet
                squares(x.ctypes.data, d, some, pitch, D.ctypes.data + octet)
            for p in upto(here):
                hit = hits[start + at + p]
                i = start + (hit >> MAX_CANDIDATES)
                w = weights[i] if len(weights) else 1.0
                near = nearest[i]
                before = fixed(near, w, low, high)
                improves = np.uint32(0)
                # No branch on the screen's bits: a candidate that it rules out is not nearer.
                for c in upto(m):
                    nearer = D[p, c] < near
                    reductions[c] += before - fixed(D[p, c] if nearer else near, w, low, high)
                    improves |= np.uint32(nearer) << np.uint32(c)
                hits[start + n_hits] = (
                    hit >> np.uint32(MAX_CANDIDATES) << np.uint32(MAX_CANDIDATES)
                ) | improves
                n_hits += improves != 0
        counts[tile] = n_hits


@kernel(**LEAN)
def accept_candidate(
    X, first, last, columns, j, nearest, weights, low, high, scratch, hits, counts, totals, tops
):  # fmt: skip
    """Lower D of the listed rows that candidate `j` is nearer to; update sums and largest terms.

    Parameters
    ----------
    X, first, last, columns, weights, low, high, scratch, hits, counts : IN
        As :func:`evaluate_candidates` used or wrote them.
    j : int
        The candidate.
    nearest : IN/OUT, ndarray (n,), float64
    totals, tops : IN/OUT, ndarray (n_tiles,), int64 and float64
        Integer sum and largest of weight times D; NaN where the largest term may have shrunk.
    """
    d, lanes = columns.shape
    x, D = scratch[3:]
    rows, octet, lane = local(np.int64, ROWS), j // OCTET * 8 * OCTET, j % OCTET
    for tile in upto(first, last):
        start, m = tile * TILE, 0
        for at in upto(counts[tile]):
            hit = hits[start + at]
            if hit >> np.uint32(j) & np.uint32(1):
                rows[m] = start + (hit >> MAX_CANDIDATES)
                m += 1
            if m == ROWS or (m > 0 and at == counts[tile] - 1):
                for p in upto(m):
                    i = rows[p]
                    for f in upto(d):
                        x[p, f] = X[i, f]
                some = columns.ctypes.data + octet
                squares(x.ctypes.data, d, some, 8 * lanes, D.ctypes.data)
                for p in upto(m):
                    i, near = rows[p], D[p * lanes + lane]
                    w = weights[i] if len(weights) else 1.0
                    # If this row has the tile's largest term, the new largest term is unknown.
                    tops[tile] = np.nan if w * nearest[i] >= tops[tile] else tops[tile]
                    change = fixed(nearest[i], w, low, high) - fixed(near, w, low, high)
                    totals[tile] -= change
                    nearest[i] = near
                m = 0


def scratch_for(d: int, dtype: Any) -> tuple[NDArray, ...]:
    """Return a thread's scratch: for :func:`list_reachable_rows`, for rows, and for their D."""
    return (
        np.empty(TILE, dtype),
        np.empty(TILE, np.uint16),
        np.zeros((ROWS, d), dtype),
        np.zeros((ROWS, d)),
        np.empty(2 * ROWS * OCTET),
    )


class WidePotentials:
    """Potentials for dense rows of many features.

    Attributes
    ----------
    norms : ndarray of shape (n,)
        Each row's D to the first seed.
    hits : ndarray of shape (n,), uint32
        The rows that the last candidates lower, tile by tile.
    counts : ndarray of shape (n_tiles,), int64
        Hits of each tile.
    n_read : int
        Numbers that were read of rows, to compare them with candidates.
    """

    def __init__(self, seeder: SeedingState) -> None:
        self.seeder = seeder
        self.screen: Screen | None = None
        self.sketched: SketchedPotentials | None = None
        self.n_read = 0
        self.scratches = [
            scratch_for(seeder.dataset.n_features, seeder.dataset.dtype)
            for _ in range(seeder.dataset.n_threads)
        ]
        self.hits = np.empty(seeder.dataset.n_samples, dtype=np.uint32)
        self.counts = np.empty(seeder.n_tiles, dtype=np.int64)

    def first(self, values: NDArray) -> None:
        """Make a candidate the only seed."""
        seeder, seed = self.seeder, values.astype(np.float64)
        columns = aligned((seeder.dataset.n_features, OCTET), np.float64)
        columns[:, 0] = seed[0]
        everywhere(self.hits, self.counts)
        seeder.nearest.fill(np.inf)
        self._accept(columns, 0, 1.0, 1.0)
        seeder.stale()
        self.origin, self.norms = seed[0], seeder.nearest.copy()

    def _sketches(self, values: NDArray) -> SketchedPotentials | None:
        """Return what evaluates these candidates by the sketch; None if the screen does better."""
        seeder, one = self.seeder, self.seeder.dataset.n_samples * self.seeder.dataset.n_features
        self.n_read += one
        expected = self.n_read + one * seeder.n_expected
        if self.sketched is None and expected > SKETCHED_NUMBERS and seeder.sketch_columns:
            self.sketched = load(
                "lloydia.backends.cpu.seeding.sketched_potentials"
            ).SketchedPotentials(seeder, self.hits, self.counts)
        return self.sketched if self.sketched and self.sketched.take(values) else None

    def best(self, values: NDArray, low: float, high: float) -> int:
        """Return the candidate that lowers the total most, the first one of equals."""
        if sketched := self._sketches(values):
            return sketched.best(low, high)
        return int(self._screened(values, low, high).argmax())

    def reductions(self, values: NDArray, low: float, high: float) -> NDArray[np.int64]:
        """Return by how much each candidate lowers the total."""
        if sketched := self._sketches(values):
            return sketched.reductions(low, high)[: len(values)]
        return self._screened(values, low, high)

    def _screened(self, values: NDArray, low: float, high: float) -> NDArray[np.int64]:
        seeder, m = self.seeder, len(values)
        if self.screen is None or m > self.screen.columns.shape[1]:
            radius = float(np.sqrt(self.norms.max()))
            self.screen = Screen(self.origin, radius, seeder.dataset.dtype, m)
        screen = self.screen
        test = screen.load(values.astype(np.float64))
        packed = (screen.panel, screen.initial_scores, screen.columns, test)
        reductions = aligned((seeder.dataset.n_threads, MAX_CANDIDATES), np.int64)
        seeder.each_tile(
            lambda t, a, b: evaluate_candidates(
                seeder.dataset.X, a, b, m, *packed, seeder.nearest, self.norms,
                seeder.dataset.weights, low, high, self.scratches[t],
                self.hits, self.counts, reductions[t],
            ), 3.0 + 0.25 * seeder.dataset.width,
        )  # fmt: skip
        return reductions.sum(axis=0)[:m]

    def accept(self, j: int, low: float, high: float) -> None:
        """Make candidate `j` of the last :meth:`reductions` a seed."""
        if self.sketched:
            # The limits of the sketch follow D, even if the screen evaluated the candidates.
            self.sketched.accept(j, low, high)
            return
        assert self.screen is not None
        self._accept(self.screen.columns, j, low, high)

    def _accept(self, columns: NDArray[np.float64], j: int, low: float, high: float) -> None:
        seeder = self.seeder
        seeder.each_tile(
            lambda t, a, b: accept_candidate(
                seeder.dataset.X, a, b, columns, j, seeder.nearest,
                seeder.dataset.weights, low, high, self.scratches[t],
                self.hits, self.counts, seeder.totals, seeder.tops,
            ), 1.0 + 0.1 * seeder.dataset.width,
        )  # fmt: skip
