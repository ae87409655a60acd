"""Which algorithm ``"auto"`` uses for dense rows without weights, and why, for ``lloydia info``.

:mod:`lloydia.algorithms.auto` makes the choice, before a run and again during it.
"""

from __future__ import annotations

import math
from functools import partial

from lloydia.algorithms.auto import Auto, may_take
from lloydia.backends.cpu.scan import tile_scores

__all__ = ["choices"]

# Iterations of a run: KMeans' default.
MAX_ITER = 300

WHY = {
    "lloyd": "Every row is scored for all centres: bounds do not pay yet, or never.",
    "hamerly": "Two bounds a row pay early, because a row is scored for many centres or features.",
    "filtering": "Few features: neighbouring rows share a small box and are assigned together.",
    "yinyang": "A bound for each group of centres pays with many clusters.",
    "elkan": "A bound for each centre pays where a distance takes long.",
}


def choices(n: int, d: int, k: int, itemsize: int) -> list[tuple[str, str, str]]:
    """Return what ``"auto"`` begins with, and what it tries later: stage, algorithm and reason.

    Parameters
    ----------
    n, d, k : int
        Rows, features and clusters.
    itemsize : int
        Bytes of a number.
    """
    matrix_units = tile_scores.AMX and d >= tile_scores.PREFILTER_FEATURES
    # Rows in memory: only the free memory limits the bounds of a run.
    allows = partial(may_take, n, k, d * itemsize, math.inf, True)
    auto = Auto(n, d, k, False, False, matrix_units, MAX_ITER, allows)
    later = [("algorithm tried later", name, WHY[name]) for name in auto.others]
    return [("algorithm", auto.using, WHY[auto.using]), *later]
