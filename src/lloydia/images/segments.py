"""A picture in k colours: its pixels clustered in a colour space.

**Which mean.**  A segment is painted in the mean of its pixels' *stored* values, rounded to the
nearest level, in whatever space it was found.  Of all single colours that has the least squared
error against the picture as it is stored and compared (PSNR); stored values are close to how light
looks; and sums of levels are integers, so it is exact.  The mean of linear light, which a blur
would show, is brighter than most pixels of a segment that is not uniform.

**Where pixels are.**  With a weight `xy`, a pixel's place counts too, in units of black to white:
with 1, pixels at opposite ends of the longer side are as far apart as black from white.  Every
pixel is then a point of its own, of five features.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt
from scipy.sparse.csgraph import connected_components

from lloydia.data.arrays import array_of, home_of, on_host
from lloydia.data.device_arrays import as_tensor, load_torch, on_gpu
from lloydia.estimators.kmeans import KMeans
from lloydia.images import color
from lloydia.images.colors import CHANNELS, Colors, distinct, each
from lloydia.imports import load
from lloydia.parameters import (
    InvalidParameterError,
    check_choice,
    check_int,
    check_threads,
    is_name,
)
from lloydia.spelling import option

__all__ = [
    "SEEDINGS",
    "Clustering",
    "Segments",
    "boundaries",
    "segment",
    "segment_by",
    "without_specks",
]

# Those of KMeans that do not go by the order of rows.
SEEDINGS = ("k-means++", "random", "farthest", "k-means||")
# Places weighed by it are float32 numbers.
MOST_XY = 1e30


@dataclass(frozen=True)
class Segments:
    """A segmented picture.

    Attributes
    ----------
    labels : array of shape (height, width), int32
        In the library and on the device of the pixels, as is `image`; an ndarray on the host.
    palette : ndarray of shape (k, 3), or (k,) for a grey picture
        The colour of each segment, in the type of the pixels: ``palette[labels]`` is the picture
        but for its alpha.
    image : array
        The picture in these colours, its shape, type and alpha as they were; half precision is
        widened to float32.
    centers : ndarray of shape (k, 3), or (k, 5) with `xy`, float32
        In the points of the colour space, see :meth:`lloydia.images.color.Space.points`.
    inertia : float
        In the squared units of the points.
    n_iter : int
    converged : bool
        Whether it ended before `max_iter`.
    n_colors : int
        Distinct colours that can be seen in the picture.
    device : str
        Where it was computed.
    seconds_counting, seconds_seeding, seconds_iterating, seconds_painting : float
        Wall-clock time to find the colours and their points, the starts, the centres and labels of
        the colours, and the labels and colours of the pixels.
    """

    labels: Any
    palette: NDArray
    image: Any
    centers: NDArray[np.float32]
    inertia: float
    n_iter: int
    converged: bool
    n_colors: int
    device: str
    seconds_counting: float
    seconds_seeding: float
    seconds_iterating: float
    seconds_painting: float


@dataclass(frozen=True)
class Clustering:
    """What became of the points of a picture, see :class:`Segments` for the attributes.

    Here `labels` has shape (m,), one label a point.
    """

    labels: NDArray[np.int32]
    centers: NDArray[np.float32]
    inertia: float
    n_iter: int
    converged: bool
    device: str
    seconds_seeding: float
    seconds_iterating: float


def segment(
    pixels: Any,
    k: int,
    space: str = "oklab",
    *,
    init: Any = "k-means++",
    random_state: Any = 0,
    max_iter: int = 300,
    xy: float = 0.0,
    device: str = "auto",
    n_threads: int | None = None,
) -> Segments:
    """Cluster the pixels of a picture in a colour space, and paint each in its segment's mean.

    Labels and centres are those of clustering every pixel from the same start, to the last bit;
    the work is done on the distinct colours (:mod:`lloydia.images.colors`).

    Parameters
    ----------
    pixels : array of shape (height, width) or (height, width, c)
        Grey (c = 1) or RGB (3), or either with alpha (2, 4); uint8, uint16, or floating in [0, 1];
        NumPy, torch, CuPy.  Alpha is kept; pixels of alpha 0 have labels but no say.
    k : int
        Number of segments; a picture with fewer colours is given as many as it has, with a warning.
    space : str, default="oklab"
        One of RGB, sRGB, linear, HSV, HSL, HSI, CMY, Lab, Oklab, see :mod:`lloydia.images.color`.
    init : {"k-means++", "random", "farthest", "k-means||"} or array, default="k-means++"
        The starting colours, or how they are drawn among the picture's, by the number of their
        pixels.  An array has the type of the pixels and the shape of `palette`.
    random_state : int, RandomState instance or None, default=0
    max_iter : int, default=300
        The iterations end before it once no colour changes its segment.
    xy : float, default=0.0
        What the place of a pixel weighs: more gives segments that hang together, see above.
    device : str, default="auto"
        As in :class:`lloydia.KMeans`.
    n_threads : int or None, default=None
        As in :class:`lloydia.KMeans`.

    Returns
    -------
    Segments

    Raises
    ------
    ValueError
        A parameter is out of range, the space is not known, or the pixels are no picture.
    """
    _check(k, init, xy, n_threads)

    def cluster(
        points: Any, weights: NDArray | None, k: int, start: Any, place: str | None
    ) -> Clustering:
        began = time.perf_counter()
        model = KMeans(
            k,
            init=start,
            n_init=1,
            max_iter=max_iter,
            tol=0,
            random_state=random_state,
            device=place if place and device == "auto" else device,
            n_threads=n_threads,
        ).fit(points, sample_weight=weights)
        seconds = time.perf_counter() - began
        return Clustering(
            labels=on_host(model.labels_),
            centers=on_host(model.cluster_centers_),
            inertia=float(model.inertia_),
            n_iter=int(model.n_iter_),
            converged=bool(model.converged_),
            device=model.device_,
            seconds_seeding=model.seconds_seeding_,
            seconds_iterating=seconds - model.seconds_seeding_,
        )

    return segment_by(cluster, pixels, k, space, init=init, xy=xy, n_threads=n_threads)


def segment_by(
    cluster: Callable[[Any, NDArray | None, int, Any, str | None], Clustering],
    pixels: Any,
    k: int,
    space: str,
    *,
    init: Any,
    xy: float = 0.0,
    every_pixel: bool = False,
    n_threads: int | None = None,
) -> Segments:
    """Cluster the pixels of a picture by a function, and paint each in its segment's mean.

    Parameters
    ----------
    cluster : callable
        ``cluster(points, weights, k, start, place)``: points of shape (m, d), the pixels that each
        stands for or None, the number of clusters, the name of a seeding or the starting points,
        and the GPU that the pixels are on or None.
    every_pixel : bool, default=False
        Whether each pixel is a point of its own, where it is its colour otherwise.
    pixels, k, space, init, xy, n_threads
        As in :func:`segment`.

    Returns
    -------
    Segments
    """
    chosen, home = color.space(space), home_of(pixels)
    pixels, flat = _flat(pixels)
    load("lloydia.images.cube")  # no part of the time
    threads = load("lloydia.backends.cpu.runtime.pool").threads_of(n_threads)

    began = time.perf_counter()
    colors = distinct(flat, threads)
    n_colors = int(np.count_nonzero(colors.counts))
    points = chosen.points(_rgb(colors.values))
    if xy or every_pixel:
        colors, points = each(flat), colors.per_pixel(points)
    if xy:
        points = _placed(points, pixels.shape, xy * _black_to_white(chosen, flat))
    counting = time.perf_counter() - began
    k = _at_most(k, n_colors)
    start = init if isinstance(init, str) else _starts(init, k, chosen, colors.values)
    weights = None if (colors.counts == 1).all() else colors.counts
    found = cluster(points, weights, k, start, str(flat.device) if on_gpu(flat) else None)
    began = time.perf_counter()
    palette = _means(colors, found.labels, found.centers, chosen)
    labels, image = colors.paint(flat, found.labels, palette, threads)
    painting = time.perf_counter() - began
    return Segments(
        labels=home(labels.reshape(pixels.shape[:2])),
        palette=palette[:, 0] if palette.shape[1] == 1 else palette,
        image=home(image.reshape(pixels.shape)),
        centers=found.centers,
        inertia=found.inertia,
        n_iter=found.n_iter,
        converged=found.converged,
        n_colors=n_colors,
        device=found.device,
        seconds_counting=counting,
        seconds_seeding=found.seconds_seeding,
        seconds_iterating=found.seconds_iterating,
        seconds_painting=painting,
    )


def boundaries(labels: Any) -> Any:
    """Return where a segment ends: pixels whose right or lower neighbour has another label.

    Parameters
    ----------
    labels : array of shape (height, width)
        Of any library.

    Returns
    -------
    array of shape (height, width), bool
    """
    edge = labels != labels
    edge[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    edge[:-1] |= labels[:-1] != labels[1:]
    return edge


def without_specks(labels: Any, least: int) -> NDArray[np.int32]:
    """Return labels in which small pieces of segments belong to the nearest piece that is not.

    Parameters
    ----------
    labels : array of shape (height, width)
        Of any library.
    least : int
        Of pixels.  A piece hangs together to the right, left, above and below; where all have fewer
        pixels nothing changes.

    Returns
    -------
    ndarray of shape (height, width)
    """
    labels = on_host(labels)
    # Half the memory, of which a photograph takes much.
    short = np.int32 if labels.size < 2**31 else np.int64
    number = np.arange(labels.size, dtype=short).reshape(labels.shape)
    across, down = labels[:, :-1] == labels[:, 1:], labels[:-1] == labels[1:]
    one = np.concatenate([number[:, :-1][across], number[:-1][down]])
    other = np.concatenate([number[:, 1:][across], number[1:][down]])
    joined = sp.coo_array((np.ones(len(one), bool), (one, other)), shape=[labels.size] * 2)
    pieces = connected_components(joined, directed=False)[1]
    small = (np.bincount(pieces) < least)[pieces].reshape(labels.shape)
    if small.all() or not small.any():
        return labels
    nearest = distance_transform_edt(small, return_distances=False, return_indices=True)
    return labels[tuple(nearest)]


def _check(k: Any, init: Any, xy: Any, n_threads: Any) -> None:
    check_int("k", k)
    check_threads(n_threads)
    if not isinstance(xy, Real) or not 0 <= float(xy) <= MOST_XY:
        raise InvalidParameterError(
            f"{option('xy', xy)} must be a number >= 0, at most {MOST_XY:g}."
        )
    if is_name(init):
        check_choice("init", init, SEEDINGS, ", or an array of colours")
    elif xy:
        raise ValueError(
            f"init holds colours without places, and {option('xy', xy)} needs places: use the name "
            f"of a seeding, such as {option('init', 'k-means++')}, or {option('xy', 0)}."
        )


def _flat(pixels: Any) -> tuple[Any, Any]:
    """Return the picture as an ndarray or a tensor on a GPU, and its pixels, one a row."""
    color.refuse_path(pixels)
    pixels = as_tensor(pixels) if on_gpu(pixels) else np.asarray(on_host(pixels))
    shape = tuple(pixels.shape)
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in CHANNELS):
        raise ValueError(
            f"an array of shape {shape} is not a picture: give the shape (height, width), or "
            "(height, width, c) with c = 1 (grey), 3 (RGB), or one more for alpha."
        )
    if 0 in shape:
        raise ValueError(f"the picture has no pixels: its shape is {shape}.")
    kind = str(pixels.dtype).removeprefix("torch.")
    if kind not in ("uint8", "uint16", "float16", "bfloat16", "float32", "float64"):
        raise ValueError(
            f"pixels of type {kind} are not supported: use uint8, uint16 or floats in [0, 1]."
        )
    channels = shape[2] if len(shape) == 3 else 1
    if on_gpu(pixels):
        pixels = pixels.float() if kind in ("float16", "bfloat16") else pixels
        flat = pixels.contiguous().reshape(-1, channels)
    else:
        flat = np.ascontiguousarray(pixels).reshape(-1, channels)
    if "float" in kind and CHANNELS[channels] < channels:
        color.check_range(on_host(flat[:, -1]), "alphas")
    return pixels, flat


def _rgb(values: NDArray) -> NDArray:
    return np.repeat(values, 3, axis=1) if values.shape[1] == 1 else values


def _placed(points: Any, shape: tuple[int, ...], reach: float) -> Any:
    """Append each pixel's x and y; the longer side of the picture is `reach` long."""
    height, width = shape[:2]
    places = np.indices((height, width), dtype=np.float32)[::-1].reshape(2, -1).T
    places *= np.float32(reach / max(height, width))
    if on_gpu(points):
        torch = load_torch()
        return torch.cat([points, torch.as_tensor(places.copy(), device=points.device)], dim=1)
    return np.hstack([points, places])


def _black_to_white(space: color.Space, flat: Any) -> float:
    """Return how far black is from white, in points of this type of pixels."""
    dtype = np.dtype(str(flat.dtype).removeprefix("torch."))
    ends = np.array([[0] * 3, [int(color.levels(dtype))] * 3], dtype=dtype)
    return float(np.linalg.norm(np.diff(space.points(ends), axis=0)))


def _at_most(k: int, n_colors: int) -> int:
    if k > n_colors:
        warnings.warn(
            f"the picture has fewer colours ({n_colors}) than {option('k', k)}: it gets {n_colors} "
            "segments.",
            stacklevel=3,
        )
    return min(k, n_colors)


def _starts(init: Any, k: int, space: color.Space, values: NDArray) -> NDArray:
    """Return the points of starting colours."""
    given = array_of("init", on_host(init))
    # Plain numbers have no type of their own; what is not whole, or too large, is no colour of
    # whole numbers.
    if isinstance(init, list | tuple) and given.dtype.kind in "iuf":
        with np.errstate(invalid="ignore", over="ignore"):
            cast = given.astype(values.dtype)
        if values.dtype.kind == "f" or (cast == given).all():
            given = cast
    if given.dtype != values.dtype:
        raise ValueError(
            f"init holds {given.dtype} and the picture {values.dtype}: give colours in the type of "
            "the picture."
        )
    if given.dtype.kind == "f" and not ((given >= 0) & (given <= 1)).all():
        raise ValueError(
            "init holds colours outside of [0, 1], the range of floating pixels: scale them."
        )
    given = given.reshape(len(given), math.prod(given.shape[1:]))
    if given.shape != (k, values.shape[1]):
        raise ValueError(
            f"init holds {len(given)} colours of {given.shape[1]} channels: {k} of "
            f"{values.shape[1]} are needed."
        )
    return space.points(_rgb(given))


def _means(colors: Colors, found: NDArray, centers: NDArray, space: color.Space) -> NDArray:
    """Return the mean of the stored values of each segment; of one that is empty, its centre."""
    counts, dtype = colors.counts, colors.values.dtype
    weight = np.bincount(found, weights=counts, minlength=len(centers))
    none = weight == 0
    palette = space.colors(centers[:, :3], dtype)[:, : colors.values.shape[1]]
    for j, channel in enumerate(colors.values.T):
        sums = np.bincount(found, weights=counts * channel, minlength=len(centers))
        mean = sums[~none] / weight[~none]
        palette[~none, j] = np.rint(mean) if dtype.kind == "u" else mean
    return palette
