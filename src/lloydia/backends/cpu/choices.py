"""Which algorithm ``"auto"`` uses for dense rows without weights, with the reason, for people.

The choice itself is made, and made again during a run, in :mod:`lloydia.algorithms.auto`; here it
is only asked for.
"""

from __future__ import annotations

from lloydia.algorithms.auto import Auto
from lloydia.backends.cpu.simd import amx

__all__ = ["choices"]

# Iterations of a run: KMeans' default.
MAX_ITER = 300

# Features from which on Lloyd's products are made on matrix units, where there are any.
MATRIX_FEATURES = 64

WHY = {
    "lloyd": "Every row is scored for all centres: bounds do not pay yet, or never.",
    "hamerly": "Two bounds a row pay early, because a row is scored for many centres or features.",
    "filtering": "Few features: neighbouring rows share a small box and are assigned together.",
    "yinyang": "A bound for each group of centres pays with many clusters.",
    "elkan": "A bound for each centre pays where a distance takes long.",
}


def choices(n: int, d: int, k: int) -> list[tuple[str, str, str]]:
    """Return what ``"auto"`` begins with, and what it tries later: stage, algorithm and reason.

    Parameters
    ----------
    n, d, k : int
        Rows, features and clusters.
    """
    matrix_units = amx.AVAILABLE and d >= MATRIX_FEATURES
    auto = Auto(n, d, k, False, False, matrix_units, MAX_ITER, lambda algorithm: True)
    later = [("algorithm tried later", name, WHY[name]) for name in auto.others]
    return [("algorithm", auto.using, WHY[auto.using]), *later]
