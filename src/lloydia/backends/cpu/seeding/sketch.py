r"""The sketch: a copy of the rows in bytes, which bounds their distances from below.

**Projection.**  Let ``y = s (x - m)`` be a framed row, and V a matrix of d rows and few columns,
with a spectral norm of at most 1.  Then I - V V' is positive semidefinite; with B its root,

    |y - z|^2  =  |V'y - V'z|^2 + |B y - B z|^2  >=  |V'y - V'z|^2 + (|B y| - |B z|)^2,

and ``|B y|^2 = |y|^2 - |V'y|^2``.  So the vectors ``(V'y, |B y|)`` are no farther apart than the
rows.  V spans the directions in which a sample of the rows varies most.  It need not be orthogonal.
Rows whose variation needs more directions than WIDTH are their own sketch: :func:`spread` decides.

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

import math

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.simd.lanes import OCTET, ROWS, products
from lloydia.backends.cpu.simd.sketch_rows import CANDIDATES, GROUP

__all__ = ["WIDTH", "Sketch", "limit_of"]

# Numbers of a sketch that is not the whole row.  With 48 of them, rows of rank 48 and noise of a
# tenth to a third of their spread left 1.1 to 1.3 times as many candidates to evaluate.
WIDTH = 64

# Up to here (d + 2) u is small, as the error assumes, and products are below 2**31.
MAX_FEATURES = 2**16

# Rows that the directions are taken from, and how often they are multiplied by the covariance.
SAMPLE, POWERS = 1024, 2

# Rows of the sample that stand for seeds and for candidates where the sketch is chosen, and the
# columns whose products take as long as evaluating one pair; features add a quarter as much.
SEEDS, PROBES, PAIR, PAIR_FEATURE = 256, 32, 3000, 16

# Parts of the largest number of the sample that may be the largest of a sketch.
CUTS = 2.0 ** -np.arange(0.0, 4.0, 0.5)

# Columns of V that are multiplied at a time.
SINGLES = 2 * OCTET

# Numbers of a sketch are up to TOP; rows' bytes are larger by OFFSET.
TOP, OFFSET = 127.0, 128

# Adding this to a float32 of magnitude up to 2**22 rounds it to an integer, in the low bits.
ROUNDER = np.float32(1.5 * 2.0**23)

# What limits lose when they are rounded.
RELATIVE = 2.0**-20

# The part of the rows whose error is below the one that limits are kept for.
MOST = 0.998

LOWEST = np.float32(-(2.0**30) * 1.9)


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
        n, d = dataset.n_samples, dataset.n_features
        self.dataset, self.pays = dataset, True
        sample = dataset.rows(np.arange(0, n, -(-n // SAMPLE))).astype(np.float64)
        origin = sample.mean(axis=0)
        sample -= origin
        reach = math.sqrt(np.square(sample).sum(axis=1).max())
        exponent = math.frexp(reach)[1] if math.isfinite(reach) and reach > 0 else 0
        scale = math.ldexp(1.0, -min(max(exponent, -1000), 1000))
        sample *= scale
        V, offset = directions(sample, d), 0.0
        if len(V):
            short = shortened(sample, V)
            if columns >= d and spread(sample, short):
                V = V[:0]
            else:
                offset = float(short[:, -1].mean())
                short[:, -1] -= offset
                sample = short
        self.frame = origin, scale, V, offset, quantum(sample)
        n_groups = -(-n // GROUP)
        self.n_quads = (sample.shape[1] + 3) // 4
        groups = aligned((n_groups * self.n_quads, GROUP), np.int32)
        groups = groups.reshape(n_groups, self.n_quads, GROUP)
        self.rows = groups, *np.zeros((2, n_groups * GROUP), np.float32)
        self.limits = np.zeros(n_groups * GROUP, np.int32)

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
        limits = np.empty_like(self.limits)
        self.write_limits(nearest, error, limits)
        return limits

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
        room = m + CANDIDATES
        packed, starts = np.zeros((room, self.n_quads), np.int32), np.zeros(room, np.int32)
        errors = np.empty(m, np.float32)
        self.dataset.each_block(
            lambda t, a, b: pack_candidates(values, a, b, self.frame, packed, starts, errors),
            3.0 * self.dataset.n_features,
            m,
        )
        # NaN, where a candidate is too far, stays NaN.
        return (packed, starts), errors.max()


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


def shortened(sample: NDArray[np.float64], V: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return ``(V'y, |B y|)`` of some rows."""
    short = sample @ V.astype(np.float64)
    rest = np.square(sample).sum(axis=1) - np.square(short).sum(axis=1)
    short[:, -1] = np.sqrt(np.maximum(rest, 0.0))
    return short


def spread(sample: NDArray[np.float64], short: NDArray[np.float64]) -> bool:
    """Return whether so many directions matter that whole rows are the better sketch.

    Some rows of the sample are taken for seeds and some for candidates.  The pairs that sketches of
    WIDTH columns leave, beyond twice those that are nearer, must take less time than the products
    of all the columns.
    """
    seeds, rest = np.split(np.arange(len(sample)), [min(SEEDS, len(sample) // 2)])
    probes = rest[-PROBES:]

    def squares(rows: NDArray[np.float64], of: NDArray[np.int64]) -> NDArray[np.float64]:
        norms = np.square(rows).sum(axis=1)
        return norms[rest, None] + norms[of] - 2.0 * (rows[rest] @ rows[of].T)

    near = squares(sample, seeds).min(axis=1, keepdims=True, initial=np.inf)
    left, nearer = ((squares(rows, probes) < near).mean() for rows in (short, sample))
    d = sample.shape[1]
    return bool((left - 2.0 * nearer) * (PAIR + PAIR_FEATURE * d) > d - WIDTH)


def quantum(sample: NDArray[np.float64]) -> float:
    """Return q: the one that leaves the smallest errors in a sample."""
    some = sample[::4]
    top = float(np.abs(some).max())
    best, least = 1.0, math.inf
    for q in top * CUTS / TOP if top > 0 else ():
        error = np.square(np.clip(np.rint(some / q), -TOP, TOP) * q - some).sum(axis=1)
        mean = float(np.sqrt(error).mean())
        if mean < least:
            best, least = float(np.float32(q)), mean
    return max(best, 2.0**-100)


@subroutine
def project(X, at, m, frame, y, v):
    """Write framed rows, ROWS of them from `at` on, to `y`, and V'y, or y, to `v`."""
    origin, scale, V, _, _ = frame
    d = X.shape[1]
    for r in range(m):
        for f in range(d):
            y[r, f] = np.float32((np.float64(X[at + r, f]) - origin[f]) * scale)
        for f in range(d if len(V) == 0 else 0):
            v[r, f] = y[r, f]
    if len(V) > 0:
        for p in range(0, WIDTH, SINGLES):
            columns, to = V.ctypes.data + 4 * p, v.ctypes.data + 4 * p
            products(y.ctypes.data, d, columns, V.strides[0], to, v.strides[0])


@subroutine
def sketch(y, v, frame, numbers):
    """Write the numbers of the sketch of a framed row; return N and ``E / q``.

    `v` is V'y, or the row itself, which is its own sketch, and then anything.
    """
    _, _, V, offset, q = frame
    d, square = len(y), 0.0
    for f in range(d):
        square += np.float64(y[f]) * np.float64(y[f])
    norm = np.sqrt(square) * (1.0 + (d + 8) * 2.0**-50)
    error = norm * 2.0**-23
    if len(V) > 0:
        of_products = (d + 8) * 2.0**-24 * WIDTH**0.5 * norm * (1.0 + 2.0**-6)
        delta = of_products * (2.0 * norm + of_products) + square * (d + 8) * 2.0**-50
        rest = square
        for p in range(WIDTH - 1):
            rest -= np.float64(v[p]) * np.float64(v[p])
        rest = np.sqrt(rest if rest > 0.0 else 0.0)
        root = np.sqrt(delta)
        v[WIDTH - 1] = np.float32(rest - offset)
        error += of_products + (rest + offset) * 2.0**-23
        if delta > 0.0:
            error += delta / (rest if rest > root else root)
    width, top, inverse = (WIDTH if len(V) > 0 else d), np.float32(TOP), np.float32(1.0 / q)
    residual = 0.0
    whole = np.int64(0)
    for p in range(width):
        w = v[p] * inverse
        w = w if w < top else top
        w = w if w > -top else -top
        w = (w + ROUNDER) - ROUNDER
        numbers[p] = np.int64(w)
        whole += numbers[p] * numbers[p]
        lost = np.float64(v[p]) - np.float64(w) * q
        residual += lost * lost
    error = (error + np.sqrt(residual)) * (1.0 + 2.0**-20) / q + 2.0**-60
    return np.float32(whole), np.float32(error)


@subroutine
def limit_of(D, square, own, unit, d, error):
    """Return what scores must be above, of a row with this D, N and ``E / q``."""
    root = np.sqrt(D) * (1.0 + (d + 8) * 2.0**-52) + 2.0**-500
    t = np.float32((unit * root + np.float64(own)) * (1.0 + 2.0**-20) + 2.0**-60) + error
    far = t * t
    limit = np.float32(0.5) * (square - far) - np.float32(RELATIVE) * (square + far)
    limit -= np.float32(2.0)
    # Not a number, or minus infinity.
    return np.int32(limit if limit > LOWEST else LOWEST)


@kernel(**LEAN)
def write_limits(squares, errors, nearest, first, last, unit, d, error, limits):
    """Write the limits of rows `first` to `last`; see :class:`Sketch`."""
    for i in upto(first, last):
        limits[i] = limit_of(nearest[i], squares[i], errors[i], unit, d, error)


@subroutine
def quad(numbers, at, width, more):
    """Return four bytes from `at` on, each larger by `more`, in 32 bits."""
    bits = np.int64(0)
    for b in range(4):
        number = numbers[at + b] if at + b < width else 0
        bits |= ((number + more) & 0xFF) << (8 * b)
    return np.int32(bits)


@kernel
def pack_groups(X, first, last, frame, groups, squares, errors):
    """Write groups ``first`` to ``last``; the parameters are those of :class:`Sketch`."""
    n, d = X.shape
    width = WIDTH if len(frame[2]) > 0 else d
    y, v = np.zeros((ROWS, d), np.float32), np.zeros((ROWS, width), np.float32)
    numbers = np.empty(width, np.int64)
    for at in range(first * GROUP, min(last * GROUP, n), ROWS):
        m = min(ROWS, n - at)
        project(X, at, m, frame, y, v)
        for r in range(m):
            i = at + r
            squares[i], errors[i] = sketch(y[r], v[r], frame, numbers)
            for j in range(groups.shape[1]):
                groups[i // GROUP, j, i % GROUP] = quad(numbers, 4 * j, width, OFFSET)


@kernel
def pack_candidates(X, first, last, frame, packed, starts, errors):
    """Write the bytes of candidates, where their scores start, and ``E / q``."""
    d = X.shape[1]
    width = WIDTH if len(frame[2]) > 0 else d
    y, v = np.zeros((ROWS, d), np.float32), np.zeros((ROWS, width), np.float32)
    numbers = np.empty(width, np.int64)
    for at in range(first, last, ROWS):
        m = min(ROWS, last - at)
        project(X, at, m, frame, y, v)
        for r in range(m):
            c = at + r
            _, errors[c] = sketch(y[r], v[r], frame, numbers)
            square = total = np.int64(0)
            for p in range(width):
                square += numbers[p] * numbers[p]
                total += numbers[p]
            # Half of an odd square is rounded down: the score is not too low.
            starts[c] = np.int32(-(square // 2) - OFFSET * total)
            for j in range(packed.shape[1]):
                packed[c, j] = quad(numbers, 4 * j, width, 0)
