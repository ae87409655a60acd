"""Where pickles from before :mod:`lloydia.estimators` was there look for MiniBatchKMeans."""

from lloydia.estimators.minibatch import MiniBatchKMeans

__all__ = ["MiniBatchKMeans"]
