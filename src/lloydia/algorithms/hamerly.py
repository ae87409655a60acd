r"""Hamerly: one upper and one lower bound a point (Hamerly 2010, "Making k-means even faster").

For a point x with label a keep u >= d(x, c_a) and l <= d(x, c_j) for every other j.

* When the centres move, d(x, c_a) grows by at most moved(a), and every other distance shrinks by
  at most the largest movement among the others:  u += moved(a),  l -= max_{j != a} moved(j).
* With s(a) half the distance from c_a to its nearest other centre, d(x, c_j) >= 2 s(a) - d(x, c_a).

So if u < max(l, s(a)), centre a is still the nearest, and strictly: x is skipped.  If not, u is
replaced by the distance itself; if the test still fails, x is scanned, which gives the label, u
and l anew.

**No bound is moved.**  What a move does to u and l depends on the label alone, so it is added up a
cluster: M(a) is how far centre a has moved since the run began, P(a) the sum of the largest
movements of the others.  A point keeps ``U = u - M(a)`` and ``L = l + P(a)`` of the moment it was
measured, and

    u < l     is    L - U > M(a) + P(a),
    u < s(a)  is    U < s(a) - M(a):

an iteration only reads U, L and the labels of the points that it skips.

**Blind iterations.**  While centres still move far, hardly a point passes its tests, and bounds
only cost.  Then an assignment is Lloyd's, and the bounds are forgotten; from what they were for a
few points, and how far the centres moved this time, it is guessed when they pay again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.geometry import Padding

__all__ = ["Hamerly"]

# Points that guesses are made from.
SAMPLE = 1024

# A point's bounds cost what about this many distances of a scan do, and a little.
COST = 4.0


class Hamerly:
    """The bounds of every point: two float32, in the unit of the padding.

    Attributes
    ----------
    upper, lower : ndarray of shape (n,), float32
        U and L.
    moved, passed : ndarray of shape (k,), float64
        M and P.
    padding : Padding
        Every computed bound passes through it.
    known : bool
        Whether the bounds hold: not before the first assignment, nor after a blind one.
    sample : tuple of ndarray
        u and l - u of a few points, of when they were last known.
    """

    def __init__(self, n_samples: int, k: int, padding: Padding) -> None:
        self.upper = np.full(n_samples, np.inf, dtype=np.float32)
        self.lower = np.zeros(n_samples, dtype=np.float32)
        self.moved, self.passed = np.zeros((2, k))
        self.padding = padding
        self.known = False
        self.sample = np.zeros(1), np.full(1, np.inf)

    def move(self, moved: NDArray, half_nearest: NDArray, labels: NDArray) -> bool:
        """Add a move of the centres, and return whether bounds pay.

        Parameters
        ----------
        moved : ndarray of shape (k,)
            Upper bounds on how far each centre went.
        half_nearest : ndarray of shape (k,)
            s.
        labels : ndarray of shape (n,)
        """
        if self.known:
            few = slice(None, None, max(1, len(labels) // SAMPLE))
            upper, lower = self.now(labels, few)
            # Where both are infinite nothing is known: NaN exceeds no movement.
            with np.errstate(invalid="ignore"):
                self.sample = upper, lower - upper
        u, slack = self.sample
        farthest = int(moved.argmax())
        others = np.full(len(moved), moved[farthest])
        others[farthest] = np.delete(moved, farthest).max(initial=0.0)
        # Bounds that are not known will be of the moment after this move, and float32 holds little
        # of them beside a move to rows that are very far away.
        self.moved = self.known * (self.moved + moved)
        self.passed = self.known * (self.passed + others)
        # Centres slow down, so the next move counts for half of this one.
        spent = 0.5 * np.median(moved + others)
        passing = np.mean((slack > spent) | (u < np.median(half_nearest)))
        pays = passing > 0.05 + COST / len(moved)
        self.known &= bool(pays)
        return bool(pays)

    def tests(self, half_nearest: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Return M + P, s - M and M of every cluster as float32, rounded the safe way."""
        # What float32 cannot hold becomes infinite, or its largest number, without a warning.
        with np.errstate(over="ignore"):
            # The kernel's L - U is rounded too.
            spent = ((self.moved + self.passed) * (1.0 + 2.0**-21)).astype(np.float32)
            near = (half_nearest - self.moved).astype(np.float32)
            least = (self.moved * (1.0 - 2.0**-22)).astype(np.float32)
        return spent, np.nextafter(near, np.float32(-np.inf)), least

    def now(
        self, labels: NDArray, rows: slice = slice(None)
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return u and l of some points, given all labels."""
        a = labels[rows]
        return self.upper[rows] + self.moved[a], self.lower[rows] - self.passed[a]
