"""What a picture is clustered by: its colours, and where pixels are."""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrays import array_of, on_host
from lloydia.data.device_arrays import as_tensor, load_torch, on_gpu
from lloydia.images import color
from lloydia.images.colors import CHANNELS
from lloydia.images.pixels import check_range, levels, refuse_path
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
    "at_most",
    "black_to_white",
    "check_segmenting",
    "flat_of",
    "placed",
    "rgb_of",
    "starts_of",
]

# The seedings of KMeans that do not depend on the order of rows.
SEEDINGS = ("k-means++", "random", "farthest", "k-means||")

# With a larger weight, places could overflow float32.
MOST_XY = 1e30


def check_segmenting(k: Any, init: Any, xy: Any, n_threads: Any) -> None:
    """Raise InvalidParameterError if a parameter of a segmentation is out of range."""
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


def flat_of(pixels: Any) -> tuple[Any, Any]:
    """Return the picture as an ndarray or a tensor on a GPU, and its pixels as rows."""
    refuse_path(pixels)
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
        check_range(on_host(flat[:, -1]), "alphas")
    return pixels, flat


def placed(points: Any, shape: tuple[int, ...], reach: float) -> Any:
    """Append the x and y of each pixel, scaled so that the picture's longer side is `reach`."""
    height, width = shape[:2]
    places = np.indices((height, width), dtype=np.float32)[::-1].reshape(2, -1).T
    places *= np.float32(reach / max(height, width))
    if on_gpu(points):
        torch = load_torch()
        return torch.cat([points, torch.as_tensor(places.copy(), device=points.device)], dim=1)
    return np.hstack([points, places])


def black_to_white(space: color.Space, flat: Any) -> float:
    """Return the distance between the points of black and white for this type of pixels."""
    dtype = np.dtype(str(flat.dtype).removeprefix("torch."))
    ends = np.array([[0] * 3, [int(levels(dtype))] * 3], dtype=dtype)
    return float(np.linalg.norm(np.diff(space.points(ends), axis=0)))


def at_most(k: int, n_colors: int) -> int:
    """Return the number of segments; warn if the picture has fewer colours than `k`."""
    if k > n_colors:
        warnings.warn(
            f"the picture has fewer colours ({n_colors}) than {option('k', k)}: it gets {n_colors} "
            "segments.",
            stacklevel=3,
        )
    return min(k, n_colors)


def starts_of(init: Any, k: int, space: color.Space, values: NDArray) -> NDArray:
    """Return the points of the initial colours."""
    given = array_of("init", on_host(init))
    # Plain Python numbers take the type of the picture, if that holds them exactly.
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
    return space.points(rgb_of(given))


def rgb_of(values: NDArray) -> NDArray:
    """Return colours with three channels; those of grey are equal."""
    return np.repeat(values, 3, axis=1) if values.shape[1] == 1 else values
