r"""HSV, HSL and HSI: spaces with an angle, and their points for clustering.

* HSV and HSL: A. R. Smith, "Color gamut transform pairs", SIGGRAPH 1978; G. H. Joblove and
  D. Greenberg, "Color spaces for computer graphics", SIGGRAPH 1978.  Hue runs along the hexagon
  that is the projection of the RGB cube along its grey axis.
* HSI: R. C. Gonzalez and R. E. Woods, "Digital Image Processing", section 6.2.  Hue is the angle
  around the grey axis; ``S = 1 - min / I``.

Hue is in degrees, in [0, 360), and 0 for greys; the other channels are in [0, 1].

**Embedding.**  A hue is an angle: 359 and 1 are neighbours, a mean of angles is not a mean hue, and
the hue of a dark or grey pixel is noise.  The points are therefore ``(C cos H, C sin H, height)``.
The chroma C is the share of pure hue in the colour: ``S V`` in HSV (a cone), ``S (1 - |2 L - 1|)``
in HSL (a double cone), and ``S I`` in HSI.

Colours are float64 arrays of shape (3, m), one row per channel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CHROMAS",
    "embed",
    "from_hsi",
    "from_hsl",
    "from_hsv",
    "lift",
    "to_hsi",
    "to_hsl",
    "to_hsv",
]

Chroma = Callable[[NDArray], NDArray]

# C / S, given the height.
CHROMAS: dict[str, Chroma] = {
    "HSV": lambda value: value,
    "HSL": lambda lightness: 1 - np.abs(2 * lightness - 1),
    "HSI": lambda intensity: intensity,
}


def to_hsv(rgb: NDArray) -> NDArray:
    """Return hue, saturation and value, the largest of R, G and B."""
    low, top = ends(rgb)
    return np.stack([hexagonal(rgb, low, top), ratio(top - low, top), top])


def from_hsv(hsv: NDArray) -> NDArray:
    """Return the RGB values."""
    hue, saturation, value = hsv
    return on_hexagon(hue, saturation * value, value)


def to_hsl(rgb: NDArray) -> NDArray:
    """Return hue, saturation and lightness, the middle of the largest and the least."""
    low, top = ends(rgb)
    lightness = (top + low) / 2
    # Not CHROMAS: near white, rounding could make it less than the chroma.
    room = np.where(lightness <= 0.5, top + low, (1 - top) + (1 - low))
    return np.stack([hexagonal(rgb, low, top), ratio(top - low, room), lightness])


def from_hsl(hsl: NDArray) -> NDArray:
    """Return the RGB values."""
    hue, saturation, lightness = hsl
    chroma = saturation * CHROMAS["HSL"](lightness)
    return on_hexagon(hue, chroma, lightness + chroma / 2)


def to_hsi(rgb: NDArray) -> NDArray:
    """Return hue, saturation and intensity, the mean of R, G and B."""
    r, g, b = rgb
    intensity = (r + g + b) / 3
    hue = degrees(np.arctan2(np.sqrt(3) * (g - b), (r - g) + (r - b)))
    lack = np.maximum(intensity - ends(rgb)[0], 0.0)  # rounding may have raised a grey's least
    return np.stack([hue, ratio(lack, intensity), intensity])


def from_hsi(hsi: NDArray) -> NDArray:
    """Return the RGB values; they exceed 1 for colours outside of the RGB cube."""
    hue, saturation, intensity = hsi
    third = (hue // 120) % 3  # 0, 1, 2: the primary before this hue is red, green, blue
    turn = np.radians(hue % 120)
    first = intensity * (1 + saturation * np.cos(turn) / np.cos(np.pi / 3 - turn))
    last = intensity * (1 - saturation)
    then = 3 * intensity - first - last
    return np.stack(
        [
            np.select([third == 0, third == 1], [first, last], then),
            np.select([third == 0, third == 1], [then, first], last),
            np.select([third == 0, third == 1], [last, then], first),
        ]
    )


def embed(values: NDArray, chroma: Chroma) -> NDArray:
    """Return ``(C cos H, C sin H, height)``."""
    hue, saturation, height = values
    angle, radius = np.radians(hue), saturation * chroma(height)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), height])


def lift(points: NDArray, chroma: Chroma) -> NDArray:
    """Return hue, saturation and height of embedded colours; the inverse of :func:`embed`."""
    x, y, height = points
    saturation = np.minimum(ratio(np.hypot(x, y), chroma(height)), 1.0)
    return np.stack([degrees(np.arctan2(y, x)), saturation, height])


def ends(rgb: NDArray) -> tuple[NDArray, NDArray]:
    """Return the least and the largest of R, G and B."""
    return rgb.min(axis=0), rgb.max(axis=0)


def hexagonal(rgb: NDArray, low: NDArray, top: NDArray) -> NDArray:
    """Return the hue of HSV and HSL: the position on the hexagon, with 60 degrees per side."""
    r, g, b = rgb
    sides = np.select(
        [top == r, top == g],
        [ratio(g - b, top - low), 2 + ratio(b - r, top - low)],
        4 + ratio(r - g, top - low),
    )
    return fold(60 * sides)


def on_hexagon(hue: NDArray, chroma: NDArray, top: NDArray) -> NDArray:
    """Return the RGB values of a hue; the largest is `top`, and the least is ``top - chroma``."""
    place = (np.array([[5.0], [3.0], [1.0]]) + hue / 60) % 6
    return top - chroma * np.minimum(place, 4 - place).clip(0, 1)


def degrees(angle: NDArray) -> NDArray:
    """Return radians in ``[-pi, pi]`` as degrees in [0, 360)."""
    return fold(np.degrees(angle))


def fold(hue: NDArray) -> NDArray:
    """Bring degrees into [0, 360); a remainder alone may round up to 360."""
    turned = hue % 360
    return np.where(turned >= 360, 0.0, turned)


def ratio(part: NDArray, whole: NDArray) -> NDArray:
    """Return ``part / whole``, or 0 if the whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
