r"""The sRGB curve, and the spaces that are defined on linear light: Lab and Oklab.

* sRGB: IEC 61966-2-1:1999.  A stored value v in [0, 1] stands for the light ``v / 12.92`` up to
  0.04045 and ``((v + 0.055) / 1.055)**2.4`` above.
* Lab: CIE 15:2004, "Colorimetry", with the primaries of sRGB and its white point, D65.
* Oklab: B. Ottosson, "A perceptual color space for image processing", 2020.

Colours are float64 arrays of shape (3, m), one row per channel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["bend", "from_lab", "from_oklab", "straighten", "to_lab", "to_oklab"]

# Linear sRGB to CIE XYZ, from the primaries and the white point of IEC 61966-2-1.
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = XYZ.sum(axis=1, keepdims=True)  # so that greys have a = b = 0

# Oklab: linear sRGB to the responses of cones, and their cube roots to L, a, b.
CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
OPPONENTS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)

# The function f(t) of CIE 15 is a cube root above (6/29)**3, and the tangent at this point below.
KNEE = 6 / 29


def straighten(stored: NDArray) -> NDArray:
    """Return the linear light of stored sRGB values."""
    power = np.maximum((stored + 0.055) / 1.055, 0.0) ** 2.4
    return np.where(stored <= 0.04045, stored / 12.92, power)


def bend(light: NDArray) -> NDArray:
    """Return the stored sRGB values of linear light."""
    root = 1.055 * np.maximum(light, 0.0) ** (1 / 2.4) - 0.055
    return np.where(light <= 0.04045 / 12.92, light * 12.92, root)


def to_lab(stored: NDArray) -> NDArray:
    """Return L in [0, 100], and a and b, of stored sRGB values."""
    t = XYZ @ straighten(stored) / WHITE
    x, y, z = np.where(t > KNEE**3, np.cbrt(t), t / (3 * KNEE**2) + 4 / 29)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def from_lab(lab: NDArray) -> NDArray:
    """Return the stored sRGB values of Lab colours; outside of [0, 1] if not in sRGB."""
    lightness, a, b = lab
    y = (lightness + 16) / 116
    f = np.stack([y + a / 500, y, y - b / 200])
    t = np.where(f > KNEE, f**3, 3 * KNEE**2 * (f - 4 / 29))
    return bend(np.linalg.inv(XYZ) @ (t * WHITE))


def to_oklab(stored: NDArray) -> NDArray:
    """Return L in [0, 1], and a and b, of stored sRGB values."""
    return OPPONENTS @ np.cbrt(CONES @ straighten(stored))


def from_oklab(oklab: NDArray) -> NDArray:
    """Return the stored sRGB values of Oklab colours; outside of [0, 1] if not in sRGB."""
    cones = (np.linalg.inv(OPPONENTS) @ oklab) ** 3
    return bend(np.linalg.inv(CONES) @ cones)
