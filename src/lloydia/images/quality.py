r"""How near a picture is to its original: PSNR and SSIM.

* PSNR, in decibels, is ``10 log10(peak^2 / mean squared error)``, over all samples.
* SSIM is the mean structural similarity of Z. Wang, A. C. Bovik, H. R. Sheikh and E. P. Simoncelli,
  "Image quality assessment: from error visibility to structural similarity", *IEEE Transactions on
  Image Processing* 13(4), 2004: with means, variances and covariance in a window around each pixel,

  .. math:: \mathrm{SSIM}(x, y) = \frac{(2\mu_x\mu_y + C_1)(2\sigma_{xy} + C_2)}
            {(\mu_x^2 + \mu_y^2 + C_1)(\sigma_x^2 + \sigma_y^2 + C_2)},

  where the window is 11 x 11, a Gaussian of deviation 1.5, ``C_1 = (0.01 peak)^2`` and
  ``C_2 = (0.03 peak)^2``; windows lie within the picture.  Colours: the mean over the channels.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

__all__ = ["psnr", "ssim"]

RADIUS = 5
_TAPS = np.exp(-0.5 * (np.arange(-RADIUS, RADIUS + 1) / 1.5) ** 2)
WINDOW = _TAPS / _TAPS.sum()


def psnr(original: NDArray, other: NDArray) -> float:
    """Return the peak signal-to-noise ratio in decibels; infinity for equal pictures.

    Parameters
    ----------
    original, other : ndarray of uint8, uint16, or floating in [0, 1], of one shape
    """
    difference = np.subtract(original, other, dtype=np.float64)
    error = float(np.mean(np.square(difference, out=difference)))
    return 10 * math.log10(_peak(original) ** 2 / error) if error else math.inf


def ssim(original: NDArray, other: NDArray) -> float:
    """Return the mean structural similarity: 1 for equal pictures.

    Parameters
    ----------
    original, other : ndarray of shape (height, width, channels)
        uint8, uint16, or floating in [0, 1]; at least 11 pixels high and wide.

    Raises
    ------
    ValueError
        The pictures are smaller than the window.
    """
    if min(original.shape[:2]) < len(WINDOW):
        height, width = original.shape[:2]
        raise ValueError(f"SSIM needs 11 x 11 pixels at least; the picture is {width} x {height}.")
    peak = _peak(original)
    channels = range(original.shape[2])
    return float(np.mean([_channel(original[..., c], other[..., c], peak) for c in channels]))


def _channel(x: NDArray, y: NDArray, peak: float) -> float:
    x, y = x.astype(np.float64), y.astype(np.float64)
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    mean_x, mean_y = _blur(x), _blur(y)
    products = mean_x * mean_y
    squares = mean_x**2 + mean_y**2
    variances = _blur(x * x + y * y) - squares
    covariance = _blur(x * y) - products
    upper = (2 * products + c1) * (2 * covariance + c2)
    return float(np.mean(upper / ((squares + c1) * (variances + c2))))


def _blur(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted means of the windows that lie within the picture."""
    inner = slice(RADIUS, -RADIUS)
    return correlate1d(correlate1d(values, WINDOW, axis=0)[inner], WINDOW, axis=1)[:, inner]


def _peak(picture: NDArray) -> float:
    return float(np.iinfo(picture.dtype).max) if picture.dtype.kind == "u" else 1.0


def shown(picture: NDArray) -> NDArray:
    """Return what is seen of a picture: with alpha, its colours times alpha, and alpha.

    Parameters
    ----------
    picture : ndarray of uint8 or uint16, shape (..., channels)
        Alpha is the last of 2 or 4 channels.
    """
    if picture.shape[-1] not in (2, 4):
        return picture
    alpha = picture[..., -1:]
    colors = np.rint(picture[..., :-1] * (alpha / _peak(picture))).astype(picture.dtype)
    return np.concatenate([colors, alpha], axis=-1)
