"""The frame of sketches: whether and how rows are projected, and the unit of their numbers.

A sample of the rows decides; any choice gives valid bounds, see :mod:`sketch`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.seeding.sketch_bytes import TOP, WIDTH
from lloydia.backends.cpu.seeding.sketch_directions import directions, product

__all__ = ["frame_of"]

# Rows of the sample that stand for seeds and for candidates when the projection is chosen.  To
# evaluate a pair of d features takes as long as the products of PAIR + PAIR_FEATURE * d columns.
SEEDS, PROBES, PAIR, PAIR_FEATURE = 256, 32, 3000, 16

# The largest number of a sketch, as a part of the largest of the sample: these parts are tried.
CUTS = 2.0 ** -np.arange(0.0, 4.0, 0.5)

Frame = tuple[NDArray[np.float64], float, NDArray[np.float32], float, float]


def frame_of(sample: NDArray[np.float64], columns: int) -> tuple[Frame, int]:
    """Return the frame of the rows, by a sample of them, and the number of columns of a sketch.

    Parameters
    ----------
    sample : ndarray of shape (n, d)
        It is overwritten.
    columns : int
        The largest number of columns: at least WIDTH, or d if that is less.
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
        short = projected(sample, V)
        if columns >= d and needs_all_features(sample, short):
            V = V[:0]
        else:
            offset = float(short[:, -1].mean())
            short[:, -1] -= offset
            sample = short
    return (origin, scale, V, offset, quantum(sample)), sample.shape[1]


def projected(sample: NDArray[np.float64], V: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return ``(V'y, |B y|)`` of some rows."""
    short = product(sample, V).astype(np.float64)
    rest = np.square(sample).sum(axis=1) - np.square(short).sum(axis=1)
    short[:, -1] = np.sqrt(np.maximum(rest, 0.0))
    return short


def needs_all_features(sample: NDArray[np.float64], short: NDArray[np.float64]) -> bool:
    """Return whether the rows vary in so many directions that a sketch needs all features.

    Some rows of the sample stand for seeds and some for candidates.  All features are needed if the
    pairs that sketches of WIDTH columns leave to evaluate, minus twice the pairs that are nearer,
    take longer than the products of the other columns.
    """
    seeds, rest = np.split(np.arange(len(sample)), [min(SEEDS, len(sample) // 2)])
    probes = rest[-PROBES:]

    def squares(rows: NDArray[np.float64], of: NDArray[np.int64]) -> NDArray[np.float64]:
        norms = np.square(rows).sum(axis=1)
        return norms[rest, None] + norms[of] - 2.0 * product(rows[rest], rows[of].T)

    near = squares(sample, seeds).min(axis=1, keepdims=True, initial=np.inf)
    left, nearer = ((squares(rows, probes) < near).mean() for rows in (short, sample))
    d = sample.shape[1]
    return bool((left - 2.0 * nearer) * (PAIR + PAIR_FEATURE * d) > d - WIDTH)


def quantum(sample: NDArray[np.float64]) -> float:
    """Return the q with the smallest errors in a sample."""
    some = sample[::4]
    top = float(np.abs(some).max())
    best, least = 1.0, math.inf
    for q in top * CUTS / TOP if top > 0 else ():
        error = np.square(np.clip(np.rint(some / q), -TOP, TOP) * q - some).sum(axis=1)
        mean = float(np.sqrt(error).mean())
        if mean < least:
            best, least = float(np.float32(q)), mean
    return max(best, 2.0**-100)
