"""Where pickles from before :mod:`lloydia.estimators` was there look for KMeans."""

from lloydia.estimators.kmeans import KMeans

__all__ = ["KMeans"]
