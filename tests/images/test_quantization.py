"""Quantising arrays: k colours, those of KMeans on every pixel, in any layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lloydia import KMeans, images
from lloydia.images.quality import psnr
from lloydia.images.quantization import DITHERS, Quantized, quantize

RNG = np.random.default_rng(0)
# Smooth, so that it has few clusters and many colours.
Y, X = np.mgrid[:48, :60]
PHOTO = np.stack([4 * X + Y // 2, 5 * Y, 255 - 2 * X - 2 * Y], axis=2).clip(0, 255).astype(np.uint8)
PHOTO += RNG.integers(0, 2, PHOTO.shape, dtype=np.uint8) * (PHOTO < 255)
OPACITY = (np.hypot(X - 30, Y - 24) < 20) * np.uint8(255)
SOFT = (OPACITY // 255 * (100 + 2 * X)).clip(0, 255).astype(np.uint8)


def with_alpha(colors, alpha):
    return np.dstack([colors, alpha])


def test_the_palette_is_that_of_every_pixel():
    q = quantize(PHOTO, 12)
    rows = PHOTO.reshape(-1, 3)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    fitted = KMeans(12, random_state=0).fit(distinct.astype(np.float32), sample_weight=counts)
    every = KMeans(12, init=fitted.cluster_centers_, n_init=1).fit(rows.astype(np.float32))
    ours = q.palette.colors[np.lexsort(q.palette.colors.T)]
    theirs = np.rint(every.cluster_centers_).astype(np.uint8)
    np.testing.assert_array_equal(ours, theirs[np.lexsort(theirs.T)])
    assert q.n_colors == len(distinct)


@pytest.mark.parametrize("space", ["RGB", "Oklab", "HSV"])
def test_each_pixel_gets_the_nearest_entry(space):
    q = quantize(PHOTO, 9, space=space)
    chosen = images.color.space(space)
    pixels, entries = chosen.points(PHOTO), chosen.points(q.palette.colors)
    distances = ((pixels[:, :, np.newaxis].astype(float) - entries) ** 2).sum(axis=3)
    np.testing.assert_array_equal(q.indices, distances.argmin(axis=2))
    np.testing.assert_array_equal(q.image, q.palette.colors[q.indices])
    np.testing.assert_allclose(
        q.palette.shares, np.bincount(q.indices.ravel(), minlength=9) / q.indices.size
    )
    assert q.palette.space == space


LAYOUTS = {
    "grey": PHOTO[..., 0],
    "grey, one channel": PHOTO[..., :1],
    "grey and alpha": with_alpha(PHOTO[..., 0], SOFT),
    "RGB": PHOTO,
    "RGBA": with_alpha(PHOTO, SOFT),
    "16 bits": PHOTO.astype(np.uint16) * 257,
    "16 bits, RGBA": with_alpha(PHOTO, SOFT).astype(np.uint16) * 257,
    "float32": PHOTO / np.float32(255),
    "float64, RGBA": with_alpha(PHOTO, SOFT) / 255,
    "a film": np.stack([PHOTO, PHOTO[::-1]]),
    "strided": PHOTO[::2, ::-1],
}


@pytest.mark.slow
@pytest.mark.parametrize("dither", DITHERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dither):
    pixels = LAYOUTS[layout]
    q = quantize(pixels, 16, dither=dither)
    assert q.image.shape == pixels.shape
    assert q.image.dtype == pixels.dtype
    assert q.indices.shape == (pixels.shape if pixels.ndim == 2 else pixels.shape[:-1])
    assert q.indices.dtype == np.uint8
    assert len(q.palette) == 16
    channels = 1 if pixels.ndim == 2 else pixels.shape[-1]
    table = q.palette.colors[:, : 1 if channels < 3 else 3]
    if channels in (2, 4):
        table = np.column_stack([table, q.palette.alpha])
        hidden = pixels[..., -1] == 0
        np.testing.assert_array_equal(q.image[..., -1] == 0, hidden)
        assert (q.indices[hidden] == 15).all()
    else:
        assert q.palette.alpha is None
    np.testing.assert_array_equal(q.image.reshape(-1, channels), table[q.indices.ravel()])


def test_bits_do_not_change_the_palette():
    q = quantize(PHOTO, 10)
    deep = quantize(PHOTO.astype(np.uint16) * 257, 10)
    assert abs(deep.palette.colors / 257 - q.palette.colors).max() <= 0.51
    np.testing.assert_array_equal(deep.palette.bytes(), q.palette.bytes())


def test_a_film_has_one_palette():
    film = np.stack([PHOTO, PHOTO[::-1], PHOTO])
    together = quantize(film, 20)
    tall = quantize(film.reshape(-1, 60, 3), 20)
    np.testing.assert_array_equal(together.palette.colors, tall.palette.colors)
    np.testing.assert_array_equal(together.image, tall.image.reshape(film.shape))
    dithered = quantize(film, 20, dither="floyd-steinberg").image
    np.testing.assert_array_equal(dithered[0], dithered[2])


def test_what_stands_still_does_not_flicker():
    film = np.stack([PHOTO, PHOTO])
    film[1, :10, :10] = 0
    still = quantize(film, 8, dither="blue-noise").indices[:, 10:, 10:]
    np.testing.assert_array_equal(still[0], still[1])


def test_hidden_colours_count_for_nothing():
    wild = with_alpha(np.where(OPACITY[..., np.newaxis] > 0, PHOTO, 255 - PHOTO), OPACITY)
    calm = with_alpha(PHOTO * (OPACITY[..., np.newaxis] > 0), OPACITY)
    np.testing.assert_array_equal(quantize(wild, 8).image, quantize(calm, 8).image)
    opaque = quantize(calm, 8).palette.colors[:-1]
    rows = PHOTO[OPACITY > 0]
    alone = quantize(rows[np.newaxis], 7).palette.colors
    np.testing.assert_array_equal(opaque, alone)


def test_the_transparent_entry_has_a_colour_of_its_own():
    pixels = with_alpha(np.zeros((2, 3, 3), np.uint8), np.array([[0, 255, 255]] * 2, np.uint8))
    colors = quantize(pixels, 2).palette.colors.tolist()
    assert colors == [[0, 0, 0], [0, 0, 1]]


FEW = {
    1: (np.full((3, 4, 3), 9, np.uint8), "one colour"),
    3: (np.array([[[1, 2, 3], [4, 5, 6], [7, 8, 9]]], np.uint8), "3 colours"),
    2: (np.array([[[1, 0], [4, 200], [7, 0]]], np.uint8), "2 colours"),
    0: (np.zeros((2, 2, 4), np.uint8), "one colour"),
}


@pytest.mark.parametrize("n", FEW)
@pytest.mark.parametrize("dither", DITHERS)
def test_more_colours_than_there_are_is_said(n, dither):
    pixels, says = FEW[n]
    q = quantize(pixels, 5, dither=dither)
    assert q.note == f"the picture has {says}, all of them in the palette"
    assert len(q.palette) == q.n_colors == max(n, 1)
    assert q.n_iter == 0
    seen = pixels * (pixels[..., -1:] > 0) if pixels.shape[-1] in (2, 4) else pixels
    np.testing.assert_array_equal(q.image[..., -1], seen[..., -1])
    assert quantize(pixels, max(n, 1)).note is None


def test_equal_entries_are_one():
    # Two greys of half a level: their centres round to one colour.
    pixels = np.array([[[10, 10, 10], [10, 10, 11]] * 4 + [[200, 0, 0]]], np.uint8).repeat(3, 0)
    q = quantize((pixels / 255).astype(np.float32), 3)
    assert len(q.palette) == 3
    quantized = quantize(np.repeat(PHOTO // 64 * 64, 2, axis=0), 5)
    assert len(np.unique(quantized.palette.colors, axis=0)) == len(quantized.palette)


def test_dithering_keeps_the_mean():
    flat = quantize(PHOTO, 8)
    for dither in DITHERS[1:]:
        mixed = quantize(PHOTO, 8, dither=dither)
        blocks = [
            image.astype(float).reshape(6, 8, 6, 10, 3).mean(axis=(1, 3))
            for image in (PHOTO, flat.image, mixed.image)
        ]
        assert abs(blocks[2] - blocks[0]).mean() < 0.7 * abs(blocks[1] - blocks[0]).mean()
        assert psnr(PHOTO, mixed.image) < psnr(PHOTO, flat.image)


def test_palette_and_names():
    np.testing.assert_array_equal(
        images.palette(PHOTO, 4).colors, quantize(PHOTO, 4).palette.colors
    )
    assert isinstance(images.quantize(PHOTO, k=300), Quantized)
    assert images.quantize(PHOTO, k=300).indices.dtype == np.int32


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    q = quantize(torch.from_numpy(PHOTO), 5)
    np.testing.assert_array_equal(q.image, quantize(PHOTO, 5).image)


@pytest.mark.parametrize("layout", ["grey", "RGBA", "16 bits", "a film"])
def test_tensors_come_back_as_tensors(layout, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("lloydia.data.device_arrays.TORCH", ("cuda", "cpu"))
    pixels = LAYOUTS[layout]
    found, expected = quantize(torch.from_numpy(pixels), 9), quantize(pixels, 9)
    assert isinstance(found.image, torch.Tensor)
    assert isinstance(found.indices, torch.Tensor)
    np.testing.assert_array_equal(found.image.numpy(), expected.image)
    np.testing.assert_array_equal(found.indices.numpy(), expected.indices)


@pytest.mark.parametrize("dither", DITHERS)
@pytest.mark.parametrize("space", ["RGB", "Oklab"])
@pytest.mark.parametrize("opacity", [255, 128, 1])
@pytest.mark.parametrize("kind", ["uint8", "uint16", "float32", "a film"])
def test_a_constant_alpha_changes_nothing(kind, opacity, space, dither):
    pixels = {"uint8": PHOTO, "a film": np.stack([PHOTO, PHOTO[::-1]])}.get(kind)
    if pixels is None:
        pixels = PHOTO.astype("u2") * 257 if kind == "uint16" else PHOTO / np.float32(255)
    alpha = np.full_like(pixels[..., :1], opacity if kind != "float32" else opacity / 255)
    options = {"space": space, "dither": dither}
    plain = quantize(pixels, 11, **options)
    found = quantize(np.concatenate([pixels, alpha], axis=-1), 11, **options)
    np.testing.assert_array_equal(found.indices, plain.indices)
    np.testing.assert_array_equal(found.palette.colors, plain.palette.colors)
    assert (found.palette.alpha == alpha.ravel()[0]).all()
    assert (found.n_iter, found.n_colors) == (plain.n_iter, plain.n_colors)


def test_an_alpha_that_is_constant_where_pixels_are_seen_changes_nothing():
    rng = np.random.default_rng(8)
    tall = rng.integers(0, 256, (40, 30, 3), dtype=np.uint8)
    pixels = with_alpha(
        tall, np.repeat(np.uint8([128, 0]), 20)[:, np.newaxis] * np.ones_like(tall[..., 0])
    )
    plain, found = quantize(tall[:20], 9), quantize(pixels, 10)
    np.testing.assert_array_equal(found.palette.colors[:-1], plain.palette.colors)
    np.testing.assert_array_equal(found.indices[:20], plain.indices)
    assert found.n_iter == plain.n_iter


def test_grey_is_clustered_as_rgb():
    grey, rgb = quantize(PHOTO[..., 0], 9), quantize(PHOTO[..., [0, 0, 0]], 9)
    np.testing.assert_array_equal(grey.indices, rgb.indices)
    assert grey.n_iter == rgb.n_iter


FLOATS = [np.float16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_equal_floating_pixels_are_one_colour(dtype, channels):
    colors = (np.arange(1, 4 * channels + 1).reshape(4, channels) / 16).astype(dtype)
    pixels = colors[RNG.permutation(np.arange(900) % 4).reshape(30, 30)]
    q = quantize(pixels, 6)
    assert (q.n_colors, q.n_iter) == (4, 0)
    assert q.note == "the picture has 4 colours, all of them in the palette"
    np.testing.assert_array_equal(q.image, pixels)
    np.testing.assert_allclose(q.palette.shares, 0.25)
    assert quantize(pixels, 4).note is None
    one = quantize(np.ones((7, 9, channels), dtype), 4)
    assert (one.n_colors, one.note) == (1, "the picture has one colour, all of them in the palette")


def test_minus_zero_is_zero():
    pixels = np.zeros((4, 5, 3))
    pixels[::2] = -0.0
    q = quantize(pixels, 2)
    assert q.n_colors == 1
    assert not np.signbit(q.image).any()


@pytest.mark.parametrize("space", ["RGB", "Oklab"])
def test_floats_are_clustered_as_the_levels_they_stand_for(space):
    pixels = np.repeat(PHOTO, 2, axis=0)
    floats, levels = quantize(pixels / 255, 12, space=space), quantize(pixels, 12, space=space)
    assert abs(floats.palette.colors * 255 - levels.palette.colors).max() <= 0.501
    assert (floats.n_colors, floats.n_iter) == (levels.n_colors, levels.n_iter)


BAD = {
    "NaN": ((np.full((3, 4), np.nan), 2), {}, "pixels hold NaN"),
    "k of 0": ((PHOTO, 0), {}, "k=0 must be an integer >= 1"),
    "space": ((PHOTO, 2), {"space": "CIE"}, "Unknown colour space 'CIE': use one of RGB"),
    "dither": ((PHOTO, 2), {"dither": "bayer"}, "dither='bayer' must be one of 'none'"),
    "a table": ((np.zeros((3, 4, 5), np.uint8), 2), {}, r"shape \(3, 4, 5\) is not a picture"),
    "a name": (("photo.jpg", 3), {}, "^'photo.jpg' is a text, not pixels: .* numpy.asarray"),
    "a path": ((Path("photo.jpg"), 3), {}, "^'photo.jpg' is a text, not pixels"),
    "no pixels": ((np.zeros((0, 4, 3), np.uint8), 2), {}, "is not a picture"),
    "integers": ((PHOTO.astype(int), 2), {}, "type int64"),
    "beyond 1": ((PHOTO.astype(float), 2), {}, "scale them to"),
    "k of 1": ((with_alpha(PHOTO, OPACITY), 1), {}, "k=1 leaves no colour"),
    "threads": ((PHOTO, 2), {"n_threads": 0}, "n_threads=0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    arguments, options, says = BAD[name]
    with pytest.raises(ValueError, match=says):
        quantize(*arguments, **options)
