"""Blue noise has no low frequencies; dithered areas have the right mean."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.images.blue_noise import texture
from lloydia.images.dither import blue_noise, floyd_steinberg

METHODS = [floyd_steinberg, blue_noise]
BLACK_WHITE = np.array([[0, 0, 0], [255, 255, 255]], np.float32)


def test_the_texture_has_each_threshold_once():
    thresholds = texture()
    ranks = np.sort(thresholds.ravel()) * thresholds.size - 0.5
    np.testing.assert_allclose(ranks, np.arange(thresholds.size), atol=1e-2)
    assert not thresholds.flags.writeable


def test_the_texture_is_blue():
    power = np.abs(np.fft.fft2(texture() - 0.5)) ** 2
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(64), np.fft.fftfreq(64)))
    low = power[(frequency > 0) & (frequency < 0.1)].mean()
    assert low < 1e-3 * power.mean()  # white noise has 1
    assert power[frequency > 0.35].mean() > 1.2 * power.mean()


def test_every_threshold_is_evenly_spread():
    for level in (0.05, 0.3, 0.5, 0.8):
        ones = texture() < level
        blocks = ones.reshape(8, 8, 8, 8).mean(axis=(1, 3))
        assert abs(blocks - level).max() < 0.08


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", [20, 77, 128, 230])
def test_the_mean_of_an_area_is_its_colour(method, level):
    points = np.array([[level] * 3, [0] * 3, [255] * 3], np.float32)
    entries = method(np.zeros((64, 128), np.int32), points, BLACK_WHITE)
    tolerance = 0.01 if method is floyd_steinberg else 0.002
    assert np.mean(entries) == pytest.approx(level / 255, abs=tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_colours_of_the_palette_stay(method):
    points = np.random.default_rng(0).random((6, 4)).astype(np.float32)
    codes = np.random.default_rng(1).integers(0, 6, (20, 30), dtype=np.int32)
    np.testing.assert_array_equal(method(codes, points, points), codes)


@pytest.mark.parametrize("method", METHODS)
def test_pixels_left_out_get_the_next_entry(method):
    points = np.array([[100] * 3, [0] * 3, [255] * 3], np.float32)
    codes = np.zeros((16, 16), np.int32)
    codes[:, 8] = -1
    entries = method(codes, points, BLACK_WHITE)
    assert (entries[:, 8] == 2).all()
    assert set(np.unique(np.delete(entries, 8, axis=1))) == {0, 1}


def test_errors_that_nothing_repays_do_not_pile_up():
    # Red beyond the palette, then a grey that the palette has.
    points = np.array([[255, 0, 0], [100, 100, 100]], np.float32)
    palette = np.array([[120, 0, 0], [100, 100, 100], [255, 100, 100]], np.float32)
    codes = np.zeros((32, 32), np.int32)
    codes[:, 16:] = 1
    entries = floyd_steinberg(codes, points, palette)
    assert (entries[:, 18:] == 1).all()


def test_floyd_and_steinberg_by_hand():
    points = np.array([[0.5], [0.0], [1.0]], np.float32)
    codes = np.zeros((3, 5), np.int32)
    value, entries = np.full((4, 7), 0.5), np.zeros((3, 5), np.int32)
    for y in range(3):
        step = 1 if y % 2 == 0 else -1
        for x in range(5)[::step]:
            wanted = min(max(value[y, x + 1], 0), 1)
            entries[y, x] = wanted > 0.5
            error = wanted - entries[y, x]
            value[y, x + 1 + step] += 7 / 16 * error
            value[y + 1, x + 1 - step] += 3 / 16 * error
            value[y + 1, x + 1] += 5 / 16 * error
            value[y + 1, x + 1 + step] += 1 / 16 * error
    palette = np.array([[0], [1]], np.float32)
    np.testing.assert_array_equal(floyd_steinberg(codes, points, palette), entries)


def test_two_colours_are_mixed_by_the_formula():
    rng = np.random.default_rng(2)
    points, palette = (rng.random((n, 3)).astype(np.float32) for n in (50, 9))
    codes = np.tile(np.arange(50, dtype=np.int32).repeat(64), (64, 1))
    entries = blue_noise(codes, points, palette)
    for i, x in enumerate(points.astype(float)):
        distances = ((palette - x) ** 2).sum(axis=1)
        a = distances.argmin()
        side = palette.astype(float) - palette[a]
        length = (side**2).sum(axis=1)
        t = np.divide(side @ (x - palette[a]), length, where=length > 0, out=np.zeros(9))
        cost = distances[a] - t**2 * length + 0.1 * t * (1 - t) * length
        cost[t < 1 / 32] = np.inf
        b = cost.argmin()
        share = t[b] if t[b] >= 1 / 32 else 0
        found = np.bincount(entries[:, 64 * i : 64 * i + 64].ravel(), minlength=9) / 4096
        assert found[a] == pytest.approx(1 - share, abs=1e-3)
        assert share == 0 or found[b] == pytest.approx(share, abs=1e-3)
