r"""The similarity of a picture to its original: PSNR and SSIM.

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

from lloydia.backends.cpu.runtime.compiled import kernel
from lloydia.backends.cpu.runtime.pool import run, threads_of

__all__ = ["TAPS", "decibels", "psnr", "shown", "squared_error", "ssim"]

TAPS = 11  # the width and height of the window in pixels
DEVIATION = 1.5
BLOCK = 1 << 20  # the number of samples that are subtracted at a time
ROWS = 64  # the number of rows of windows that a thread takes at a time


def psnr(original: NDArray, other: NDArray) -> float:
    """Return the peak signal-to-noise ratio in decibels; infinity for equal pictures.

    Parameters
    ----------
    original, other : ndarray of uint8, uint16, or floating in [0, 1], of one shape
    """
    return decibels(squared_error(original, other) / original.size, _peak(original))


def squared_error(original: NDArray, other: NDArray) -> float:
    """Return the sum of the squared differences of samples; it is exact for whole numbers."""
    total, samples, others = 0.0, original.ravel(), other.ravel()
    for start in range(0, original.size, BLOCK):
        part = slice(start, start + BLOCK)
        difference = np.subtract(samples[part], others[part], dtype=np.float64)
        total += float(np.square(difference, out=difference).sum())
    return total


def decibels(error: float, peak: float = 255.0) -> float:
    """Return the PSNR of a mean squared error; infinity for 0."""
    return 10 * math.log10(peak**2 / error) if error else math.inf


def ssim(original: NDArray, other: NDArray, n_threads: int | None = None) -> float:
    """Return the mean structural similarity: 1 for equal pictures.

    Parameters
    ----------
    original, other : ndarray of shape (height, width, channels)
        uint8, uint16, or floating in [0, 1]; at least 11 pixels high and wide.
    n_threads : int or None
        None: all processors.  The result does not depend on it.

    Raises
    ------
    ValueError
        If the pictures are smaller than the window.
    """
    height, width, channels = original.shape
    if min(height, width) < TAPS:
        raise ValueError(
            f"The picture has {width} x {height} pixels, and SSIM needs at least 11 x 11: use a "
            "larger picture."
        )
    peak = _peak(original)
    constants = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    window = _window()
    sums = np.empty((channels, height - TAPS + 1))
    for c in range(channels):
        x, y = (np.ascontiguousarray(a[..., c], dtype=np.float64) for a in (original, other))

        def add(_: int, start: int, stop: int, x: NDArray = x, y: NDArray = y, c: int = c) -> None:
            similarities(x, y, window, *constants, sums[c], start, stop)

        run(add, sums.shape[1], ROWS, threads_of(n_threads))
    return float(sums.mean() / (width - TAPS + 1))


def _window() -> NDArray[np.float64]:
    """Return the weights of the window along one side, which sum to 1."""
    away = np.arange(TAPS) - TAPS // 2
    weights = np.exp(-0.5 * (away / DEVIATION) ** 2)
    return weights / weights.sum()


@kernel
def similarities(x, y, window, c1, c2, sums, start, stop):
    """Write the sum of similarities for each row of windows from `start` to `stop`.

    The window is separable: means are computed along the columns first, then along the rows, of x,
    y, x^2 + y^2 and x y.
    """
    taps = len(window)
    inner = x.shape[1] - taps + 1
    columns = np.empty((4, x.shape[1]))
    means = np.empty((4, inner))
    for top in range(start, stop):
        columns[:] = 0
        for i in range(taps):
            weight = window[i]
            for j in range(x.shape[1]):
                a, b = x[top + i, j], y[top + i, j]
                columns[0, j] += weight * a
                columns[1, j] += weight * b
                columns[2, j] += weight * (a * a + b * b)
                columns[3, j] += weight * (a * b)
        means[:] = 0
        for m in range(4):
            for i in range(taps):
                weight = window[i]
                for j in range(inner):
                    means[m, j] += weight * columns[m, i + j]
        total = 0.0
        for j in range(inner):
            product = means[0, j] * means[1, j]
            squares = means[0, j] * means[0, j] + means[1, j] * means[1, j]
            upper = (2 * product + c1) * (2 * (means[3, j] - product) + c2)
            total += upper / ((squares + c1) * (means[2, j] - squares + c2))
        sums[top] = total


def _peak(picture: NDArray) -> float:
    return float(np.iinfo(picture.dtype).max) if picture.dtype.kind == "u" else 1.0


def shown(picture: NDArray) -> NDArray:
    """Return the visible part of a picture: with alpha, its colours times alpha, and alpha.

    Parameters
    ----------
    picture : ndarray of uint8 or uint16, shape (..., channels)
        With 2 or 4 channels, the last one is alpha.
    """
    if picture.shape[-1] not in (2, 4):
        return picture
    alpha = picture[..., -1:]
    colors = np.rint(picture[..., :-1] * (alpha / _peak(picture))).astype(picture.dtype)
    return np.concatenate([colors, alpha], axis=-1)
