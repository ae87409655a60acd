r"""The sketch: a copy of the rows in bytes, which bounds their distances from below.

**Projection.**  Let ``y = s (x - m)`` be a framed row, and V a matrix of d rows and few columns,
with a spectral norm of at most 1.  Then I - V V' is positive semidefinite; with B its root,

    |y - z|^2  =  |V'y - V'z|^2 + |B y - B z|^2  >=  |V'y - V'z|^2 + (|B y| - |B z|)^2,

and ``|B y|^2 = |y|^2 - |V'y|^2``.  So the vectors ``(V'y, |B y|)`` are no farther apart than the
rows.  V spans the directions in which a sample of the rows varies most.  It need not be orthogonal.
If the rows vary in more directions than WIDTH, y itself is sketched, without a projection
(``needs_all_features`` of :mod:`sketch_frame` decides).

**Error.**  The sketch is q h, h a vector of integers up to 127 and q a number for all rows; E
bounds ``|q h - (V'y, |B y|)|`` plus what framing rounds.  A product of y with a column is off by
``(d + 2) u |y|`` times its norm, u = 2**-24, so that V'y is off by ``e = (d + 2) u |y|
WIDTH^(1/2)`` and its square by ``delta = e (2 |y| + e)``; |B y| is then off by at most the root of
delta, and by at most delta / |B y|.  The kernels measure how far the integers are off, by rounding
and by the limit of 127.  So for a row x and a candidate c

    s |x - c|  >=  q |h_x - h_c| - E_x - E_c.

**Test.**  With D(x) the row's D to its nearest seed, let q t be at least ``s D(x)^(1/2) + E_x`` by
more than what rounds in a canonical D (2**-500 covers squares that underflow), and
``L = (t + E_c / q)^2``.  Then ``|h_x - h_c|^2 >= L`` implies ``D(x, c) > D(x)`` canonically.  As
scores, with ``N = |h_x|^2``, that is

    h_x.h_c - |h_c|^2 / 2  <=  (N - L) / 2.

Scores are exact integers: a partial sum of 2**31 or more wraps around, and the whole sum, which is
smaller, wraps back.  Rounding changes a limit by at most RELATIVE (N + L).  If a row or a candidate
is too far from the others, its limit is NaN and becomes the lowest: all its pairs are evaluated.
The bytes of rows are unsigned: 128 is added to their numbers, and the initial score of a candidate
is lower by 128 times the sum of its numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.seeding.sketch_bytes import pack_candidates, pack_groups, write_limits
from lloydia.backends.cpu.seeding.sketch_frame import frame_of
from lloydia.backends.cpu.simd.sketch_rows import CANDIDATES, GROUP

__all__ = ["Sketch"]

# Rows of the sample that the frame is chosen by.
SAMPLE = 1024

# Limits are kept for candidates whose error is at most this quantile of the rows' errors.
ERROR_QUANTILE = 0.998


class Sketch:
    """The sketches of all rows, and those of candidates.

    Parameters
    ----------
    dataset : Dataset
        Dense.
    columns : int
        The largest number of columns of a sketch: at least WIDTH, or the number of features if that
        is less.

    Attributes
    ----------
    frame : tuple
        m of shape (d,); s; V of shape (d, WIDTH) with a last column of zeros, or (0, WIDTH) if rows
        are sketched without a projection; the number that is subtracted from ``|B y|``; and q.
    n_quads : int
        Columns, divided by four.
    rows : tuple
        The groups of :mod:`sketch_rows`, shape (n_groups, n_quads, GROUP), int32; and N and
        ``E / q`` of each row, float32.  Entries after the last row have no meaning.
    error : float32
        ``E / q`` of the rows, its ERROR_QUANTILE.
    limits : ndarray (n_groups * GROUP,), int32
        For each row.  A pair is evaluated if its score is above the row's limit; this holds for
        candidates whose ``E / q`` is at most `error`.
    pays : bool
        Whether the sketch excluded enough pairs in the last rounds of k-means||.
    """

    def __init__(self, dataset: Dataset, columns: int) -> None:
        n = dataset.n_samples
        self.dataset, self.pays = dataset, True
        sample = dataset.rows(np.arange(0, n, -(-n // SAMPLE))).astype(np.float64)
        self.frame, width = frame_of(sample, columns)
        n_groups = -(-n // GROUP)
        self.n_quads = (width + 3) // 4
        groups = aligned((n_groups * self.n_quads, GROUP), np.int32)
        groups = groups.reshape(n_groups, self.n_quads, GROUP)
        self.rows = groups, *np.zeros((2, n_groups * GROUP), np.float32)
        self.limits = self.new_limits()

    @property
    def unit(self) -> float:
        """The factor from a distance to units of the sketch's numbers."""
        return self.frame[1] / self.frame[4]

    def pack(self, nearest: NDArray[np.float64]) -> None:
        """Write the sketches of all rows, and the limits of their D."""
        X, n_groups = self.dataset.X, len(self.rows[0])
        self.dataset.each_block(
            lambda t, a, b: pack_groups(X, a, b, self.frame, *self.rows),
            3.0 * GROUP * self.dataset.n_features,
            n_groups,
        )
        errors = self.rows[2][: len(nearest)]
        self.error = np.float32(np.quantile(errors[:: -(-len(errors) // SAMPLE)], ERROR_QUANTILE))
        self.write_limits(nearest, self.error, self.limits)

    def limits_for(self, nearest: NDArray[np.float64], error: np.float32) -> NDArray[np.int32]:
        """Return the limits for candidates of an error; those of larger errors are not kept."""
        if error <= self.error:
            return self.limits
        limits = self.new_limits()
        self.write_limits(nearest, error, limits)
        return limits

    def new_limits(self) -> NDArray[np.int32]:
        """Return limits that no score is above; those after the last row are never changed."""
        return np.full(len(self.rows[0]) * GROUP, 2**31 - 1, np.int32)

    def write_limits(
        self, nearest: NDArray[np.float64], error: np.float32, limits: NDArray[np.int32]
    ) -> None:
        """Write the limits of all rows for candidates of an error."""
        _, squares, errors = self.rows
        d, unit = self.dataset.n_features, self.unit
        self.dataset.each_block(
            lambda t, a, b: write_limits(
                squares, errors, nearest, a, b, unit, d, error, limits
            ), 3.0,
        )  # fmt: skip

    def load(self, values: NDArray) -> tuple[tuple[NDArray, NDArray], np.float32]:
        """Return the bytes and initial scores of candidates, and the largest of their ``E / q``."""
        m = len(values)
        # Kernels also read entries after the last candidate; their scores are above no limit.
        room = m + CANDIDATES
        packed = np.zeros((room, self.n_quads), np.int32)
        initial_scores = np.full(room, -(2**31), np.int32)
        errors = np.empty(m, np.float32)
        self.dataset.each_block(
            lambda t, a, b: pack_candidates(
                values, a, b, self.frame, packed, initial_scores, errors
            ),
            3.0 * self.dataset.n_features,
            m,
        )
        # The largest is NaN if a candidate is too far away, whose error is NaN.
        return (packed, initial_scores), errors.max()
