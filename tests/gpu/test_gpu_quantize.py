"""Quantising pictures that live on a GPU: the host's palette and pixels, in tensors there."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.images import quantize

torch = pytest.importorskip("torch")

Y, X = np.mgrid[:48, :60]
PHOTO = np.stack([4 * X, 5 * Y, 255 - 2 * X - 2 * Y, 4 * X], axis=2).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dither", ["none", "blue-noise"])
@pytest.mark.parametrize("space", ["RGB", "Oklab"])
def test_the_same_as_on_the_host(channels, dither, space):
    pixels = PHOTO[..., :channels].copy()
    there = torch.as_tensor(pixels).cuda()
    expected = quantize(pixels, 9, dither=dither, space=space)
    found = quantize(there, 9, dither=dither, space=space)
    assert found.image.device == found.indices.device == there.device
    np.testing.assert_array_equal(found.image.cpu().numpy(), expected.image)
    np.testing.assert_array_equal(found.indices.cpu().numpy(), expected.indices)
    np.testing.assert_array_equal(found.palette.colors, expected.palette.colors)
    assert found.n_iter == expected.n_iter


def test_cupy():
    cupy = pytest.importorskip("cupy")
    found = quantize(cupy.asarray(PHOTO[..., :3]), 9)
    assert isinstance(found.image, cupy.ndarray)
    np.testing.assert_array_equal(cupy.asnumpy(found.image), quantize(PHOTO[..., :3], 9).image)


def test_the_host_s_picture_on_the_device():
    expected, found = quantize(PHOTO, 9), quantize(PHOTO, 9, device="cuda")
    assert isinstance(found.image, np.ndarray)
    np.testing.assert_array_equal(found.image, expected.image)
