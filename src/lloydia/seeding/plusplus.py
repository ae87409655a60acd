"""k-means++: rows drawn with probability proportional to D (Arthur and Vassilvitskii 2007).

Greedy, as the authors tried it and scikit-learn does: each centre is the best of ``2 + log(k)``
draws, the one that lowers the sum of weight times D most, ties to the first drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.progress.stages import steps

__all__ = ["by_steps", "greedy", "plusplus"]


def plusplus(
    engine: Engine, k: int, random_state: np.random.RandomState, n_trials: int | None = None
) -> NDArray[np.int64]:
    """Return `k` rows; once every row coincides with a centre, they recur in their order.

    Parameters
    ----------
    engine : Engine
    k : int
    random_state : numpy.random.RandomState
        One number for the first row, `n_trials` for each other, as in scikit-learn.
    n_trials : int, optional
        Draws a centre; ``2 + int(log(k))`` by default.  1 is the plain method.
    """
    n_trials = 2 + int(np.log(k)) if n_trials is None else n_trials
    first = random_state.random_sample(1)
    fractions = random_state.uniform(size=(k - 1, n_trials))
    rows = engine.seed_plusplus(first, fractions)
    return np.resize(by_steps(engine, first, fractions) if rows is None else rows, k)


def by_steps(
    engine: Engine, first: NDArray[np.float64], fractions: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Draw the first row, and the best of each row of `fractions`; fewer where D becomes 0."""
    engine.seed_start()
    row = engine.seed_draw(first)
    engine.seed_add(int(row[0]))
    chosen = engine.seed_greedy(fractions)
    return np.append(row, greedy(engine, fractions) if chosen is None else chosen)


def greedy(engine: Engine, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
    """Add a seed for each row of `fractions`, the best of its draws; fewer where D becomes 0."""
    chosen: list[int] = []
    for draws in steps("centers", fractions, before=1):
        candidates = engine.seed_draw(draws)
        if candidates[0] < 0:
            break
        potentials = engine.seed_potentials(candidates)
        chosen.append(int(candidates[potentials.index(min(potentials))]))
        engine.seed_add(chosen[-1])
    return np.array(chosen, dtype=np.int64)
