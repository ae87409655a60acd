"""Scores of a clustering, with the values of scikit-learn's functions of the same names.

All scores are computed in float64 from direct differences, so an offset common to all rows costs no
precision.  Arrays on a GPU are scored there, within a relative 1e-12 of the CPU's result.
"""

from __future__ import annotations

from lloydia.metrics.calinski_harabasz import calinski_harabasz_score
from lloydia.metrics.davies_bouldin import davies_bouldin_score
from lloydia.metrics.silhouette import silhouette_samples, silhouette_score

__all__ = [
    "calinski_harabasz_score",
    "davies_bouldin_score",
    "silhouette_samples",
    "silhouette_score",
]
