r"""The sketch: a copy of the rows in bytes, which bounds their distances from below.

**Projection.**  Let ``y = s (x - m)`` be a framed row, and V a matrix of d rows and few columns,
with a spectral norm of at most 1.  Then I - V V' is positive semidefinite; with B its root,

    |y - z|^2  =  |V'y - V'z|^2 + |B y - B z|^2  >=  |V'y - V'z|^2 + (|B y| - |B z|)^2,

and ``|B y|^2 = |y|^2 - |V'y|^2``.  So the vectors ``(V'y, |B y|)`` are no farther apart than the
rows.  V spans the directions in which a sample of the rows varies most.  It need not be orthogonal.
Rows whose variation needs more directions than WIDTH are their own sketch: ``spread`` of
:mod:`sketch_frame` decides.

**Error.**  The sketch is q h, h a vector of integers up to 127 and q a number for all rows; E
bounds ``|q h - (V'y, |B y|)|`` plus what framing rounds.  A product of y with a column is off by
``(d + 2) u |y|`` times its norm, u = 2**-24, so that V'y is off by ``e = (d + 2) u |y|
WIDTH^(1/2)`` and its square by ``delta = e (2 |y| + e)``; |B y| then by no more than the root of
delta, or delta / |B y|.  What the integers round or cut off is measured.  So for a row x and a
candidate c

    s |x - c|  >=  q |h_x - h_c| - E_x - E_c.

**Test.**  With D(x) the row's D to its nearest seed, let q t be at least ``s D(x)^(1/2) + E_x`` by
more than what rounds in a canonical D (2**-500 covers squares that underflow), and
``L = (t + E_c / q)^2``.  Then ``|h_x - h_c|^2 >= L`` implies ``D(x, c) > D(x)`` canonically.  As
scores, with ``N = |h_x|^2``, that is

    h_x.h_c - |h_c|^2 / 2  <=  (N - L) / 2.

Products of integers have no error: their sums are below 2**31, and where they are not they wrap
around and back.  What rounds in the limit is RELATIVE of N + L at most.  A limit that is not a
number, as that of a row or candidate too far from the others, becomes the lowest: such pairs are
evaluated.  Bytes of rows have no sign: 128 is added to their numbers, and 128 times the sum of a
candidate's is taken off where its scores start.
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

# Rows that the frame is chosen by.
SAMPLE = 1024

# The part of the rows whose error is below the one that limits are kept for.
MOST = 0.998


class Sketch:
    """The sketches of all rows, and those of candidates.

    Parameters
    ----------
    dataset : Dataset
        Dense.
    columns : int
        That a sketch may have: at least WIDTH, or the number of features if that is less.

    Attributes
    ----------
    frame : tuple
        m of shape (d,), s, V of shape (d, WIDTH), the last column 0, or (0, WIDTH) for rows that
        are their own sketch, what is taken off ``|B y|``, and q.
    n_quads : int
        Columns, divided by four.
    rows : tuple
        The groups of :mod:`sketch_rows`, shape (n_groups, n_quads, GROUP), int32; N and E, float32;
        anything after the last row.
    error : float32
        ``E / q`` of most rows.
    limits : ndarray (n_groups * GROUP,), int32
        What a row's scores with candidates of up to this error must be above to be evaluated.
    pays : bool
        Whether rounds of k-means|| found that it excludes enough.
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
        self.error = np.float32(np.quantile(errors[:: -(-len(errors) // SAMPLE)], MOST))
        self.write_limits(nearest, self.error, self.limits)

    def limits_for(self, nearest: NDArray[np.float64], error: np.float32) -> NDArray[np.int32]:
        """Return the limits of scores with candidates of an error: not kept if it is larger."""
        if error <= self.error:
            return self.limits
        limits = self.new_limits()
        self.write_limits(nearest, error, limits)
        return limits

    def new_limits(self) -> NDArray[np.int32]:
        """Return limits that no score is above; those after the last row stay so."""
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
        """Return the bytes of candidates and where their scores start, and ``E / q``.

        E is the largest of the candidates.
        """
        m = len(values)
        # Kernels read more candidates than there are: no limit is below the scores of those.
        room = m + CANDIDATES
        packed = np.zeros((room, self.n_quads), np.int32)
        starts = np.full(room, -(2**31), np.int32)
        errors = np.empty(m, np.float32)
        self.dataset.each_block(
            lambda t, a, b: pack_candidates(values, a, b, self.frame, packed, starts, errors),
            3.0 * self.dataset.n_features,
            m,
        )
        # NaN, where a candidate is too far, stays NaN.
        return (packed, starts), errors.max()
