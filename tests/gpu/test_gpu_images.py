"""Pictures on a real GPU: the same segments as on the host, in arrays of the same library there."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.images import boundaries, segment

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def picture():
    rng = np.random.default_rng(0)
    y, x = np.indices((90, 120))
    smooth = np.stack([x + y, 2 * x, 240 - y, 40 * (x % 7)], axis=-1)
    return (smooth + rng.integers(0, 12, smooth.shape)).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("xy", [0.0, 0.5])
def test_the_same_as_on_the_host(picture, dtype, channels, xy):
    full = {np.uint8: 1, np.uint16: np.uint16(257), np.float32: np.float32(1 / 255)}[dtype]
    pixels = (picture[..., :channels] * full).astype(dtype)
    there = torch.as_tensor(pixels).cuda()
    expected, found = segment(pixels, 6, xy=xy), segment(there, 6, xy=xy)
    assert found.device == str(there.device)
    for name in ("labels", "image"):
        array = getattr(found, name)
        assert array.device == there.device
        assert array.cpu().numpy().tobytes() == getattr(expected, name).tobytes()
    assert found.centers.tobytes() == expected.centers.tobytes()
    assert found.palette.tobytes() == expected.palette.tobytes()
    edge = boundaries(found.labels)
    assert np.array_equal(edge.cpu().numpy(), boundaries(expected.labels))


def test_a_host_picture_goes_there_and_back(picture):
    expected, found = segment(picture, 6), segment(picture, 6, device="cuda")
    assert found.device.startswith("cuda")
    assert isinstance(found.labels, np.ndarray)
    assert np.array_equal(found.image, expected.image)


def test_cupy(picture):
    cupy = pytest.importorskip("cupy")
    found = segment(cupy.asarray(picture), 6)
    assert isinstance(found.labels, cupy.ndarray)
    assert np.array_equal(found.image.get(), segment(picture, 6).image)
