r"""Colour spaces: conversions from and to RGB, and the points that are clustered.

====== ======================================= ====================================================
name   channels                                what it is
====== ======================================= ====================================================
RGB    R, G, B in [0, 1]                       the values as stored
sRGB   R, G, B in [0, 1]                       the sRGB curve applied to the stored values
linear R, G, B in [0, 1]                       linear light: the sRGB curve undone
HSV    H in [0, 360), S and V in [0, 1]        hue, saturation, value
HSL    H in [0, 360), S and L in [0, 1]        hue, saturation, lightness
HSI    H in [0, 360), S and I in [0, 1]        hue, saturation, intensity
CMY    C, M, Y in [0, 1]                       ``1 - RGB``: the same clusters as RGB
Lab    L in [0, 100], a and b in [-128, 128]   CIELAB, white D65
Oklab  L in [0, 1], a and b in [-0.5, 0.5]     Ottosson's space, close to perceived differences
====== ======================================= ====================================================

**sRGB and RGB.**  The numbers in an ordinary picture file are sRGB values already.  The spaces RGB,
linear, Lab and Oklab read them as such.  The space sRGB reads the stored values as linear light and
applies the sRGB curve, like the conversion "RGB to sRGB" of other libraries.  That is right for a
rendering or a scan that holds linear light; in a photograph it brightens the shadows.

**Points.**  k-means clusters :meth:`Space.points`, in float32.  In RGB and CMY the points are the
stored values themselves (0 to 255 for uint8).  In the other spaces they are computed in float64 and
rounded to multiples of `step`.  Mathematical libraries differ only in digits far below `step`, and
no 8-bit colour lies so near to the middle of two multiples that this could matter.  So an 8-bit
picture has the same points on every machine, and the chroma of greys is exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.images import curves, hues
from lloydia.images.pixels import checked, levels, stored, unit
from lloydia.spelling import meant

__all__ = ["SPACES", "Channel", "Space", "space"]

Map = Callable[[NDArray], NDArray]

BLOCK = 1 << 13  # colours at a time, so that intermediate arrays stay in the cache
FINE = 2.0**-20


@dataclass(frozen=True)
class Channel:
    """A channel of a colour space.

    Attributes
    ----------
    name : str
        A letter, such as ``"H"``.
    low, high : float
        The range of values.
    is_angle : bool
        Whether the values are an angle in degrees; then `high` is the same angle as `low`.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    is_angle: bool = False


def _same(values: NDArray) -> NDArray:
    return values


@dataclass(frozen=True)
class Space:
    """A colour space; :func:`space` returns one by name.

    Attributes
    ----------
    name : str
        The name, such as ``"Oklab"``.
    channels : tuple of 3 Channel
        Names and ranges of the channels.
    encode, decode : callable
        Functions from stored RGB values in [0, 1] to the channels and back, on float64 arrays of
        shape (3, m).
    embed, lift : callable
        Functions from the channels to the points that are clustered, and back.
    step : float or None
        Points are multiples of it; None if the points are the stored values.

    Examples
    --------
    >>> from lloydia.images.color import space
    >>> space("HSV").from_rgb([[1.0, 0.0, 0.0], [0.0, 0.0, 0.5]])
    array([[  0. ,   1. ,   1. ],
           [240. ,   1. ,   0.5]])
    """

    name: str
    channels: tuple[Channel, Channel, Channel]
    encode: Map
    decode: Map
    embed: Map = _same
    lift: Map = _same
    step: float | None = FINE

    def from_rgb(self, pixels: Any) -> NDArray:
        """Convert RGB pixels to the channels of this space.

        Parameters
        ----------
        pixels : array-like of shape (..., 3)
            uint8, uint16, or floating in [0, 1].

        Returns
        -------
        values : ndarray of shape (..., 3)
            The channels: float64 for float64 pixels, otherwise float32.  They are computed in
            float64 and rounded once.

        Raises
        ------
        ValueError
            If the pixels have another shape or type, or a float is not in [0, 1].
        """
        pixels = checked(pixels)
        wide = np.float64 if pixels.dtype == np.float64 else np.float32
        return in_blocks(lambda part: self.encode(unit(part)), pixels, np.dtype(wide))

    def to_rgb(self, values: Any, dtype: Any = None) -> NDArray:
        """Convert channels of this space to RGB pixels.

        Parameters
        ----------
        values : array-like of shape (..., 3)
            Channels, as :meth:`from_rgb` returns them; angles may be any number of degrees.
        dtype : dtype, default=None
            The type of the result: uint8 or uint16 (rounded to the nearest level), or a floating
            type (values in [0, 1]).  None: the type of `values` if it is floating, otherwise
            float64.

        Returns
        -------
        pixels : ndarray of shape (..., 3)
            RGB values; colours outside of the RGB cube are clipped to it.
        """
        values = np.asarray(values)
        if dtype is None:
            dtype = values.dtype if values.dtype.kind == "f" else np.float64
        dtype = np.dtype(dtype)
        return in_blocks(
            lambda part: stored(self.decode(part.astype(np.float64)), dtype), values, dtype
        )

    def points(self, pixels: Any) -> NDArray[np.float32]:
        """Convert RGB pixels to the points that k-means clusters.

        The Euclidean distance of two points is the distance of their colours in this space.

        Parameters
        ----------
        pixels : array-like of shape (..., 3)
            uint8, uint16, or floating in [0, 1].

        Returns
        -------
        points : ndarray of shape (..., 3), float32
            In RGB and CMY on the scale of the stored values, otherwise on that of the channels.

        Raises
        ------
        ValueError
            If the pixels have another shape or type, or a float is not in [0, 1].
        """
        pixels = checked(pixels)
        if self.step is None:
            scale, step = levels(pixels.dtype), 1.0 if pixels.dtype.kind == "u" else None
        else:
            scale, step = 1.0, self.step

        def of(part: NDArray) -> NDArray:
            values = self.embed(self.encode(unit(part))) * scale
            # Adding 0.0 turns -0.0 into 0.0.
            return values if step is None else np.rint(values / step) * step + 0.0

        return in_blocks(of, pixels, np.dtype(np.float32))

    def colors(self, points: Any, dtype: Any) -> NDArray:
        """Convert points, such as cluster centres, to RGB pixels.

        Parameters
        ----------
        points : array-like of shape (..., 3)
            Points, as :meth:`points` returns them.
        dtype : dtype
            The type of the pixels from which the points were computed, and of the result.

        Returns
        -------
        pixels : ndarray of shape (..., 3)
            RGB values; colours outside of the RGB cube are clipped to it.
        """
        dtype, values = np.dtype(dtype), np.asarray(points)
        scale = levels(dtype) if self.step is None else 1.0
        return in_blocks(
            lambda part: stored(self.decode(self.lift(part / scale)), dtype), values, dtype
        )


# Other names of the same space.
SAME = {"cielab": "Lab", "hsb": "HSV"}


def space(name: str) -> Space:
    """Return the colour space with this name.

    Parameters
    ----------
    name : str
        RGB, sRGB, linear, HSV, HSL, HSI, CMY, Lab or Oklab; capitals make no difference.

    Returns
    -------
    Space

    Raises
    ------
    ValueError
        If there is no such colour space; the message lists all names.

    Examples
    --------
    >>> from lloydia.images.color import space
    >>> space("lab").name
    'Lab'
    """
    for known in SPACES:
        if str(name).lower() == known.name.lower():
            return known
    names = [known.name for known in SPACES]
    raise ValueError(
        f"Unknown colour space {name!r}: use one of {', '.join(names)}{meant(name, names, SAME)}"
    )


def in_blocks(function: Map, values: NDArray, dtype: np.dtype) -> NDArray:
    """Apply a function of colours of shape (3, m) to colours of shape (..., 3), in blocks."""
    flat = values.reshape(-1, 3)
    out = np.empty(flat.shape, dtype=dtype)
    for start in range(0, len(flat), BLOCK):
        part = np.ascontiguousarray(flat[start : start + BLOCK].T)
        out[start : start + BLOCK] = function(part).T
    return out.reshape(values.shape)


def _complement(values: NDArray) -> NDArray:
    return 1.0 - values


def _channels(names: str, *ranges: tuple[float, float]) -> tuple[Channel, Channel, Channel]:
    first, second, third = (
        Channel(name, *bounds) for name, bounds in zip(names, ranges or ((0.0, 1.0),) * 3)
    )
    return first, second, third


def _with_hue(name: str, encode: Map, decode: Map) -> Space:
    channels = (Channel("H", 0.0, 360.0, is_angle=True), Channel("S"), Channel(name[2]))
    chroma = hues.CHROMAS[name]
    embed, lift = partial(hues.embed, chroma=chroma), partial(hues.lift, chroma=chroma)
    return Space(name, channels, encode, decode, embed, lift)


SPACES = (
    Space("RGB", _channels("RGB"), _same, _same, step=None),
    Space("sRGB", _channels("RGB"), curves.bend, curves.straighten),
    Space("linear", _channels("RGB"), curves.straighten, curves.bend),
    _with_hue("HSV", hues.to_hsv, hues.from_hsv),
    _with_hue("HSL", hues.to_hsl, hues.from_hsl),
    _with_hue("HSI", hues.to_hsi, hues.from_hsi),
    Space("CMY", _channels("CMY"), _complement, _complement, step=None),
    Space(
        "Lab",
        _channels("Lab", (0.0, 100.0), (-128.0, 128.0), (-128.0, 128.0)),
        curves.to_lab,
        curves.from_lab,
        step=256 * FINE,
    ),
    Space(
        "Oklab",
        _channels("Lab", (0.0, 1.0), (-0.5, 0.5), (-0.5, 0.5)),
        curves.to_oklab,
        curves.from_oklab,
    ),
)
