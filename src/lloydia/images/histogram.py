"""A picture's colours with their opacity: how many pixels have each, where they lie, their means.

With transparency a pixel is a point of four coordinates, its colour times its opacity and the
opacity itself (as in T. Porter and T. Duff, "Compositing digital images", SIGGRAPH 1984), so that
a colour counts as much as it shows.  Fully transparent pixels have no colour.  Where all the others
have one opacity it tells no two of them apart: it is left out, and the points are those of the
picture without transparency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lloydia.images.color import Space, levels
from lloydia.images.colors import distinct

__all__ = ["Histogram", "histogram", "points"]


@dataclass(frozen=True)
class Histogram:
    """The n distinct colours of a picture that are not fully transparent.

    Attributes
    ----------
    colors : ndarray of shape (n, 3)
        RGB.
    alpha : ndarray of shape (n,), or None
        How opaque each is.
    counts : ndarray of int64, shape (n,)
        Pixels of each.
    codes : ndarray of int32, shape (frames, height, width)
        The colour of each pixel, -1 where it is transparent.
    """

    colors: NDArray
    alpha: NDArray | None
    counts: NDArray[np.int64]
    codes: NDArray[np.int32]

    @property
    def opacity(self) -> NDArray | None:
        """The alpha of each colour; None where all have the same."""
        if self.alpha is None or len(self.alpha) == 0 or (self.alpha == self.alpha[0]).all():
            return None
        return self.alpha

    @property
    def hidden(self) -> bool:
        """Whether there are fully transparent pixels."""
        return int(self.counts.sum()) < self.codes.size

    def means(self, labels: NDArray[np.int32]) -> tuple[NDArray, NDArray | None]:
        """Return the mean of each cluster's stored values, and of their alpha.

        Colours count by their pixels and by how opaque these are.  Clusters without pixels are left
        out.
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
        return colors, np.maximum(alpha, self.alpha.min())  # rounded, but not to transparent


def histogram(colors: NDArray, alpha: NDArray | None, n_threads: int) -> Histogram:
    """Count the distinct colours, each with its alpha.

    Parameters
    ----------
    colors : ndarray of shape (frames, height, width, 3)
        RGB, of a type that :func:`lloydia.images.color.checked` knows.
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
    """Return where colours lie for clustering, shape (n, 3), or (n, 4) with alpha.

    An alpha that is the same for all colours is to be left out, as :attr:`Histogram.opacity` does.
    """
    places = space.points(colors)
    if alpha is None:
        return places
    opacity = (alpha / levels(alpha.dtype)).astype(np.float32)[:, np.newaxis]
    return np.hstack([places * opacity, opacity * _reach(space, colors.dtype)])


def _places(rows: NDArray, n_threads: int) -> tuple[NDArray, NDArray[np.int64], NDArray[np.int32]]:
    """Return the distinct colours of rows, the rows of each, and which of them each row is."""
    if len(rows) == 0:
        return rows, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
    found = distinct(rows, n_threads)
    places = np.arange(len(rows), dtype=np.int32) if found.places is None else found.places
    return found.values, found.counts, places


def _ranks(alpha: NDArray) -> NDArray:
    """Return integers in the order of the alphas."""
    return alpha if alpha.dtype.kind == "u" else np.unique(alpha, return_inverse=True)[1]


def _reach(space: Space, dtype: np.dtype) -> np.float32:
    """Return how far opaque is from transparent: as white from black along one coordinate."""
    ends = space.points(np.array([[0] * 3, [levels(dtype)] * 3], dtype=dtype))
    return np.abs(ends[1] - ends[0]).max()


def _stored(values: NDArray[np.float64], dtype: np.dtype) -> NDArray:
    return (np.rint(values) if dtype.kind == "u" else values).astype(dtype)
