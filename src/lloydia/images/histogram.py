"""The colours of a picture with their opacity: counts of pixels, points for clustering, and means.

With transparency, a pixel is a point of four coordinates: its colour times its opacity, and the
opacity itself (as in T. Porter and T. Duff, "Compositing digital images", SIGGRAPH 1984).  So a
colour counts in proportion to its visibility.  Fully transparent pixels have no colour.  If all
other pixels have the same opacity, it is left out, and the points are those of a picture without
transparency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lloydia.images.color import Space
from lloydia.images.colors import distinct
from lloydia.images.pixels import levels

__all__ = ["Histogram", "histogram", "points"]


@dataclass(frozen=True)
class Histogram:
    """The n distinct colours of a picture that are not fully transparent.

    Attributes
    ----------
    colors : ndarray of shape (n, 3)
        RGB.
    alpha : ndarray of shape (n,), or None
        The opacity of each colour.
    counts : ndarray of int64, shape (n,)
        The number of pixels of each colour.
    codes : ndarray of int32, shape (frames, height, width)
        The index of the colour of each pixel; -1 for fully transparent pixels.
    """

    colors: NDArray
    alpha: NDArray | None
    counts: NDArray[np.int64]
    codes: NDArray[np.int32]

    @property
    def opacity(self) -> NDArray | None:
        """The alpha of each colour; None if all colours have the same."""
        if self.alpha is None or len(self.alpha) == 0 or (self.alpha == self.alpha[0]).all():
            return None
        return self.alpha

    @property
    def hidden(self) -> bool:
        """Whether there are fully transparent pixels."""
        return int(self.counts.sum()) < self.codes.size

    def means(self, labels: NDArray[np.int32]) -> tuple[NDArray, NDArray | None]:
        """Return the mean stored value of each cluster, and its mean alpha.

        Colours are weighted by their numbers of pixels and by their opacity.  Clusters without
        pixels are left out.
        """
        weights = self.counts.astype(np.float64)
        pixels = np.bincount(labels, weights)
        if self.opacity is not None:
            weights = weights * self.opacity
        totals = np.bincount(labels, weights)
        some = totals > 0
        sums = [np.bincount(labels, weights * channel)[some] for channel in self.colors.T]
        colors = _stored(np.column_stack(sums) / totals[some, np.newaxis], self.colors.dtype)
        if self.alpha is None:
            return colors, None
        if self.opacity is None:
            return colors, np.full(len(colors), self.alpha[0])
        alpha = _stored(totals[some] / pixels[some], self.alpha.dtype)
        return colors, np.maximum(alpha, self.alpha.min())  # do not round to fully transparent


def histogram(colors: NDArray, alpha: NDArray | None, n_threads: int) -> Histogram:
    """Count the distinct colours, each with its alpha.

    Parameters
    ----------
    colors : ndarray of shape (frames, height, width, 3)
        RGB, of a type that :func:`lloydia.images.pixels.checked` accepts.
    alpha : ndarray of the same type, shape (frames, height, width), or None
    n_threads : int
    """
    shape = colors.shape[:-1]
    rows = np.ascontiguousarray(colors).reshape(-1, 3)
    if alpha is None:
        found, counts, places = _places(rows, n_threads)
        return Histogram(found, None, counts, places.reshape(shape))
    shown = alpha.ravel() > 0
    found, counts, places = _places(rows[shown], n_threads)
    opacity = alpha.ravel()[shown]
    if len(opacity) and (opacity != opacity[0]).any():
        pairs = _ranks(opacity).astype(np.int64) * len(found) + places
        _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
        found, places = found[places[first]], inverse.astype(np.int32)
        opacity, counts = opacity[first], np.bincount(inverse)
    else:
        opacity = opacity[: len(found)]
    codes = np.full(shape, -1, dtype=np.int32)
    codes.ravel()[shown] = places
    return Histogram(found, opacity, counts, codes)


def points(colors: NDArray, alpha: NDArray | None, space: Space) -> NDArray[np.float32]:
    """Return the points of colours for clustering: shape (n, 3), or (n, 4) with alpha.

    `alpha` must be None if all colours have the same alpha; see :attr:`Histogram.opacity`.
    """
    places = space.points(colors)
    if alpha is None:
        return places
    opacity = (alpha / levels(alpha.dtype)).astype(np.float32)[:, np.newaxis]
    return np.hstack([places * opacity, opacity * _reach(space, colors.dtype)])


def _places(rows: NDArray, n_threads: int) -> tuple[NDArray, NDArray[np.int64], NDArray[np.int32]]:
    """Return the distinct colours of rows, their numbers of rows, and the colour of each row."""
    if len(rows) == 0:
        return rows, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
    found = distinct(rows, n_threads)
    places = np.arange(len(rows), dtype=np.int32) if found.places is None else found.places
    return found.values, found.counts, places


def _ranks(alpha: NDArray) -> NDArray:
    """Return integers that have the same order as the alphas."""
    return alpha if alpha.dtype.kind == "u" else np.unique(alpha, return_inverse=True)[1]


def _reach(space: Space, dtype: np.dtype) -> np.float32:
    """Return the distance of opaque from transparent: that of white from black in a coordinate."""
    ends = space.points(np.array([[0] * 3, [levels(dtype)] * 3], dtype=dtype))
    return np.abs(ends[1] - ends[0]).max()


def _stored(values: NDArray[np.float64], dtype: np.dtype) -> NDArray:
    return (np.rint(values) if dtype.kind == "u" else values).astype(dtype)
