"""Colour quantisation: a picture reduced to the k colours of a palette.

The palette is found by k-means in a colour space, which minimises the mean squared error of the
pixels (up to a local minimum).  A picture has far fewer colours than pixels, so the distinct
colours are clustered, weighted by their numbers of pixels.

Fully transparent pixels are left out of the clustering; the last entry of the palette is theirs.
:mod:`.histogram` says how the opacity of the other pixels counts.

An entry is the mean of its cluster's stored values, as in :mod:`.segments`.  Each pixel gets the
entry nearest to it in the colour space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.pool import threads_of
from lloydia.data.arrays import home_of, on_host
from lloydia.data.device_arrays import as_tensor, on_gpu
from lloydia.estimators.functions import assign
from lloydia.estimators.kmeans import KMeans
from lloydia.images.color import Space
from lloydia.images.color import space as space_of
from lloydia.images.histogram import Histogram, histogram, points
from lloydia.images.palettes import Palette
from lloydia.images.pixels import checked, refuse_path
from lloydia.parameters import check_choice, check_int, check_threads
from lloydia.spelling import option

__all__ = ["DITHERS", "Quantized", "palette", "quantize"]

DITHERS = ("none", "floyd-steinberg", "blue-noise")


@dataclass(frozen=True)
class Quantized:
    """A picture in the colours of a palette, the result of :func:`quantize`.

    Attributes
    ----------
    image : array
        The picture in the colours of the palette, with the shape and type of the original; half
        precision becomes float32.
    indices : array of shape (height, width), uint8, or int32 for more than 256 entries
        The palette entry of each pixel; shape (frames, height, width) for an animation.
    palette : Palette
        The palette, in ndarrays.
    n_colors : int
        Number of distinct colours of the original; all fully transparent pixels count as one.
    n_iter : int
        Number of iterations of k-means; 0 if the palette consists of the original's own colours.
    note : str or None
        A sentence that says why the palette has fewer than k colours, if it has.
    """

    image: Any
    indices: Any
    palette: Palette
    n_colors: int
    n_iter: int
    note: str | None


def quantize(
    image: Any,
    k: int,
    *,
    space: str = "RGB",
    dither: str = "none",
    random_state: Any = 0,
    device: str = "auto",
    n_threads: int | None = None,
) -> Quantized:
    """Reduce a picture to k colours, found by k-means.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        The picture: uint8, uint16, or floating in [0, 1], with 1 to 4 channels (grey or RGB, with
        or without alpha).  An animation of shape (frames, height, width, channels) gets one
        palette.  The library is NumPy, torch or CuPy; colours are counted on the CPU, and clustered
        on the device of the array.
    k : int
        Number of palette entries, including the entry for fully transparent pixels.  Indexed files
        hold at most 256 colours; this function has no limit.
    space : str, default="RGB"
        The colour space of the distances; see :mod:`lloydia.images.color`.  RGB gives the least
        squared error, hence the highest PSNR; Oklab is closer to what the eye sees.
    dither : {"none", "floyd-steinberg", "blue-noise"}, default="none"
        How palette colours are mixed in neighbouring pixels.  "floyd-steinberg" diffuses errors;
        "blue-noise" compares with a fixed texture, which suits animations.
    random_state : int, RandomState instance or None, default=0
        Seed of the random numbers that choose the initial colours.
    device, n_threads
        As in :class:`lloydia.KMeans`.

    Returns
    -------
    Quantized
        The image, the palette, the palette entry of each pixel, and more.

    Raises
    ------
    ValueError
        If `image` is not a picture, if `k` is not a positive integer or leaves no entry besides the
        transparent one, or if there is no such space or dither.
    ImportError
        If `device` needs a GPU and PyTorch or Triton is not installed.

    References
    ----------
    - S. P. Lloyd, "Least squares quantization in PCM", *IEEE Transactions on Information Theory*
      28(2), 1982; see :class:`lloydia.KMeans`.
    - R. W. Floyd and L. Steinberg, "An adaptive algorithm for spatial greyscale", *Proceedings of
      the SID* 17(2), 1976.
    - R. A. Ulichney, "The void-and-cluster method for dither array generation", *Proc. SPIE* 1913,
      1993.

    Examples
    --------
    >>> import numpy as np
    >>> from lloydia.images import quantize
    >>> pixels = np.array([[0, 10, 20], [200, 210, 220]], np.uint8)
    >>> quantize(pixels, 2).image
    array([[ 10,  10,  10],
           [210, 210, 210]], dtype=uint8)
    """
    check_int("k", k)
    check_threads(n_threads)
    check_choice("dither", dither, DITHERS)
    refuse_path(image)
    chosen, home = space_of(space), home_of(image)
    pixels = np.asarray(on_host(image))
    counted = histogram(*_parted(pixels), threads_of(n_threads))
    room = k - counted.hidden
    if room < 1 and len(counted.colors):
        raise ValueError(
            f"{option('k', 1)} leaves no colour besides the transparent one: use 2 or more."
        )
    options = {"device": _device(image, device), "n_threads": n_threads}
    colors, alpha, n_iter = _entries(counted, room, chosen, random_state, options)
    indices = _indices(counted, colors, alpha, chosen, dither, options)
    if alpha is not None and counted.hidden:
        colors = np.append(colors, _unused(colors), axis=0)
        alpha = np.append(alpha, alpha.dtype.type(0))
    # A frame at a time: counting takes eight bytes a pixel.
    counts = [np.bincount(frame.ravel(), minlength=len(colors)) for frame in indices]
    shares = np.sum(counts, axis=0) / indices.size
    return Quantized(
        image=home(_painted(pixels, indices, colors, alpha)),
        indices=home(indices.reshape(pixels.shape[: max(2, pixels.ndim - 1)])),
        palette=Palette(colors, alpha, shares, chosen.name),
        n_colors=len(counted.colors) + counted.hidden,
        n_iter=n_iter,
        note=_note(k, len(colors), len(counted.colors) + counted.hidden),
    )


def palette(image: Any, k: int, **options: Any) -> Palette:
    """Return a palette of k colours of a picture, found by k-means.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        As in :func:`quantize`.
    k : int
        Number of palette entries.
    **options
        The other parameters of :func:`quantize`, by name.

    Returns
    -------
    Palette
        The colours, and the share of the pixels that each has.

    Raises
    ------
    ValueError, ImportError
        As :func:`quantize`.

    References
    ----------
    S. P. Lloyd, "Least squares quantization in PCM", *IEEE Transactions on Information Theory*
    28(2), 1982; see :class:`lloydia.KMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> from lloydia.images import palette
    >>> found = palette(np.array([[0, 10, 20], [200, 210, 220]], np.uint8), 2)
    >>> found.colors[:, 0]
    array([ 10, 210], dtype=uint8)
    >>> found.shares
    array([0.5, 0.5])
    """
    return quantize(image, k, **options).palette


def _device(image: Any, device: str) -> str:
    return str(as_tensor(image).device) if device == "auto" and on_gpu(image) else device


def _note(k: int, n_entries: int, n_colors: int) -> str | None:
    if n_colors <= k:
        what = "one colour" if n_colors == 1 else f"{n_colors} colours"
        return f"the picture has {what}, all of them in the palette" if n_colors < k else None
    if n_entries < k:
        return f"{n_entries} of the {k} centres are different colours"
    return None


def _parted(pixels: NDArray) -> tuple[NDArray, NDArray | None]:
    """Return RGB of shape (frames, height, width, 3), and alpha.

    Raises
    ------
    ValueError
        If the array is not a picture.
    """
    shape = pixels.shape
    grey = pixels.ndim == 2
    if not (grey or (pixels.ndim in (3, 4) and shape[-1] in (1, 2, 3, 4))) or 0 in shape:
        raise ValueError(
            f"an array of shape {shape} is not a picture: give the shape (height, width), or "
            "(height, width, channels) with 1 to 4 channels."
        )
    layers = pixels[..., np.newaxis] if grey else pixels
    layers = layers.reshape(-1, *layers.shape[-3:])
    channels = layers.shape[-1]
    colors = layers[..., : channels - (channels in (2, 4))]
    alpha = checked(layers[..., [-1] * 3])[..., 0] if channels in (2, 4) else None
    return checked(np.broadcast_to(colors, (*layers.shape[:-1], 3))), alpha


def _entries(
    counted: Histogram, k: int, space: Space, random_state: Any, options: dict[str, Any]
) -> tuple[NDArray, NDArray | None, int]:
    """Return the distinct palette entries from dark to light, and the number of iterations."""
    colors, alpha, n_iter = counted.colors, counted.alpha, 0
    if len(colors) > k:
        fitted = KMeans(k, random_state=random_state, **options).fit(
            points(colors, counted.opacity, space), sample_weight=counted.counts
        )
        n_iter = int(fitted.n_iter_)
        colors, alpha = counted.means(fitted.labels_)
    light = colors @ np.array([0.2126, 0.7152, 0.0722])
    entries = np.column_stack([light, colors, *([] if alpha is None else [alpha])])
    _, first = np.unique(entries, axis=0, return_index=True)
    return colors[first], None if alpha is None else alpha[first], n_iter


def _indices(
    counted: Histogram,
    colors: NDArray,
    alpha: NDArray | None,
    space: Space,
    dither: str,
    options: dict[str, Any],
) -> NDArray:
    """Return the entry of each pixel: shape (frames, height, width).

    Fully transparent pixels get the entry after the last colour.
    """
    if len(colors) == 0:
        return np.zeros(counted.codes.shape, np.uint8)
    rows = points(counted.colors, counted.opacity, space)
    entries = points(colors, None if counted.opacity is None else alpha, space)
    kind = np.uint8 if len(colors) + counted.hidden <= 256 else np.int32
    if dither == "none":
        labels, _ = assign(rows, entries, **options)
        return np.append(labels, len(colors)).astype(kind)[counted.codes]
    from lloydia.images.dither import blue_noise, floyd_steinberg

    method = blue_noise if dither == "blue-noise" else floyd_steinberg
    return np.stack([method(frame, rows, entries).astype(kind) for frame in counted.codes])


def _unused(colors: NDArray) -> NDArray:
    """Return a dark colour that is not among these, shape (1, 3)."""
    step = 1 if colors.dtype.kind == "u" else 1 / 255
    taken = set(map(tuple, colors.tolist()))
    blues = (step * i for i in range(len(colors) + 1))
    free = next(blue for blue in blues if (0, 0, blue) not in taken)
    return np.array([[0, 0, free]], dtype=colors.dtype)


def _painted(pixels: NDArray, indices: NDArray, colors: NDArray, alpha: NDArray | None) -> NDArray:
    """Return the picture in the palette's colours, in the original's shape."""
    channels = 1 if pixels.ndim == 2 else pixels.shape[-1]
    table = colors[:, : 1 if channels <= 2 else 3]
    if alpha is not None:
        table = np.column_stack([table, alpha])
    return table[indices].reshape(pixels.shape)
