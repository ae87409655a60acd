"""How good is a clustering?  Scores of labelled data, equal to scikit-learn's.

All compute in float64 from direct differences: an offset common to all rows costs no digits.
They compute on the CPU: arrays on a GPU are copied to the host.
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
