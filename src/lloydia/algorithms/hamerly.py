r"""Hamerly: one upper and one lower bound per point (Hamerly 2010, "Making k-means even faster").

For a point x with label a, the algorithm keeps u >= d(x, c_a) and l <= d(x, c_j) for all j != a.

* When the centres move, d(x, c_a) grows by at most moved(a), and every other distance shrinks by
  at most the largest movement among the others:  u += moved(a),  l -= max_{j != a} moved(j).
* With s(a) half the distance from c_a to its nearest other centre, d(x, c_j) >= 2 s(a) - d(x, c_a).

So if u < max(l, s(a)), centre a is strictly the nearest centre, and x is skipped.  If not, u is
replaced by the distance itself.  If the test still fails, x is scanned, which gives a new label, u
and l.

**Bounds are not rewritten when centres move.**  The changes of u and l depend on the label alone,
so they are summed per cluster: M(a) is the total movement of centre a since the run began, and P(a)
is the sum of the largest movements of the other centres.  A point stores ``U = u - M(a)`` and
``L = l + P(a)``, with M and P at the time of its last scan.  Then

    u < l     is    L - U > M(a) + P(a),
    u < s(a)  is    U < s(a) - M(a),

and an iteration only reads U, L and the labels of the points that it skips.

**Blind iterations.**  While centres move far, hardly any point passes its tests, and bounds only
cost time.  Then the assignment is Lloyd's, and the bounds are dropped.  Whether bounds pay again is
estimated from the last known bounds of a few points and from the current movements.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.geometry import Padding

__all__ = ["Hamerly"]

# The number of points whose bounds are used for that estimate.
SAMPLE = 1024

# The bounds of a point cost about as much time as this many distances of a scan.
COST = 4.0


class Hamerly:
    """The bounds of all points: two float32 per point, in the unit of the padding.

    Attributes
    ----------
    upper, lower : ndarray of shape (n,), float32
        U and L.
    moved, total_drift : ndarray of shape (k,), float64
        M and P.
    padding : Padding
        Every computed bound passes through it.
    known : bool
        Whether the bounds are valid: not before the first assignment, nor after a blind one.
    sample : tuple of ndarray
        The last known u and l - u of a few points.
    """

    def __init__(self, n_samples: int, k: int, padding: Padding) -> None:
        self.upper = np.full(n_samples, np.inf, dtype=np.float32)
        self.lower = np.zeros(n_samples, dtype=np.float32)
        self.moved, self.total_drift = np.zeros((2, k))
        self.padding = padding
        self.known = False
        self.sample = np.zeros(1), np.full(1, np.inf)

    def move(self, moved: NDArray, half_nearest: NDArray, labels: NDArray) -> bool:
        """Add the movements of the centres, and return whether bounds pay.

        Parameters
        ----------
        moved : ndarray of shape (k,)
            An upper bound on the movement of each centre.
        half_nearest : ndarray of shape (k,)
            s.
        labels : ndarray of shape (n,)
        """
        if self.known:
            sample_rows = slice(None, None, max(1, len(labels) // SAMPLE))
            upper, lower = self.now(labels, sample_rows)
            # If both are infinite, the difference is NaN, which exceeds no movement.
            with np.errstate(invalid="ignore"):
                self.sample = upper, lower - upper
        u, slack = self.sample
        farthest = int(moved.argmax())
        others = np.full(len(moved), moved[farthest])
        others[farthest] = np.delete(moved, farthest).max(initial=0.0)
        # Unknown bounds will be measured after this move, so their sums start at 0.  (After a move
        # to very distant rows, larger sums would cost float32 precision.)
        self.moved = self.known * (self.moved + moved)
        self.total_drift = self.known * (self.total_drift + others)
        # Centres slow down, so the next move is estimated as half of this one.
        spent = 0.5 * np.median(moved + others)
        passing = np.mean((slack > spent) | (u < np.median(half_nearest)))
        pays = passing > 0.05 + COST / len(moved)
        self.known &= bool(pays)
        return bool(pays)

    def tests(self, half_nearest: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Return M + P, s - M and M of all clusters as float32, rounded in the safe direction."""
        # Numbers beyond the range of float32 become infinite without a warning.
        with np.errstate(over="ignore"):
            # The factor also covers the rounding of L - U in the kernel.
            spent = ((self.moved + self.total_drift) * (1.0 + 2.0**-21)).astype(np.float32)
            near = (half_nearest - self.moved).astype(np.float32)
            moved_below = (self.moved * (1.0 - 2.0**-22)).astype(np.float32)
        return spent, np.nextafter(near, np.float32(-np.inf)), moved_below

    def now(
        self, labels: NDArray, rows: slice = slice(None)
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the current u and l of some points, given all labels."""
        a = labels[rows]
        return self.upper[rows] + self.moved[a], self.lower[rows] - self.total_drift[a]
