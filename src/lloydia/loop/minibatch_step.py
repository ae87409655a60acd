"""One step of mini-batch k-means (Sculley 2010, "Web-scale k-means clustering") on any engine.

The rows of a batch are assigned to the centres c_j.  m_j is the mean of the batch's rows of cluster
j as a fit would compute it, and w_j is the sum of their weights.  W_j is the sum of the weights of
all earlier rows of cluster j.  The step is

    c_j <- (W_j c_j + w_j m_j) / (W_j + w_j),   W_j <- W_j + w_j

in float64.  Each operation is rounded once, and the result once more to the type of the data.  This
is Sculley's gradient step, with the rate 1 / W_j of each centre, for all rows of a cluster at once.

The engine computes labels and means as the contract defines them.  Everything else is computed here
on the host, in one fixed order, so every engine gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.data.arrays import on_host
from lloydia.data.device_arrays import rows_of
from lloydia.exact.sums import total_grid

__all__ = ["Centers", "Draw", "Smoothed", "reassigned", "sample", "stepped"]

# Weights above 2**LARGEST are scaled down before they are multiplied by centres.
LARGEST = 300


@dataclass(frozen=True)
class Centers:
    """Centres and the weights of their rows.

    Attributes
    ----------
    values : ndarray of shape (k, d)
    counts : ndarray of shape (k,), float64
        For each centre, the sum of the weights of the rows assigned to it so far.
    since : int
        Number of rows since the last search for centres with few rows.
    """

    values: NDArray
    counts: NDArray[np.float64]
    since: int = 0

    @property
    def n_distinct(self) -> int:
        """The number of distinct centres; of equal centres only the first gets rows."""
        # A set of bytes takes a third of the time of sorted rows; adding 0.0 turns -0.0 into 0.0.
        return len({center.tobytes() for center in self.values + 0.0})


class Draw:
    """Draws rows with replacement, with probability proportional to their weights.

    Parameters
    ----------
    n_samples : int
    weights : ndarray of shape (n_samples,), float64, or None
    """

    def __init__(self, n_samples: int, weights: NDArray[np.float64] | None) -> None:
        self.n_samples = n_samples
        self.cumulative: NDArray[np.int64] | None = None
        if weights is not None:
            bits, exponent = total_grid(n_samples, float(weights.max()))
            terms = np.rint(np.ldexp(weights, bits - exponent)).astype(np.int64)
            self.cumulative = np.cumsum(terms)

    def rows(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the index of a row for each fraction u in [0, 1).

        It is the first row whose cumulative weight, an integer, exceeds the integer part of u times
        the total weight.
        """
        if self.cumulative is None:
            return np.minimum((fractions * self.n_samples).astype(np.int64), self.n_samples - 1)
        total = self.cumulative[-1]
        targets = np.minimum((fractions * float(total)).astype(np.int64), total - 1)
        return np.searchsorted(self.cumulative, targets, side="right").astype(np.int64)


def sample(
    X: Any, weights: NDArray | None, size: int, random_state: RandomState
) -> tuple[Any, NDArray | None]:
    """Draw rows of positive weight uniformly, with replacement; return them and their weights."""
    if weights is None:
        return rows_of(X, random_state.randint(0, X.shape[0], size)), None
    positive = np.flatnonzero(weights > 0)
    rows = positive[random_state.randint(0, len(positive), size)]
    return rows_of(X, rows), weights[rows]


def stepped(
    engine: Engine, weights: NDArray[np.float64] | None, centers: Centers
) -> tuple[Centers, float]:
    """Return the centres after a batch, and the inertia of the batch before the update.

    Parameters
    ----------
    engine : Engine
        Holds the rows of the batch.
    weights : ndarray of shape (n,), float64, or None
        Weights of the rows; they are added in the order of the rows.
    centers : Centers
        The centres before the batch.

    Raises
    ------
    ValueError
        If counts and weights add up to infinity.
    """
    old, counts = centers.values, centers.counts
    fresh: NDArray
    engine.start(old, "lloyd", empty_stops=False, max_iter=1)
    report = engine.iterate(True).result()
    engine.rewind(report.iteration)
    if weights is None:
        fresh = engine.counts().astype(np.float64)
    else:
        fresh = np.bincount(on_host(engine.labels()), weights=weights, minlength=len(old))
    with np.errstate(over="ignore"):
        means, sums = on_host(engine.centers()), counts + fresh
    if not np.isfinite(sums).all():
        raise ValueError(
            "counts_ and the weights of the rows add up to infinity: scale the weights down."
        )
    # Products with huge weights would overflow; scaling by a power of two keeps ratios exact.
    exponent = -np.maximum(np.frexp(sums)[1] - LARGEST, 0)
    before, added = (np.ldexp(each, exponent)[:, None] for each in (counts, fresh))
    with np.errstate(invalid="ignore"):
        moved = old * before + means * added
        moved = (moved / np.ldexp(sums, exponent)[:, None]).astype(old.dtype)
    assert report.inertia is not None
    values = np.where(fresh[:, None] > 0, moved, old)
    return Centers(values, sums, centers.since + engine.n_samples), float(report.inertia)


def reassigned(
    engine: Engine,
    weights: NDArray[np.float64] | None,
    centers: Centers,
    ratio: float,
    random_state: RandomState,
) -> tuple[Centers, int]:
    """Move centres with small counts to rows of the batch; return how many were moved.

    A count is small if it is less than `ratio` times the largest count.  The centres with the
    smallest counts are moved first, and at most half as many as the batch has rows of positive
    weight.  Each is moved to another row of positive weight, drawn uniformly.  A moved centre gets
    the smallest count of the centres that stay, so that it is not moved again at once.
    """
    counts = centers.counts.copy()
    possible = engine.positive_rows(engine.n_samples)
    few = np.flatnonzero((counts < ratio * counts.max()) & (counts < counts.max()))
    few = few[np.argsort(counts[few], kind="stable")][: len(possible) // 2]
    if len(few) == 0:
        return centers, 0
    few.sort()
    rows = possible[random_state.choice(len(possible), size=len(few), replace=False)]
    values = centers.values.copy()
    values[few] = engine.rows(rows)
    counts[few] = np.delete(counts, few).min()
    return Centers(values, counts), len(few)


class Smoothed:
    """The exponentially weighted average of the batches' mean inertia, and its least value so far.

    Parameters
    ----------
    share : float
        Rows of a batch divided by all rows (plus 1, as in scikit-learn).
    """

    def __init__(self, share: float) -> None:
        self.rate = min(2.0 * share, 1.0)
        self.value: float | None = None
        self.least = np.inf
        self.since = 0

    def add(self, inertia: float) -> None:
        """Add the mean inertia of a batch."""
        if self.value is None:
            self.value = inertia
        else:
            self.value = self.value * (1.0 - self.rate) + inertia * self.rate
        if self.value < self.least:
            self.least, self.since = self.value, 0
        else:
            self.since += 1
