"""Contenders that reduce a picture to k colours: Lloydia and other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.numpy_first import compiled_only
from lloydia.spelling import meant

__all__ = ["CONTENDERS", "Contender", "choose"]

Pixels = NDArray[np.uint8]


class Reduce(Protocol):
    """From RGB pixels of shape (height, width, 3) to the same in at most k colours."""

    def __call__(self, pixels: Pixels, k: int, threads: int) -> Pixels:
        """Reduce the colours of a picture."""


@dataclass(frozen=True)
class Contender:
    """A library, or one of its methods.

    Attributes
    ----------
    name : str
    package : str
        The distribution that has it.
    reduce : callable
    """

    name: str
    package: str
    reduce: Reduce

    def version(self) -> str | None:
        """Return the version that is installed, or None."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None


def _ours(pixels: Pixels, k: int, threads: int, *, space: str) -> Pixels:
    from lloydia.images import quantize

    with compiled_only():
        return quantize(pixels, k, space=space, n_threads=threads).image


def _pillow(pixels: Pixels, k: int, threads: int, *, method: str, kmeans: int) -> Pixels:
    """Return Pillow's picture; `kmeans=1` makes it iterate until no pixel moves."""
    from PIL import Image

    image = Image.fromarray(pixels)
    chosen = Image.Quantize[method]
    found = image.quantize(k, chosen, kmeans=kmeans, dither=Image.Dither.NONE)
    return np.asarray(found.convert("RGB"))


def _scikit_learn(pixels: Pixels, k: int, threads: int) -> Pixels:
    """Return what scikit-learn's example of colour quantisation does: centres of 1,000 pixels."""
    from sklearn.cluster import KMeans
    from sklearn.utils import shuffle

    rows = pixels.reshape(-1, 3) / 255
    some = shuffle(rows, random_state=0, n_samples=1000)
    fitted = KMeans(n_clusters=k, random_state=0).fit(some)
    colors = np.rint(fitted.cluster_centers_ * 255).astype(np.uint8)
    return colors[fitted.predict(rows)].reshape(pixels.shape)


def _opencv(pixels: Pixels, k: int, threads: int) -> Pixels:
    """Return OpenCV's k-means as in its tutorial, of one k-means++ start instead of ten."""
    import cv2

    cv2.setNumThreads(threads)
    cv2.setRNGSeed(0)
    rows = pixels.reshape(-1, 3).astype(np.float32)
    until = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 10, 1.0)
    # Typed as if labels were required.
    _, labels, centers = cv2.kmeans(rows, k, None, until, 1, cv2.KMEANS_PP_CENTERS)
    return np.rint(centers).astype(np.uint8)[labels.ravel()].reshape(pixels.shape)


def _libimagequant(pixels: Pixels, k: int, threads: int) -> Pixels:
    from imagequant import quantize_raw_rgba_bytes

    height, width, _ = pixels.shape
    opaque = np.full((height, width, 1), 255, np.uint8)
    data = np.concatenate([pixels, opaque], axis=2).tobytes()
    found, palette = quantize_raw_rgba_bytes(data, width, height, 0.0, k)
    colors = np.array(palette, np.uint8).reshape(-1, 4)[:, :3]
    return colors[np.frombuffer(found, np.uint8)].reshape(pixels.shape)


CONTENDERS = (
    Contender("Lloydia", "lloydia", partial(_ours, space="RGB")),
    Contender("Lloydia, Oklab", "lloydia", partial(_ours, space="Oklab")),
    Contender("Pillow median cut", "pillow", partial(_pillow, method="MEDIANCUT", kmeans=0)),
    Contender("Pillow octree", "pillow", partial(_pillow, method="FASTOCTREE", kmeans=0)),
    Contender("Pillow k-means", "pillow", partial(_pillow, method="MEDIANCUT", kmeans=1)),
    Contender("scikit-learn example", "scikit-learn", _scikit_learn),
    Contender("OpenCV kmeans", "opencv-python-headless", _opencv),
    Contender("libimagequant", "imagequant", _libimagequant),
)


def choose(names: Sequence[str] | None) -> list[Contender]:
    """Return the contenders whose names begin with a given one, and always Lloydia.

    Without names, return all, installed or not.

    Raises
    ------
    ValueError
        For a name that no contender has.
    ImportError
        For a contender that is named and not installed.
    """
    if not names:
        return list(CONTENDERS)
    wanted = [contender for contender in CONTENDERS if contender.package == "lloydia"]
    for name in names:
        matching = [contender for contender in CONTENDERS if contender.name.startswith(name)]
        if not matching:
            known = [contender.name for contender in CONTENDERS]
            alike = meant(name, [*known, *(full.split()[0] for full in known)])
            raise ValueError(
                f"There is no library {name!r}: the libraries are {', '.join(known)}{alike}"
            )
        if not matching[0].version():
            raise ImportError(f"{name} is not installed; pip install {matching[0].package}.")
        wanted += matching
    return [contender for contender in CONTENDERS if contender in wanted]
