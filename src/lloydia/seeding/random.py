"""k distinct rows, with probability proportional to their weights (Forgy 1965)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import Engine

__all__ = ["random"]


def random(engine: Engine, k: int, random_state: np.random.RandomState) -> NDArray[np.int64]:
    """Return the indices of `k` distinct rows of positive weight; fewer rows repeat.

    The draws are scikit-learn's (``RandomState.choice`` without replacement), so the rows are its
    rows as well.
    """
    weights = engine.seed_weights()
    possible = int((weights > 0).sum())
    rows = random_state.choice(
        len(weights), size=min(k, possible), replace=False, p=weights / weights.sum()
    )
    return np.resize(rows, k)
