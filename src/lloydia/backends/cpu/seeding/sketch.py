r"""The sketch: a short bfloat16 copy of the rows, which bounds their distances from below.

**Projection.**  Let ``y = s (x - m)`` be a framed row, and V a matrix of d rows and few columns,
with a spectral norm of at most 1.  Then I - V V' is positive semidefinite; with B its root,

    |y - z|^2  =  |V'y - V'z|^2 + |B y - B z|^2  >=  |V'y - V'z|^2 + (|B y| - |B z|)^2,

and ``|B y|^2 = |y|^2 - |V'y|^2``.  So the vectors ``(V'y, |B y|)`` are no farther apart than the
rows.  V spans the directions in which a sample of the rows varies most, so that they are hardly
nearer either.  It need not be orthogonal.  Rows of at most WIDTH features are their own sketch.

**Error.**  The sketch is h, rounded to bfloat16, and E bounds ``|h - (V'y, |B y|)|`` plus what
framing rounds.  A product of y with a column is off by ``(d + 2) u |y|`` times its norm, u =
2**-24, so that V'y is off by ``e = (d + 2) u |y| WIDTH^(1/2)`` and its square by
``delta = e (2 |y| + e)``; |B y| then by no more than the root of delta, or delta / |B y|.  What
bfloat16 rounds off is measured.  So for a row x and a candidate c

    s |x - c|  >=  |h_x - h_c| - E_x - E_c.

**Test.**  With D(x) the row's D to its nearest seed, let t be at least ``s D(x)^(1/2) + E_x`` by
more than what rounds in a canonical D (2**-500 covers squares that underflow), and
``L = (t + E_c)^2``.  Then ``|h_x - h_c|^2 >= L`` implies ``D(x, c) > D(x)`` canonically.  As
scores, with ``N = |h_x|^2``, that is

    h_x.h_c - |h_c|^2 / 2  <=  (N - L) / 2,

and the products are off by no more than ``DEPTH u (N / 2 + |h_c|^2)``.  What is not a number fails
the test, and is evaluated: N and E of a sketch whose square is FAR or more are NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.runtime.compiled import kernel, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.simd.dot_pairs import depth_of
from lloydia.backends.cpu.simd.lanes import OCTET, ROWS, products
from lloydia.backends.cpu.simd.sketch_rows import GROUP

__all__ = ["WIDTH", "Sketch", "threshold", "write_limits"]

# Numbers of a sketch: 128 bytes a row, two cache lines.  With 48 of them, rows of rank 48 and noise
# of a tenth to a third of their spread left 1.1 to 1.3 times as many candidates to evaluate.
WIDTH = 64

# Up to here (d + 2) u is small, as the error assumes.
MAX_FEATURES = 2**16

# Rows that the directions are taken from, and how often they are multiplied by the covariance.
SAMPLE, POWERS = 1024, 2

# Columns of V that are multiplied at a time.
SINGLES = 2 * OCTET

# Squares from here on could overflow what is computed of them.
FAR = 2.0**100

# DEPTH u, rounded up, and what limits lose when they are rounded.
RELATIVE = (depth_of(WIDTH // 2) + 16) * 2.0**-23


class Sketch:
    """The sketches of all rows, and those of candidates.

    Parameters
    ----------
    dataset : Dataset
        Dense.

    Attributes
    ----------
    frame : tuple
        m of shape (d,), s, and V of shape (d, WIDTH), the last column 0, or (0, WIDTH) for rows
        that are their own sketch.
    n_pairs : int
        Pairs of columns: half of WIDTH, or of fewer features.
    rows : tuple
        The groups of :mod:`sketch_rows`, shape (n_groups, n_pairs, GROUP), int32; N and E, float32;
        anything after the last row.
    thresholds : ndarray (n_groups * GROUP,), float32
        t of each row.
    pays : bool
        Whether rounds of k-means|| found that it excludes enough.
    """

    def __init__(self, dataset: Dataset) -> None:
        n, d = dataset.n_samples, dataset.n_features
        self.dataset, self.pays = dataset, True
        sample = dataset.rows(np.arange(0, n, -(-n // SAMPLE))).astype(np.float64)
        origin = sample.mean(axis=0)
        sample -= origin
        reach = math.sqrt(np.square(sample).sum(axis=1).max())
        exponent = math.frexp(reach)[1] if math.isfinite(reach) and reach > 0 else 0
        scale = math.ldexp(1.0, -min(max(exponent, -1000), 1000))
        self.frame = origin, scale, directions(sample * scale, d)
        n_groups = -(-n // GROUP)
        self.n_pairs = (min(d, WIDTH) + 1) // 2
        groups = aligned((n_groups * self.n_pairs, GROUP), np.int32)
        groups = groups.reshape(n_groups, self.n_pairs, GROUP)
        self.rows = groups, *np.zeros((2, n_groups * GROUP), np.float32)
        self.thresholds = np.zeros(n_groups * GROUP, np.float32)

    def pack(self, nearest: NDArray[np.float64]) -> None:
        """Write the sketches of all rows, and the thresholds of their D."""
        X, n_groups = self.dataset.X, len(self.rows[0])
        self.dataset.each_block(
            lambda t, a, b: pack_groups(X, a, b, *self.frame, *self.rows, nearest, self.thresholds),
            3.0 * GROUP * self.dataset.n_features,
            n_groups,
        )

    def load(self, values: NDArray) -> tuple[tuple[NDArray, NDArray], tuple[Any, Any]]:
        """Return the pairs of candidates and where their scores start, and ``(E, absolute)``.

        E is the largest of the candidates, and `absolute` the error of scores that does not depend
        on the row.
        """
        m = len(values)
        packed, starts = np.zeros((m + 1, self.n_pairs), np.int32), np.zeros(m + 1, np.float32)
        squares, errors = np.empty((2, m), np.float32)
        self.dataset.each_block(
            lambda t, a, b: pack_candidates(
                values, a, b, *self.frame, packed, starts, squares, errors
            ),
            3.0 * self.dataset.n_features,
            m,
        )
        # NaN, where a candidate is too far, stays NaN.
        absolute = np.float32(RELATIVE * 2.0 * float(squares.max()) + 2.0**-100)
        return (packed, starts), (errors.max(), absolute)


def directions(sample: NDArray[np.float64], d: int) -> NDArray[np.float32]:
    """Return V of a centred sample: by subspace iteration, and of a norm of at most 1."""
    if d <= WIDTH:
        return np.zeros((0, WIDTH), np.float32)
    # Any directions would do; these are the same in every run.
    basis = np.random.default_rng(0).normal(size=(d, WIDTH - 1))
    for _ in range(POWERS):
        basis = orthogonal(sample.T @ (sample @ basis))
    # What rounded in a basis of very different lengths rounds little in one of equal ones.
    basis = orthogonal(basis)
    V = aligned((d, WIDTH), np.float32)
    # Rounding V makes its norm larger by 2**-24 times the root of WIDTH at most.
    for margin in (2.0**-20, 2.0**-10, 1.0):
        V[:, :-1] = basis * (1.0 - margin)
        wide = V.astype(np.float64)
        # The norm of V'V is at most its largest sum of magnitudes in a row.
        if np.abs(wide.T @ wide).sum(axis=1).max() <= 1.0 - 2.0**-30:
            break
    return V


def orthogonal(basis: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an orthogonal basis of the same space; dependent directions become 0.

    Small matrices keep a linear algebra library from starting its threads, unlike its QR.
    """
    squares, vectors = np.linalg.eigh(basis.T @ basis)
    independent = squares > 1e-12 * squares[-1]
    lengths = np.sqrt(np.where(independent, squares, 1.0))
    return basis @ (vectors * (independent / lengths))


@subroutine
def upper(value):
    """Return the upper half of the bits of a float32, rounded to the nearest: a bfloat16."""
    return ((np.int64(np.float32(value).view(np.int32)) + 0x8000) >> 16) & 0xFFFF


@subroutine
def project(X, at, m, origin, scale, V, y, v):
    """Write framed rows, ROWS of them from `at` on, to `y`, and V'y to `v`."""
    d = X.shape[1]
    for r in range(m):
        for f in range(d):
            y[r, f] = np.float32((np.float64(X[at + r, f]) - origin[f]) * scale)
        for p in range(d if len(V) == 0 else 0):
            v[r, p] = y[r, p]
    if len(V) > 0:
        for p in range(0, WIDTH, SINGLES):
            columns, to = V.ctypes.data + 4 * p, v.ctypes.data + 4 * p
            products(y.ctypes.data, d, columns, V.strides[0], to, v.strides[0])


@subroutine
def sketch(y, v, projected, heads):
    """Write the bits of the sketch of a framed row to `heads`; return N and E.

    `v` is V'y, or the row itself, which is its own sketch, if not `projected`.
    """
    d, square = len(y), 0.0
    for f in range(d):
        square += np.float64(y[f]) * np.float64(y[f])
    norm = np.sqrt(square) * (1.0 + (d + 8) * 2.0**-50)
    error = norm * 2.0**-23
    if projected:
        of_products = (d + 8) * 2.0**-24 * WIDTH**0.5 * norm * (1.0 + 2.0**-6)
        delta = of_products * (2.0 * norm + of_products) + square * (d + 8) * 2.0**-50
        rest = square
        for p in range(WIDTH - 1):
            rest -= np.float64(v[p]) * np.float64(v[p])
        rest = np.sqrt(rest if rest > 0.0 else 0.0)
        root = np.sqrt(delta)
        v[WIDTH - 1] = np.float32(rest)
        error += of_products + rest * 2.0**-23
        if delta > 0.0:
            error += delta / (rest if rest > root else root)
    square = residual = 0.0
    for p in range(WIDTH):
        heads[p] = upper(v[p])
        h = np.float64(np.int32(heads[p] << 16).view(np.float32))
        square += h * h
        residual += (v[p] - h) * (v[p] - h)
    error = (error + np.sqrt(residual)) * (1.0 + 2.0**-20) + 2.0**-60
    if not square < FAR:
        return np.float32(np.nan), np.float32(np.nan)
    return np.float32(square), np.float32(error)


@subroutine
def threshold(D, error, scale, d):
    """Return t of a row."""
    root = np.sqrt(D) * (1.0 + (d + 8) * 2.0**-52) + 2.0**-500
    return np.float32((scale * root + np.float64(error)) * (1.0 + 2.0**-20) + 2.0**-60)


@kernel
def pack_groups(X, first, last, origin, scale, V, groups, squares, errors, nearest, thresholds):
    """Write groups ``first`` to ``last``; the parameters are those of :class:`Sketch`."""
    n, d = X.shape
    y, v = np.zeros((ROWS, d), np.float32), np.zeros((ROWS, WIDTH), np.float32)
    heads = np.empty(WIDTH, np.int64)
    for at in range(first * GROUP, min(last * GROUP, n), ROWS):
        m = min(ROWS, n - at)
        project(X, at, m, origin, scale, V, y, v)
        for r in range(m):
            i = at + r
            squares[i], errors[i] = sketch(y[r], v[r], len(V) > 0, heads)
            thresholds[i] = threshold(nearest[i], errors[i], scale, d)
            for j in range(groups.shape[1]):
                pair = heads[2 * j] | heads[2 * j + 1] << 16
                groups[i // GROUP, j, i % GROUP] = np.int32(pair)


@kernel
def pack_candidates(X, first, last, origin, scale, V, packed, starts, squares, errors):
    """Write the pairs of candidates, where their scores start, ``|h|**2`` and E."""
    d = X.shape[1]
    y, v = np.zeros((ROWS, d), np.float32), np.zeros((ROWS, WIDTH), np.float32)
    heads = np.empty(WIDTH, np.int64)
    for at in range(first, last, ROWS):
        m = min(ROWS, last - at)
        project(X, at, m, origin, scale, V, y, v)
        for r in range(m):
            c = at + r
            squares[c], errors[c] = sketch(y[r], v[r], len(V) > 0, heads)
            starts[c] = np.float32(-0.5) * squares[c]
            for j in range(packed.shape[1]):
                packed[c, j] = np.int32(heads[2 * j] | heads[2 * j + 1] << 16)


@subroutine
def write_limits(squares, thresholds, at, bound, limits):
    """Write what the scores of a group's rows, from `at` on, must be above to be evaluated."""
    error, absolute = bound
    half, relative = np.float32(0.5), np.float32(RELATIVE)
    for p in upto(GROUP):
        square, t = squares[at + p], thresholds[at + p] + error
        far = t * t
        limits[p] = half * (square - far) - relative * (square + far) - absolute
