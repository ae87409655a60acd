"""Indexed PNG and GIF files come back as they were written, frame by frame."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from lloydia.data.columns import DataError
from lloydia.images.formats.files import read
from lloydia.images.formats.indexed import binary, read_animation, write_gif, write_png
from lloydia.images.quantization import quantize

RNG = np.random.default_rng(0)
BASE = RNG.integers(0, 256, (20, 25, 3), dtype=np.uint8)
FILM = np.stack([BASE] * 4)
for i in range(4):
    FILM[i, 3 * i : 3 * i + 6, 5:12] = RNG.integers(0, 256, (6, 7, 3))
DURATIONS, LOOP = [100, 50, 0, 70], 3
ALPHA = np.zeros((4, 20, 25, 1), np.uint8)
GROWS, MOVES, FLICKERS = ALPHA.copy(), ALPHA.copy(), 255 * RNG.integers(0, 2, ALPHA.shape)
for i in range(4):
    GROWS[i, :, : 6 * (i + 1)] = 255
    MOVES[i, 4:12, 5 * i : 5 * i + 5] = 255

FILMS = {
    "opaque": FILM,
    "grows": np.concatenate([FILM, GROWS], axis=3),
    "moves": np.concatenate([FILM, MOVES], axis=3),
    "flickers": np.concatenate([FILM, FLICKERS.astype(np.uint8)], axis=3),
}


@pytest.mark.parametrize("k", [1, 2, 4, 5, 16, 17, 256])
@pytest.mark.parametrize("opaque", [True, False])
def test_png(tmp_path, k, opaque):
    alpha = RNG.integers(0, 3, (20, 25, 1), dtype=np.uint8) * 100
    pixels = BASE if opaque else np.concatenate([BASE, alpha], axis=2)
    q = quantize(pixels, max(k, 1 if opaque else 2))
    write_png(tmp_path / "a.png", q.indices, q.palette, {"dpi": (72.0, 72.0)})
    file = Image.open(tmp_path / "a.png")
    assert file.mode == "P"
    np.testing.assert_array_equal(np.asarray(file), q.indices)
    picture = read(tmp_path / "a.png")
    np.testing.assert_array_equal(picture.pixels, q.image[..., :3])
    if not opaque:
        np.testing.assert_array_equal(picture.alpha, q.image[..., 3])
    assert picture.info["dpi"] == pytest.approx((72, 72), abs=0.02)


@pytest.mark.parametrize("k", [8, 255, 256])
@pytest.mark.parametrize("per_frame", [False, True])
@pytest.mark.parametrize("name", FILMS)
def test_animations(tmp_path, name, per_frame, k):
    film = FILMS[name]
    results = [quantize(frame, k) for frame in film] if per_frame else [quantize(film, k)]
    indices = np.stack([q.indices for q in results]) if per_frame else results[0].indices
    image = np.stack([q.image for q in results]) if per_frame else results[0].image
    write_gif(tmp_path / "a.gif", indices, [q.palette for q in results], DURATIONS, LOOP)
    back = read_animation(tmp_path / "a.gif")
    np.testing.assert_array_equal(seen(back.pixels), seen(image))
    assert (back.durations, back.loop) == (DURATIONS, LOOP)


def seen(pixels):
    if pixels.shape[-1] == 3:
        return np.concatenate([pixels, np.full_like(pixels[..., :1], 255)], axis=-1)
    return pixels * (pixels[..., 3:] > 0)


def test_what_does_not_change_is_not_written_again(tmp_path):
    q = quantize(FILM, 16)
    write_gif(tmp_path / "film.gif", q.indices, [q.palette], DURATIONS)
    write_gif(tmp_path / "one.gif", q.indices[:1], [q.palette])
    whole = (tmp_path / "one.gif").stat().st_size
    assert (tmp_path / "film.gif").stat().st_size < 2 * whole
    assert read_animation(tmp_path / "film.gif").loop is None


def test_equal_frames_are_joined_and_last_as_long(tmp_path):
    q = quantize(FILM[[0, 0, 1]], 16)
    write_gif(tmp_path / "a.gif", q.indices, [q.palette], [100, 50, 70])
    assert read_animation(tmp_path / "a.gif").durations == [150, 70]


@pytest.mark.parametrize("name", ["opaque", "moves"])
def test_stills(tmp_path, name):
    q = quantize(FILMS[name][1], 8)
    write_gif(tmp_path / "a.gif", q.indices[np.newaxis], [q.palette])
    assert read_animation(tmp_path / "a.gif") is None
    picture = read(tmp_path / "a.gif")
    parts = picture.pixels if picture.alpha is None else np.dstack([picture.pixels, picture.alpha])
    np.testing.assert_array_equal(seen(parts), seen(q.image))


def test_half_transparent_pixels():
    pixels = np.array([[[1, 2, 3, 127], [1, 2, 3, 128]]], np.uint8)
    np.testing.assert_array_equal(binary(pixels)[..., 3], [[0, 255]])


def test_a_damaged_animation(tmp_path):
    q = quantize(FILM, 16)
    write_gif(tmp_path / "a.gif", q.indices, [q.palette], DURATIONS)
    data = (tmp_path / "a.gif").read_bytes()
    (tmp_path / "cut.gif").write_bytes(data[: 4 * len(data) // 5])
    with pytest.raises(DataError, match="damaged or cut short"):
        read_animation(tmp_path / "cut.gif")
