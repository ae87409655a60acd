"""Lloydia: k-means with the same result, to the last bit, on any number of threads and on GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lloydia import imports
from lloydia.version import __version__

if TYPE_CHECKING:
    from lloydia.data.chunks import chunks
    from lloydia.data.models import load, save
    from lloydia.estimators.batched import k_means_batched
    from lloydia.estimators.functions import assign, k_means, kmeans_plusplus
    from lloydia.estimators.kmeans import KMeans
    from lloydia.estimators.minibatch import MiniBatchKMeans
    from lloydia.loop.empty import EmptyClusterError

__all__ = [
    "EmptyClusterError",
    "KMeans",
    "MiniBatchKMeans",
    "__version__",
    "assign",
    "chunks",
    "k_means",
    "k_means_batched",
    "kmeans_plusplus",
    "load",
    "save",
]

_HOME = {
    "EmptyClusterError": "lloydia.loop.empty",
    "KMeans": "lloydia.estimators.kmeans",
    "MiniBatchKMeans": "lloydia.estimators.minibatch",
    "assign": "lloydia.estimators.functions",
    "chunks": "lloydia.data.chunks",
    "k_means": "lloydia.estimators.functions",
    "k_means_batched": "lloydia.estimators.batched",
    "kmeans_plusplus": "lloydia.estimators.functions",
    "load": "lloydia.data.models",
    "save": "lloydia.data.models",
}
_PARTS = ("callbacks", "images", "metrics", "stopping")


def __getattr__(name: str) -> Any:
    """Import a name or a module at its first use: scikit-learn takes most of a second to import."""
    if name in _HOME:
        return getattr(imports.load(_HOME[name]), name)
    if name in _PARTS:
        return imports.load(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_PARTS])
