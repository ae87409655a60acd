"""PSNR and SSIM beside scikit-image's, and what is seen of transparency."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lloydia.images.quality import psnr, shown, ssim

RNG = np.random.default_rng(0)


def pair(dtype, shape=(40, 33, 3)):
    x = RNG.random(shape)
    y = (x + 0.1 * RNG.standard_normal(shape)).clip(0, 1)
    if dtype == np.float64:
        return x, y
    full = np.iinfo(dtype).max
    return (x * full).astype(dtype), (y * full).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float64])
def test_as_scikit_image(dtype):
    metrics = pytest.importorskip("skimage.metrics")
    x, y = pair(dtype)
    peak = 1.0 if dtype == np.float64 else float(np.iinfo(dtype).max)
    of_paper = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    theirs = metrics.structural_similarity(x, y, channel_axis=2, data_range=peak, **of_paper)
    assert ssim(x, y) == pytest.approx(theirs, abs=1e-6)
    noise = metrics.peak_signal_noise_ratio(x, y, data_range=peak)
    assert psnr(x, y) == pytest.approx(noise, abs=1e-9)


def test_the_definition_in_one_window():
    x, y = pair(np.float64, (11, 11, 1))
    away = np.arange(-5, 6)
    weights = np.exp(-(away[:, None] ** 2 + away**2) / (2 * 1.5**2))
    weights /= weights.sum()
    a, b = x[..., 0], y[..., 0]
    mean_a, mean_b = (weights * a).sum(), (weights * b).sum()
    var_a, var_b = (weights * (a - mean_a) ** 2).sum(), (weights * (b - mean_b) ** 2).sum()
    cov = (weights * (a - mean_a) * (b - mean_b)).sum()
    c1, c2 = 0.01**2, 0.03**2
    upper = (2 * mean_a * mean_b + c1) * (2 * cov + c2)
    expected = upper / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))
    assert ssim(x, y) == pytest.approx(expected, abs=1e-12)


def test_equal_and_opposite_pictures():
    x, _ = pair(np.uint8)
    assert psnr(x, x) == math.inf
    assert ssim(x, x) == pytest.approx(1, abs=1e-12)
    black, white = np.zeros((4, 4, 1), np.uint8), np.full((4, 4, 1), 255, np.uint8)
    assert psnr(black, white) == 0
    with pytest.raises(ValueError, match="has 4 x 4 pixels, and SSIM needs at least 11 x 11"):
        ssim(black, white)


def test_hidden_colours_are_not_seen():
    x = np.array([[[200, 100, 50, 0], [200, 100, 50, 255]]], np.uint8)
    np.testing.assert_array_equal(shown(x), [[[0, 0, 0, 0], [200, 100, 50, 255]]])
    np.testing.assert_array_equal(shown(x[..., :3]), x[..., :3])
