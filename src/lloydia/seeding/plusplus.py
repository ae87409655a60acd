"""k-means++: rows drawn with probability proportional to D (Arthur and Vassilvitskii 2007).

This is the greedy variant, which the authors propose and scikit-learn uses: each centre is the best
of ``2 + int(log(k))`` draws.  The best one reduces the sum of weight times D most; ties go to the
first one drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.progress.stages import steps

__all__ = ["greedy", "plusplus"]


def plusplus(
    engine: Engine, k: int, random_state: np.random.RandomState, n_trials: int | None = None
) -> NDArray[np.int64]:
    """Return the indices of `k` rows; once every row coincides with a centre, they repeat in order.

    Parameters
    ----------
    engine : Engine
    k : int
    random_state : numpy.random.RandomState
        It draws one number for the first row and `n_trials` for each other, as in scikit-learn.
    n_trials : int, optional
        The number of draws per centre, ``2 + int(log(k))`` by default; 1 is the variant that is not
        greedy.
    """
    n_trials = 2 + int(np.log(k)) if n_trials is None else n_trials
    first = random_state.random_sample(1)
    fractions = random_state.uniform(size=(k - 1, n_trials))
    rows = engine.seed_plusplus(first, fractions)
    if rows is None:
        # This engine takes one step after the other.
        engine.seed_start()
        row = engine.seed_draw(first)
        engine.seed_add(int(row[0]))
        chosen = engine.seed_greedy(fractions)
        rows = np.append(row, greedy(engine, fractions) if chosen is None else chosen)
    return np.resize(rows, k)


def greedy(engine: Engine, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
    """Add the best draw of each row of `fractions` as a seed; stop early if all D become 0."""
    chosen: list[int] = []
    for draws in steps("centers", fractions, before=1):
        candidates = engine.seed_draw(draws)
        if candidates[0] < 0:
            break
        best = engine.seed_best(candidates)
        if best is None:
            potentials = engine.seed_potentials(candidates)
            best = potentials.index(min(potentials))
        chosen.append(int(candidates[best]))
        engine.seed_add(chosen[-1])
    return np.array(chosen, dtype=np.int64)
