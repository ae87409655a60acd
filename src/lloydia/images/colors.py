"""The distinct colours of a picture, each with the number of its pixels.

The label of a pixel depends on its colour alone, and a sum over pixels is a sum over colours times
their counts.  So the pixels are clustered by clustering the colours with their counts as weights.
A picture of ten million pixels has about a hundred thousand colours.

**Exactness.**  From the same initial centres, labels and centres are exactly those of a clustering
of all pixels.  The nearest centre of a colour is that of its pixels by definition.  The sum of a
cluster is exact in both cases: the points are multiples of a step with at most 21 bits
(:mod:`lloydia.images.color`), times a count.  The grids of :mod:`lloydia.exact.sums` differ,
because the numbers of rows and the weights differ, but both have room for all of these bits in
pictures of up to 2**24 pixels, and in larger ones unless all counts have more than 8 bits.  A mean
is the rounded quotient of two exact numbers.  Three things differ from a clustering of all pixels:

* A seeding draws among colours by their counts, in the order of their codes.  The probabilities are
  those of a draw among pixels, but the random numbers are used differently.  So a picture that is
  rotated, mirrored or shuffled keeps its segments.
* An empty cluster takes a colour with all its pixels, not a single pixel.
* The inertia rounds count times D once, so its last bits may differ, as may those of the variance
  in `tol`.

Floating pixels are counted in the same way: equal numbers are one colour, and -0 equals 0.  If all
pixels have different colours, the colours keep the order of the pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrays import on_host
from lloydia.data.device_arrays import load_torch, on_gpu
from lloydia.imports import load

__all__ = ["CHANNELS", "Colors", "distinct", "each"]

BLOCK = 1 << 17  # the number of pixels that a thread takes at a time

# An odd multiplier with random-looking bits: the golden ratio times 2**64 (Knuth, TAOCP 3, 6.4).
HASH = np.uint64(0x9E3779B97F4A7C15)

# The number of channels of a pixel, and how many of them are colour; the rest is alpha.
CHANNELS = {1: 1, 2: 1, 3: 3, 4: 3}


@dataclass(frozen=True)
class Colors:
    """The distinct colours of n pixels.

    Attributes
    ----------
    values : ndarray of shape (u, c), of the type of the pixels
        The colours, with c = 1 or 3.
    counts : ndarray of shape (u,), int64
        The number of pixels of each colour, without fully transparent pixels.  If all pixels are
        fully transparent, all are counted.
    places : array of shape (n,), or None
        The index of the colour of each pixel, on the device of the pixels; None if pixel i has
        colour i.
    """

    values: NDArray
    counts: NDArray[np.int64]
    places: Any

    def per_pixel(self, rows: NDArray) -> Any:
        """Return for each pixel the row of its colour; `rows` has shape (u, ...)."""
        if self.places is None:
            return rows
        if on_gpu(self.places):
            return load_torch().as_tensor(rows, device=self.places.device)[self.places]
        return rows[self.places]

    def paint(
        self, pixels: Any, found: NDArray[np.int32], palette: NDArray, n_threads: int
    ) -> tuple[Any, Any]:
        """Return the label of each pixel, and the pixels in the colours of a palette.

        Parameters
        ----------
        pixels : array of shape (n, c)
            The pixels from which the colours were taken; their alpha is kept.
        found : ndarray of shape (u,), int32
            The label of each colour.
        palette : ndarray of shape (k, 1) or (k, 3), of the type of the pixels
        n_threads : int
        """
        channels = palette.shape[1]
        if on_gpu(pixels):
            torch = load_torch()
            labels = torch.as_tensor(found, device=pixels.device)
            labels = labels if self.places is None else labels[self.places]
            image = pixels.clone()
            same = image.view(torch.int16) if image.dtype == torch.uint16 else image
            rows = torch.as_tensor(palette.view(np.int16) if same is not image else palette)
            same[:, :channels] = rows.to(pixels.device)[labels]
            return labels, image
        image = pixels.copy()
        if self.places is None:
            image[:, :channels] = palette[found]
            return found, image
        labels = np.empty(len(pixels), dtype=np.int32)

        def paint(_: int, start: int, stop: int) -> None:
            load("lloydia.images.cube").paint(
                self.places, found, palette, labels, image, start, stop
            )

        load("lloydia.backends.cpu.runtime.pool").run(paint, len(pixels), BLOCK, n_threads)
        return labels, image


def distinct(pixels: Any, n_threads: int) -> Colors:
    """Count the colours of pixels.

    Parameters
    ----------
    pixels : ndarray of shape (n, c), or tensor on a GPU
        Grey or RGB, with alpha or without: c is 1 to 4.  uint8, uint16 or floating; in C order.
    n_threads : int

    Returns
    -------
    Colors
        The colours ascend by R, then G, then B.  If floating pixels all have different colours,
        they keep the order of the pixels.
    """
    if "float" in str(pixels.dtype):
        return _of_floats(pixels)
    if on_gpu(pixels):
        return _on_device(pixels)
    if pixels.dtype == np.uint8 and CHANNELS[pixels.shape[1]] == 3:
        return _in_cube(pixels, n_threads)
    return _sorted(pixels)


def each(pixels: Any) -> Colors:
    """Return one colour for each pixel; `pixels` is as for :func:`distinct`."""
    values = on_host(pixels)
    colors = values[:, : CHANNELS[values.shape[1]]]
    return _counted(colors, _seen(values).astype(np.int64), None)


def _counted(values: NDArray, counts: NDArray[np.int64], places: Any) -> Colors:
    if not counts.any():
        counts = np.ones_like(counts) if places is None else np.bincount(on_host(places))
    return Colors(values, counts, places)


def _seen(pixels: NDArray) -> NDArray[np.bool_]:
    """Return which pixels have an alpha above 0, or no alpha."""
    n_channels = pixels.shape[1]
    if n_channels == CHANNELS[n_channels]:
        return np.ones(len(pixels), dtype=bool)
    return pixels[:, -1] > 0


def _in_cube(pixels: NDArray[np.uint8], n_threads: int) -> Colors:
    cube, pool = load("lloydia.images.cube"), load("lloydia.backends.cpu.runtime.pool")
    table, touched = np.zeros(cube.COLORS, dtype=np.uint32), np.zeros(cube.SHELVES, dtype=np.bool_)
    cube.count(pixels, table, touched)
    most = min(len(pixels), cube.COLORS)
    values, counts = np.empty((most, 3), dtype=np.uint8), np.empty(most, dtype=np.int64)
    size = cube.gather(table, touched, values, counts)
    places = np.empty(len(pixels), dtype=np.int32)

    def locate(_: int, start: int, stop: int) -> None:
        cube.locate(pixels, table, places, start, stop)

    pool.run(locate, len(pixels), BLOCK, n_threads)
    return _counted(values[:size].copy(), counts[:size].copy(), places)


def _of_floats(pixels: Any) -> Colors:
    host = on_host(pixels)
    single = each(host)
    # Adding 0 turns -0 into 0.
    values = single.values + single.values.dtype.type(0)
    if _differ(values):
        return single
    order = np.lexsort(values.T[::-1])
    ascending = values[order]
    first = np.ones(len(values), dtype=bool)
    first[1:] = (ascending[1:] != ascending[:-1]).any(axis=1)
    if first.all():
        return single
    places = np.empty(len(values), dtype=np.int32)
    places[order] = np.cumsum(first, dtype=np.int32) - 1
    counts = np.bincount(places, weights=_seen(host)).astype(np.int64)
    found = ascending[first]
    if on_gpu(pixels):
        return _counted(found, counts, load_torch().as_tensor(places, device=pixels.device))
    return _counted(found, counts, places)


def _differ(values: NDArray[np.floating]) -> bool:
    """Return whether all rows have different hashes, which proves that no two are equal.

    Sorting the hashes takes a tenth of the time of sorting the rows.
    """
    hashes = np.zeros(len(values), dtype=np.uint64)
    for channel in values.T:
        bits = np.ascontiguousarray(channel, dtype=np.float64).view(np.uint64)
        hashes = (hashes ^ bits) * HASH
        hashes ^= hashes >> np.uint64(32)
    hashes.sort()
    return bool((hashes[1:] != hashes[:-1]).all())


def _sorted(pixels: NDArray) -> Colors:
    n_channels = CHANNELS[pixels.shape[1]]
    codes = pixels[:, 0].astype(np.uint64)
    for channel in pixels.T[1:n_channels]:
        codes = codes << np.uint64(16) | channel
    found, inverse = np.unique(codes, return_inverse=True)
    places = inverse.astype(np.int32)
    counts = np.bincount(places, weights=_seen(pixels), minlength=len(found)).astype(np.int64)
    return _counted(_decoded(found, n_channels, pixels.dtype), counts, places)


def _decoded(codes: NDArray, n_channels: int, dtype: np.dtype) -> NDArray:
    """Return the colours of codes with 16 bits per channel."""
    shifts = np.array([32, 16, 0][-n_channels:], dtype=codes.dtype)
    return (codes[:, None] >> shifts & codes.dtype.type(0xFFFF)).astype(dtype)


def _on_device(pixels: Any) -> Colors:
    torch, n_channels = load_torch(), CHANNELS[pixels.shape[1]]
    channels = pixels.long()
    codes = channels[:, 0]
    for j in range(1, n_channels):
        codes = codes << 16 | channels[:, j]
    found, places = torch.unique(codes, return_inverse=True)
    seen = channels[:, -1] > 0 if n_channels < channels.shape[1] else torch.ones_like(codes) > 0
    counts = torch.zeros_like(found).scatter_add_(0, places, seen.long())
    dtype = np.dtype(str(pixels.dtype).removeprefix("torch."))
    values = _decoded(found.cpu().numpy(), n_channels, dtype)
    return _counted(values, counts.cpu().numpy(), places)
