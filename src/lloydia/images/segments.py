"""Segmentation: the pixels of a picture clustered in a colour space.

**The colour of a segment.**  A segment is painted in the mean of its pixels' *stored* values,
rounded to the nearest level, in every colour space.  Of all single colours, this one has the least
squared error against the stored picture, hence the highest PSNR.  The mean of integer levels is
exact.  The mean of linear light would be brighter than most pixels of a segment with different
colours.

**Places of pixels.**  With a weight `xy`, the place of a pixel counts as well as its colour.  With
``xy=1``, pixels at opposite ends of the longer side are as far apart as black and white.  Each
pixel is then a point of five features.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrays import home_of, on_host
from lloydia.data.device_arrays import on_gpu
from lloydia.estimators.kmeans import KMeans
from lloydia.images import color
from lloydia.images.colors import Colors, distinct, each
from lloydia.images.segment_points import (
    at_most,
    black_to_white,
    check_segmenting,
    flat_of,
    placed,
    rgb_of,
    starts_of,
)
from lloydia.imports import load

__all__ = ["Clustering", "Segments", "segment", "segment_by"]


@dataclass(frozen=True)
class Segments:
    """A segmented picture, the result of :func:`segment`.

    Attributes
    ----------
    labels : array of shape (height, width), int32
        The segment of each pixel.  `labels` and `image` are arrays of the library and on the device
        of the pixels; ndarrays if the pixels were on the CPU.
    palette : ndarray of shape (k, 3), or (k,) for a grey picture
        The colour of each segment, in the type of the pixels.  ``palette[labels]`` is the image
        without its alpha.
    image : array
        The picture in the colours of the palette, with the shape, type and alpha of the pixels;
        half precision becomes float32.
    centers : ndarray of shape (k, 3), or (k, 5) with `xy`, float32
        The cluster centres, in the coordinates of :meth:`lloydia.images.color.Space.points`.
    inertia : float
        Sum over the pixels of the squared distance to their centres, in the same coordinates.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the fit ended before `max_iter`.
    n_colors : int
        Number of distinct colours of pixels that are not fully transparent.
    device : str
        The device that computed the clusters.
    seconds_counting : float
        Wall-clock time, in seconds, to find the distinct colours and their points.
    seconds_seeding : float
        Wall-clock time, in seconds, to choose the initial centres.
    seconds_iterating : float
        Wall-clock time, in seconds, of the iterations.
    seconds_painting : float
        Wall-clock time, in seconds, to compute the labels and the image.
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
    """A clustering of the points of a picture; see :class:`Segments` for the attributes.

    Here `labels` has shape (m,), one label per point.
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
    """Cluster the pixels of a picture by colour, and paint each segment in its mean colour.

    The fit computes with the distinct colours, weighted by their numbers of pixels.  Labels and
    centres are exactly those of a fit of all pixels from the same initial centres.

    Parameters
    ----------
    pixels : array of shape (height, width) or (height, width, c)
        The picture: grey (c = 1), grey with alpha (2), RGB (3) or RGB with alpha (4).  The type is
        uint8, uint16, or floating with values in [0, 1]; the library is NumPy, torch or CuPy.
        Alpha is kept; fully transparent pixels get a label but do not affect the clusters.
    k : int
        Number of segments; at most the number of colours of the picture.
    space : str, default="oklab"
        The colour space of the distances: RGB, sRGB, linear, HSV, HSL, HSI, CMY, Lab or Oklab; see
        :mod:`lloydia.images.color`.  Capitals make no difference.
    init : {"k-means++", "random", "farthest", "k-means||"} or array, default="k-means++"
        How the initial colours are chosen from those of the picture; see :class:`lloydia.KMeans`.
        Or an array of initial colours with the type of the pixels and the shape of
        ``Segments.palette``.
    random_state : int, RandomState instance or None, default=0
        Seed of the random numbers that choose the initial colours.
    max_iter : int, default=300
        Largest number of iterations; the fit ends earlier if no colour changes its segment.
    xy : float, default=0.0
        Weight of the place of a pixel in addition to its colour; a larger weight gives more compact
        segments.  With 1, pixels at opposite ends of the longer side are as far apart as black and
        white.
    device : str, default="auto"
        As in :class:`lloydia.KMeans`.
    n_threads : int or None, default=None
        As in :class:`lloydia.KMeans`.

    Returns
    -------
    Segments
        The labels, the image in k colours, and more.

    Raises
    ------
    ValueError
        If a parameter is out of range, if there is no such colour space, or if `pixels` is not a
        picture.
    ImportError
        If `device` needs a GPU and PyTorch or Triton is not installed.

    Warns
    -----
    UserWarning
        If the picture has fewer than k colours; it then gets one segment per colour.

    References
    ----------
    S. P. Lloyd, "Least squares quantization in PCM", *IEEE Transactions on Information Theory*
    28(2), 1982; see :class:`lloydia.KMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> from lloydia.images import segment
    >>> pixels = np.array([[[255, 0, 0], [250, 0, 0]], [[0, 0, 255], [0, 0, 255]]], np.uint8)
    >>> segment(pixels, 2).palette[1].tolist()
    [0, 0, 255]
    """
    check_segmenting(k, init, xy, n_threads)

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
    """Cluster the pixels of a picture by a given function, and paint each segment in its mean.

    Parameters
    ----------
    cluster : callable
        It is called as ``cluster(points, weights, k, start, place)``.  `points` has shape (m, d);
        `weights` is the number of pixels of each point, or None; `k` is the number of clusters;
        `start` is the name of a seeding or the initial points; `place` is the GPU that holds the
        pixels, or None.
    every_pixel : bool, default=False
        Whether each pixel is a point; otherwise each distinct colour is a point.
    pixels, k, space, init, xy, n_threads
        As in :func:`segment`.

    Returns
    -------
    Segments
    """
    chosen, home = color.space(space), home_of(pixels)
    pixels, flat = flat_of(pixels)
    load("lloydia.images.cube")  # imported before the clock starts
    threads = load("lloydia.backends.cpu.runtime.pool").threads_of(n_threads)

    began = time.perf_counter()
    colors = distinct(flat, threads)
    n_colors = int(np.count_nonzero(colors.counts))
    points = chosen.points(rgb_of(colors.values))
    if xy or every_pixel:
        colors, points = each(flat), colors.per_pixel(points)
    if xy:
        points = placed(points, pixels.shape, xy * black_to_white(chosen, flat))
    counting = time.perf_counter() - began
    k = at_most(k, n_colors)
    start = init if isinstance(init, str) else starts_of(init, k, chosen, colors.values)
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


def _means(colors: Colors, found: NDArray, centers: NDArray, space: color.Space) -> NDArray:
    """Return the mean stored value of each segment; for an empty segment, its centre."""
    counts, dtype = colors.counts, colors.values.dtype
    weight = np.bincount(found, weights=counts, minlength=len(centers))
    none = weight == 0
    palette = space.colors(centers[:, :3], dtype)[:, : colors.values.shape[1]]
    for j, channel in enumerate(colors.values.T):
        sums = np.bincount(found, weights=counts * channel, minlength=len(centers))
        mean = sums[~none] / weight[~none]
        palette[~none, j] = np.rint(mean) if dtype.kind == "u" else mean
    return palette
