"""The frame of sketches: the directions that rows are projected on, and the unit of their numbers.

All of it is chosen by a sample of the rows; any choice is safe, see :mod:`sketch`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.seeding.sketch_bytes import TOP, WIDTH

__all__ = ["frame_of"]

# How often the directions are multiplied by the covariance.
POWERS = 2

# Rows of the sample that stand for seeds and for candidates where the sketch is chosen, and the
# columns whose products take as long as evaluating one pair; features add a quarter as much.
SEEDS, PROBES, PAIR, PAIR_FEATURE = 256, 32, 3000, 16

# Parts of the largest number of the sample that may be the largest of a sketch.
CUTS = 2.0 ** -np.arange(0.0, 4.0, 0.5)

Frame = tuple[NDArray[np.float64], float, NDArray[np.float32], float, float]


def frame_of(sample: NDArray[np.float64], columns: int) -> tuple[Frame, int]:
    """Return the frame of rows by a sample of them, which is overwritten, and how many columns.

    Parameters
    ----------
    sample : ndarray of shape (n, d)
    columns : int
        The most that a sketch may have: at least WIDTH, or d if that is less.
    """
    d = sample.shape[1]
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
    return (origin, scale, V, offset, quantum(sample)), sample.shape[1]


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
