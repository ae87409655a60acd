"""k distinct rows, with probability proportional to their weights (Forgy 1965)."""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.seeding.running_sums import RunningSums

__all__ = ["random", "uniform_choice"]


def random(engine: Engine, k: int, random_state: RandomState) -> NDArray[np.int64]:
    """Return the indices of `k` distinct rows of positive weight; fewer rows repeat.

    The draws are scikit-learn's (``RandomState.choice`` without replacement), so the rows are its
    rows as well.
    """
    weights = engine.seed_weights()
    if weights is None:
        n = engine.n_samples
        return np.resize(uniform_choice(n, min(k, n), random_state), k)
    possible = int((weights > 0).sum())
    rows = random_state.choice(
        len(weights), size=min(k, possible), replace=False, p=weights / weights.sum()
    )
    return np.resize(rows, k)


def uniform_choice(n: int, size: int, random_state: RandomState) -> NDArray[np.int64]:
    """Return ``random_state.choice(n, size, replace=False, p=np.full(n, 1 / n))``.

    The numbers and the state of the generator are the same, in time that depends on `size` alone.
    NumPy draws a fraction for each missing row and looks it up in the running sums of `p`, divided
    by the last.  Of equal rows only the first counts.  It then sets the `p` of all rows that were
    found to 0 and repeats.  Adding 0 changes no sum, so the sum up to a row is the sum of as many
    numbers ``1 / n`` as there are remaining rows up to it.
    """
    sums = RunningSums(1.0 / n, n)
    found = np.empty(0, dtype=np.int64)
    while len(found) < size:
        fractions = random_state.random_sample(size - len(found))
        order = sums.first_above(fractions, n - len(found)) - 1
        taken = np.sort(found)
        # The row that has `order` remaining rows before it.
        rows = order + np.searchsorted(taken - np.arange(len(taken)), order, side="right")
        first = np.sort(np.unique(rows, return_index=True)[1])
        found = np.append(found, rows[first])
    return found
