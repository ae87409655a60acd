"""The first k rows (MacQueen 1967)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import Engine

__all__ = ["first"]


def first(engine: Engine, k: int, random_state: np.random.RandomState) -> NDArray[np.int64]:
    """Return the indices of the first `k` rows of positive weight; fewer rows repeat."""
    rows = engine.positive_rows(k)
    return np.resize(rows, k)
