"""Rows and centres that are refused because their squared distances could overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from lloydia.backends.engine import Engine
from lloydia.exact.distance import check_magnitudes, largest_magnitude

__all__ = ["check_range"]

# The largest number of each dtype that centres can have.
LARGEST = {np.dtype(kind): float(np.finfo(kind).max) for kind in (np.float32, np.float64)}


def check_range(engine: Engine, weights: Any, centers: Any = (), later: bool = False) -> None:
    """Refuse rows or centres (an array, or nothing) whose squared distances could overflow.

    With `later` and without weights, an engine that measures magnitudes during the run makes this
    check itself: after the run has begun, but before the fit returns.

    Raises
    ------
    ValueError
        If a magnitude is too large; the message names it and the largest possible one.
    """
    total = engine.n_samples if weights is None else float(weights.sum())
    given = centers if isinstance(centers, np.ndarray) else ()
    # float32 rows cannot overflow unless the weights are enormous.
    largest = LARGEST[engine.dtype]
    if largest <= largest_magnitude(engine.n_features, total):
        return
    if later and weights is None and engine.check_range_later():
        largest = 0.0
    else:
        largest = float(engine.magnitudes().largest.max())
    check_magnitudes(largest, given, engine.n_features, total)
