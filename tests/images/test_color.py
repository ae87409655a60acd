"""Colour spaces: the formulas, the way back, the points that are clustered."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

from lloydia.images.color import SPACES, space

NAMES = [known.name for known in SPACES]
HUES = ("HSV", "HSL", "HSI")


@pytest.fixture(scope="module")
def lattice():
    """Every fifth level of the 8-bit cube in each channel."""
    axis = np.arange(0, 256, 5, dtype=np.uint8)
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)


@pytest.fixture(scope="module")
def edges():
    """All 12 edges of the 8-bit cube, and what is a level from grey."""
    ramp = np.arange(256)
    lines = []
    for fixed in np.ndindex(3, 3, 3):
        ends = [(0 * ramp, ramp, 0 * ramp + 255)[which] for which in fixed]
        lines.append(np.stack(ends, axis=-1))
    grey = np.stack([ramp] * 3, axis=-1)
    lines += [(grey + step).clip(0, 255) for step in np.eye(3, dtype=int)]
    return np.concatenate(lines).astype(np.uint8)


@pytest.mark.parametrize("name", NAMES)
def test_the_way_back(name, lattice, edges):
    there = space(name)
    for pixels in (lattice, edges):
        values = there.from_rgb(pixels)
        assert values.dtype == np.float32
        back = there.to_rgb(values) * 255.0
        assert np.abs(back - pixels).max() < 0.01
        assert np.array_equal(there.to_rgb(values, np.uint8), pixels)


@pytest.mark.parametrize("name", NAMES)
def test_the_way_back_from_points(name, lattice, edges):
    there = space(name)
    for pixels in (lattice, edges):
        assert np.array_equal(there.colors(there.points(pixels), np.uint8), pixels)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.uint16, np.float32, np.float64])
def test_other_types(name, dtype):
    there, rng = space(name), np.random.default_rng(0)
    unit = rng.random((4, 5, 6, 3))
    pixels = np.rint(unit * 65535).astype(dtype) if dtype is np.uint16 else unit.astype(dtype)
    values = there.from_rgb(pixels)
    assert values.shape == pixels.shape
    assert values.dtype == (np.float64 if dtype is np.float64 else np.float32)
    back = there.to_rgb(values, dtype)
    assert back.dtype == dtype
    if dtype is np.uint16:
        assert np.abs(back.astype(int) - pixels).max() <= 1
    else:
        assert np.abs(back - pixels).max() < {np.float32: 2e-6, np.float64: 1e-12}[dtype]


@pytest.mark.parametrize("name", NAMES)
def test_channels_stay_in_their_range(name, lattice):
    values = space(name).from_rgb(lattice)
    for j, channel in enumerate(space(name).channels):
        assert values[:, j].min() >= channel.low
        assert values[:, j].max() <= channel.high
        assert not channel.is_angle or values[:, j].max() < 360


@pytest.mark.parametrize(
    ("name", "theirs", "order"),
    [("HSV", colorsys.rgb_to_hsv, (0, 1, 2)), ("HSL", colorsys.rgb_to_hls, (0, 2, 1))],
)
def test_like_colorsys(name, theirs, order, lattice):
    pixels = lattice[::37] / 255.0
    expected = np.array([theirs(*pixel) for pixel in pixels])[:, order] * [360, 1, 1]
    assert np.abs(space(name).from_rgb(pixels) - expected).max() < 1e-9


def test_like_scikit_image(lattice):
    color = pytest.importorskip("skimage.color")
    pixels = lattice / 255.0
    hsv = color.rgb2hsv(pixels) * [360, 1, 1]
    assert np.abs(space("HSV").from_rgb(pixels) - hsv).max() < 1e-9
    # Their matrix and their white point have six and five digits.
    assert np.abs(space("Lab").from_rgb(pixels) - color.rgb2lab(pixels)).max() < 0.02


@pytest.mark.parametrize(
    ("name", "rgb", "expected"),
    [
        # Stored 188 is half of the light; 10 and 128 by the formula of the standard, by hand.
        ("linear", (188, 0, 255), (0.5028864, 0, 1)),
        ("sRGB", (128, 10, 255), (0.73666, 0.21865, 1)),
        ("CMY", (255, 0, 51), (0, 1, 0.8)),
        # Gonzalez and Woods: the primaries have one third of the intensity of white.
        ("HSI", (255, 0, 0), (0, 1, 1 / 3)),
        ("HSI", (0, 0, 255), (240, 1, 1 / 3)),
        ("HSI", (255, 255, 0), (60, 1, 2 / 3)),
        ("HSI", (90, 90, 90), (0, 0, 90 / 255)),
        # Lindbloom's calculator, for D65.
        ("Lab", (255, 0, 0), (53.2408, 80.0925, 67.2032)),
        ("Lab", (0, 0, 255), (32.2970, 79.1875, -107.8602)),
        # Ottosson's page, through CSS Color 4's table of named colours.
        ("Oklab", (255, 0, 0), (0.62796, 0.22486, 0.12585)),
        ("Oklab", (0, 255, 0), (0.86644, -0.23389, 0.17950)),
        ("Oklab", (255, 255, 255), (1, 0, 0)),
    ],
)
def test_published_values(name, rgb, expected):
    values = space(name).from_rgb(np.array(rgb, dtype=np.uint8))
    assert values == pytest.approx(expected, abs=2e-3 if name == "Lab" else 1e-4)


@pytest.mark.parametrize("name", HUES)
def test_hues_are_around_a_circle(name):
    there = space(name)
    height = {"HSV": 0.9, "HSL": 0.5, "HSI": 0.3}[name]
    values = np.array([[359.0, 1.0, 181.0], [0.5] * 3, [height] * 3])
    points = there.embed(values)
    near, far = np.linalg.norm(points[:, 1:] - points[:, :1], axis=0)
    assert near < far / 50
    assert there.lift(points) == pytest.approx(values)
    mean = there.lift(points[:, :2].mean(axis=1, keepdims=True))
    assert min(mean[0], 360 - mean[0]) < 1e-9


@pytest.mark.parametrize("name", HUES)
def test_hue_does_not_matter_without_chroma(name):
    hue = np.arange(0, 360.0, 7)
    grey = np.stack([hue, 0 * hue, 0 * hue + 0.4])
    dark = np.stack([hue, 0 * hue + 1, 0 * hue])
    for values in (grey, dark):
        assert np.ptp(space(name).embed(values), axis=1) == pytest.approx(0.0)


@pytest.mark.parametrize("name", ["RGB", "CMY"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_points_of_stored_values_are_integers(name, dtype):
    pixels = np.random.default_rng(0).integers(0, np.iinfo(dtype).max + 1, (999, 3)).astype(dtype)
    full = np.iinfo(dtype).max
    expected = pixels if name == "RGB" else full - pixels
    assert np.array_equal(space(name).points(pixels), expected)


@pytest.mark.parametrize("name", ["sRGB", "linear", *HUES, "Lab", "Oklab"])
def test_points_are_multiples_of_the_step(name, lattice):
    points = space(name).points(lattice)
    assert points.dtype == np.float32
    steps = points / space(name).step
    assert np.array_equal(steps, np.rint(steps))
    assert not np.signbit(points[points == 0]).any()


@pytest.mark.parametrize("name", [*HUES, "Lab", "Oklab"])
def test_greys_have_no_colour(name):
    grey = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    points = space(name).points(grey)
    chroma = points[:, 1:] if name in ("Lab", "Oklab") else points[:, :2]
    assert not chroma.any()


def test_names_in_any_case():
    assert all(space(name.swapcase()) is space(name) for name in NAMES)


def test_unknown_space_lists_all():
    with pytest.raises(
        ValueError, match="Unknown colour space 'YUV': use one of RGB, sRGB"
    ) as error:
        space("YUV")
    assert all(name in str(error.value) for name in NAMES)


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (np.zeros((4, 4)), r"shape \(4, 4\) do not have three channels"),
        (np.full((1, 3), 255.0), "reach from 255 to 255: scale them"),
        (np.array([[0.1, np.nan, 0.2]]), "pixels hold NaN"),
        (np.zeros((2, 3), dtype=np.int64), "type int64 are not supported"),
    ],
)
def test_bad_pixels(pixels, message):
    for method in (space("Lab").from_rgb, space("RGB").points):
        with pytest.raises(ValueError, match=message):
            method(pixels)
