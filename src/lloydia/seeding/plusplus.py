"""k-means++: rows drawn with probability proportional to D (Arthur and Vassilvitskii 2007).

Greedy, as the authors tried it and scikit-learn does: each centre is the best of ``2 + log(k)``
draws, the one that lowers the sum of weight times D most, ties to the first drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends import Engine

__all__ = ["plusplus"]


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
    engine.seed_start()
    chosen = [int(engine.seed_draw(random_state.random_sample(1))[0])]
    engine.seed_add(chosen[0])
    while len(chosen) < k:
        candidates = engine.seed_draw(random_state.uniform(size=n_trials))
        if candidates[0] < 0:
            # The numbers that are left are drawn all the same: the stream stays scikit-learn's.
            random_state.uniform(size=(k - len(chosen) - 1) * n_trials)
            return np.resize(np.array(chosen, dtype=np.int64), k)
        potentials = engine.seed_potentials(candidates)
        chosen.append(int(candidates[potentials.index(min(potentials))]))
        engine.seed_add(chosen[-1])
    return np.array(chosen, dtype=np.int64)
