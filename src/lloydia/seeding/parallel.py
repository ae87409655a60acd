"""k-means||: a few rounds that choose many candidates each, then k of them.

Bahmani, Moseley, Vattani, Kumar and Vassilvitskii 2012, "Scalable k-means++".  A round chooses
every row on its own with probability ``l w D / sum(w D)``, l = 2 k in the mean, by a random number
that belongs to the row: no row waits for another.  The candidates, weighted by the rows nearest to
them, are reduced to k by k-means++.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.progress.stages import steps
from lloydia.seeding.plusplus import plusplus

__all__ = ["parallel"]

# The paper's experiments: with l = 2 k and five rounds the cost is that of k-means++ or below.
OVERSAMPLING = 2.0
ROUNDS = 5


def parallel(engine: Engine, k: int, random_state: np.random.RandomState) -> NDArray[np.int64]:
    """Return `k` rows; once every row coincides with a candidate, they recur.

    Where the rounds choose fewer than `k`, the rest are drawn one by one as in k-means++.
    """
    candidates = oversample(engine, k, random_state)
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


def oversample(engine: Engine, k: int, random_state: np.random.RandomState) -> NDArray[np.int64]:
    """Return candidates, distinct, each a seed of the engine now."""
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
    return candidates
