"""Farthest-first seeding: a random row, then always the row farthest from its nearest centre.

Gonzalez 1985, "Clustering to minimize the maximum intercluster distance", with a random first row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.progress.stages import steps

__all__ = ["farthest"]


def farthest(engine: Engine, k: int, random_state: np.random.RandomState) -> NDArray[np.int64]:
    """Return the indices of `k` rows, ties to the lowest index.

    Once every row coincides with a centre, the chosen rows repeat.
    """
    engine.seed_start()
    chosen = [int(engine.seed_draw(random_state.random_sample(1))[0])]
    engine.seed_add(chosen[0])
    for _ in steps("centers", range(k - 1), before=1):
        row = engine.seed_farthest()
        if row < 0:
            return np.resize(np.array(chosen, dtype=np.int64), k)
        chosen.append(row)
        engine.seed_add(row)
    return np.array(chosen, dtype=np.int64)
