"""Dithering: mixing palette colours so that neighbourhoods have the right mean colour.

* :func:`floyd_steinberg`: R. W. Floyd and L. Steinberg, "An adaptive algorithm for spatial
  greyscale", *Proceedings of the SID* 17(2), 1976.  Each pixel takes the palette entry nearest to
  its colour plus the errors that it received, and passes its own error on: 7/16 to the next pixel,
  and 3/16, 5/16 and 1/16 to the row below.  The direction alternates between rows.  The received
  errors are shortened to at most the distance of the colour from its second nearest entry.  That is
  enough to mix the two nearest entries, and keeps errors from growing for colours beyond all
  entries.
* :func:`blue_noise`: each colour is mixed from its nearest entry a and another entry b.  Let
  ``a + t (b - a)`` be the point nearest to the colour on the segment from a to b.  The entry b
  minimises the squared distance to this point plus `GRAIN` times the variance of the mixture,
  ``t (1 - t) |b - a|^2``.  Entries with a share t below `LEAST` are excluded, because they would
  give stray dots.  A pixel takes b if t exceeds the threshold of a blue-noise texture
  (:mod:`.blue_noise`) at its place.  Pixels do not depend on each other, so still parts of an
  animation do not flicker.

Colours are points of the space in which the palette was found.  The arithmetic is IEEE float32 in a
fixed order, so the result is the same on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import kernel, subroutine
from lloydia.images.blue_noise import texture

__all__ = ["blue_noise", "floyd_steinberg"]

GRAIN = 0.1
LEAST = 1 / 32


def floyd_steinberg(
    codes: NDArray[np.int32], points: NDArray[np.float32], palette: NDArray[np.float32]
) -> NDArray[np.int32]:
    """Dither by diffusing errors.

    Parameters
    ----------
    codes : ndarray of int32, shape (height, width)
        For each pixel, the row of `points` that is its colour; -1 for a pixel to skip.
    points : ndarray of float32, shape (n, d)
    palette : ndarray of float32, shape (k, d)

    Returns
    -------
    ndarray of int32, shape (height, width)
        Entries of the palette; k for skipped pixels, which neither receive nor pass on errors.
    """
    entries = np.ascontiguousarray(palette.T)
    return _diffuse(codes, points, entries, _second_distances(points, entries))


def blue_noise(
    codes: NDArray[np.int32], points: NDArray[np.float32], palette: NDArray[np.float32]
) -> NDArray[np.int32]:
    """Dither by thresholds; parameters and result are those of :func:`floyd_steinberg`."""
    found = _mixtures(points, palette, np.float32(GRAIN), np.float32(LEAST))
    return _threshold(codes, *found, texture(), len(palette))


# NaN and signed zeros do not occur or matter here, so the minimum is computed with vectors.
@subroutine(fastmath={"nnan", "nsz"})
def _nearest(color, entries, distances):
    """Return the lowest entry nearest to a colour; `entries` is (d, k), `distances` is scratch."""
    n_features, k = entries.shape
    for j in range(k):
        distances[j] = np.float32(0)
    for f in range(n_features):
        value = color[f]
        for j in range(k):
            difference = entries[f, j] - value
            distances[j] += difference * difference
    least = distances[0]
    for j in range(k):
        least = min(least, distances[j])
    best = np.int32(k)
    for j in range(k):
        best = min(best, np.int32(j) if distances[j] == least else np.int32(k))
    return best


@kernel
def _second_distances(points, entries):
    """Return the squared distance of each colour to its second nearest entry."""
    k = entries.shape[1]
    out = np.empty(len(points), np.float32)
    distances = np.empty(k, np.float32)
    for i in range(len(points)):
        best = _nearest(points[i], entries, distances)
        second = distances[best]
        if k > 1:
            distances[best] = np.float32(np.inf)
            second = distances.min()
        out[i] = second
    return out


@kernel
def _diffuse(codes, points, entries, limits):
    height, width = codes.shape
    n_features, k = entries.shape
    out = np.empty((height, width), np.int32)
    distances = np.empty(k, np.float32)
    color = np.empty(n_features, np.float32)
    # An extra column on each side receives the errors that are passed over the edge.
    here = np.zeros((width + 2, n_features), np.float32)
    below = np.zeros((width + 2, n_features), np.float32)
    for y in range(height):
        step = 1 - 2 * (y & 1)
        x = 0 if step > 0 else width - 1
        for _ in range(width):
            code, at = codes[y, x], x + 1
            if code < 0:
                out[y, x] = k
            else:
                length = np.float32(0)
                for f in range(n_features):
                    length += here[at, f] * here[at, f]
                cut = np.float32(1)
                if length > limits[code]:
                    cut = np.sqrt(limits[code] / length)
                for f in range(n_features):
                    color[f] = points[code, f] + cut * here[at, f]
                best = _nearest(color, entries, distances)
                out[y, x] = best
                for f in range(n_features):
                    sixteenth = (color[f] - entries[f, best]) * np.float32(0.0625)
                    here[at + step, f] += np.float32(7) * sixteenth
                    below[at - step, f] += np.float32(3) * sixteenth
                    below[at, f] += np.float32(5) * sixteenth
                    below[at + step, f] += sixteenth
            x += step
        here, below = below, here
        below[:] = np.float32(0)
    return out


@kernel
def _mixtures(points, palette, grain, rarest):
    """Return for each colour its nearest entry, the other entry of its mixture, and its share."""
    n, n_features = points.shape
    k = len(palette)
    nearest = np.empty(n, np.int32)
    other = np.empty(n, np.int32)
    share = np.zeros(n, np.float32)
    entries = np.ascontiguousarray(palette.T)
    distances = np.empty(k, np.float32)
    for i in range(n):
        a = _nearest(points[i], entries, distances)
        nearest[i] = other[i] = a
        least = np.float32(np.inf)
        for b in range(k):
            along = length = np.float32(0)
            for f in range(n_features):
                side = palette[b, f] - palette[a, f]
                along += side * (points[i, f] - palette[a, f])
                length += side * side
            if along <= 0 or along < rarest * length:  # this also skips a itself
                continue
            t = along / length
            cost = distances[a] - t * along + grain * t * (np.float32(1) - t) * length
            if cost < least:
                least = cost
                other[i] = b
                share[i] = t
    return nearest, other, share


@kernel
def _threshold(codes, nearest, other, share, thresholds, k):
    height, width = codes.shape
    size = len(thresholds)
    out = np.empty((height, width), np.int32)
    for y in range(height):
        for x in range(width):
            code = codes[y, x]
            if code < 0:
                out[y, x] = k
            elif share[code] > thresholds[y % size, x % size]:
                out[y, x] = other[code]
            else:
                out[y, x] = nearest[code]
    return out
