"""k-means||: a few rounds that draw many candidates each, then k-means++ among the candidates.

Bahmani, Moseley, Vattani, Kumar and Vassilvitskii 2012, "Scalable k-means++".  A round draws each
row independently with probability ``l w D / sum(w D)``, l = 2 k, by a random number that belongs to
the row; so a round draws about l rows.  The candidates, weighted by the weights of the rows nearest
to them, are reduced to k by k-means++.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.progress.stages import steps
from lloydia.seeding.plusplus import plusplus

__all__ = ["parallel"]

# In the paper's experiments, l = 2 k and five rounds give the cost of k-means++ or less.
OVERSAMPLING = 2.0
ROUNDS = 5


def parallel(engine: Engine, k: int, random_state: np.random.RandomState) -> NDArray[np.int64]:
    """Return the indices of `k` rows; once every row coincides with a candidate, rows repeat.

    If the rounds draw fewer than `k` rows, the others are drawn one by one as in k-means++.
    """
    engine.seed_start()
    fresh = engine.seed_draw(random_state.random_sample(1))
    candidates = np.empty(0, dtype=np.int64)
    for number in steps("rounds", range(ROUNDS + 1)):
        engine.seed_extend(fresh)
        candidates = np.append(candidates, fresh)
        if number == ROUNDS:
            break
        key = int.from_bytes(random_state.bytes(8), "little")
        fresh = engine.seed_sample(key, OVERSAMPLING * k)
        if len(fresh) == 0:
            break
    while len(candidates) < k:
        row = engine.seed_draw(random_state.random_sample(1))
        if row[0] < 0:
            break
        engine.seed_extend(row)
        candidates = np.append(candidates, row)
    order = np.argsort(candidates)
    loads = engine.seed_loads()[order]
    few = engine.subset(candidates[order], loads / loads.max())
    return candidates[order][plusplus(few, k, random_state)]
