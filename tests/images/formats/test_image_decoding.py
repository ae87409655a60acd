"""Files that expand to fill the memory are refused before they are decoded, unless allowed."""

from __future__ import annotations

import io
import os
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from lloydia.data.chunks import memory
from lloydia.data.columns import DataError
from lloydia.images.formats.decoding import sound, whole
from lloydia.images.formats.files import read
from lloydia.images.formats.indexed import read_animation, write_gif
from lloydia.images.quantization import quantize

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (12, 14, 3), dtype=np.uint8)


def gif_of_dots(n_frames, width, height):
    """Return a GIF whose frames change one pixel each of a large canvas."""
    data = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    for i in range(n_frames):
        place = struct.pack("<HHHHB", i % width, 0, 1, 1, 0)
        data += b"!\xf9\x04\x04\x05\0\0\0," + place + b"\x02\x02\x4c\x01\0"
    return data + b";"


def test_the_pixels_of_all_frames_are_counted_first(tmp_path):
    data = gif_of_dots(2000, 5000, 5000)
    assert len(data) < 50_000
    (tmp_path / "a.gif").write_bytes(data)
    with pytest.raises(DataError) as raised:
        read_animation(tmp_path / "a.gif")
    assert str(raised.value) == (
        f"{tmp_path / 'a.gif'} has 2,000 frames of 5,000 x 5,000 pixels, 50,000,000,000 in all, "
        "more than 268,435,455, the limit that guards against files made to fill the memory; "
        "about 1.20 TB are needed; allow_huge=True reads it."
    )


@pytest.fixture
def film(tmp_path):
    pixels = np.stack([np.roll(RGB, i, axis=1) for i in range(4)])
    q = quantize(pixels, 16)
    write_gif(tmp_path / "film.gif", q.indices, [q.palette], [50] * 4)
    return q.image


def test_the_limit_of_frames_is_lifted(tmp_path, film, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4 * 12 * 14 // 3 - 1)
    with pytest.raises(DataError, match="has 4 frames of 14 x 12 pixels, 672 in all"):
        read_animation(tmp_path / "film.gif")
    back = read_animation(tmp_path / "film.gif", allow_huge=True)
    np.testing.assert_array_equal(back.pixels, film)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4 * 12 * 14 // 3)
    assert read_animation(tmp_path / "film.gif") is not None


def test_what_is_needed_must_be_free(tmp_path, film, monkeypatch):
    Image.fromarray(RGB).save(tmp_path / "a.png")
    monkeypatch.setattr(memory, "available", lambda: 6000)
    with pytest.raises(DataError, match=r"has 168 pixels; about 7 kB are needed, 6 kB are fr"):
        read(tmp_path / "a.png")
    with pytest.raises(DataError, match=r"672 in all; about 16 kB are needed, 6 kB are free"):
        read_animation(tmp_path / "film.gif")
    assert read(tmp_path / "a.png", allow_huge=True).pixels.shape == RGB.shape
    assert read_animation(tmp_path / "film.gif", allow_huge=True) is not None

    def unknown():
        raise ValueError("this system does not say")

    monkeypatch.setattr(memory, "available", unknown)
    assert read(tmp_path / "a.png").pixels.shape == RGB.shape


def test_what_is_not_there_is_told(tmp_path, monkeypatch):
    def full(*_):
        raise MemoryError

    Image.fromarray(RGB).save(tmp_path / "a.png")
    monkeypatch.setattr(Image.Image, "convert", full)
    monkeypatch.setattr(Image.Image, "load", full)
    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", full)
    with pytest.raises(DataError, match=r"a\.png needs more memory than is free"):
        read(tmp_path / "a.png")


@pytest.mark.parametrize("name", ["zTXt", "iTXt", "iCCP"])
def test_texts_and_profiles_that_expand(tmp_path, name):
    profile = bytes(36) + b"acsp" + bytes(3_000_000)
    packed = zlib.compress(profile)
    between = b"\1\0\0\0" if name == "iTXt" else b"\0"
    chunk = name.encode() + b"name\0" + between + packed
    Image.fromarray(RGB).save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    put = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    (tmp_path / "bomb.png").write_bytes(data[:33] + put + data[33:])
    before = PngImagePlugin.MAX_TEXT_CHUNK
    with pytest.raises(DataError, match="expands to more than 1,048,576 bytes"):
        read(tmp_path / "bomb.png")
    picture = read(tmp_path / "bomb.png", allow_huge=True)
    np.testing.assert_array_equal(picture.pixels, RGB)
    assert picture.info == ({"icc_profile": profile} if name == "iCCP" else {})
    assert before == PngImagePlugin.MAX_TEXT_CHUNK


def test_a_frame_beyond_the_canvas(tmp_path):
    data = gif_of_dots(2, 5, 5)
    wide = data.rindex(b",") + 5
    data = data[:wide] + struct.pack("<H", 9) + data[wide + 2 :]
    (tmp_path / "a.gif").write_bytes(data)
    with pytest.raises(DataError, match="frame 2 is larger than the animation"):
        read_animation(tmp_path / "a.gif")


@pytest.mark.parametrize("extension", [".png", ".webp", ".tif"])
def test_only_the_first_of_many_is_decoded(tmp_path, extension, monkeypatch):
    frames = [Image.fromarray(np.roll(RGB, i, axis=1)) for i in range(5)]
    options = {"lossless": True} if extension == ".webp" else {}
    path = tmp_path / f"a{extension}"
    frames[0].save(path, save_all=True, append_images=frames[1:], **options)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", RGB[..., 0].size)
    picture = read(path)
    np.testing.assert_array_equal(picture.pixels, RGB)
    assert "holds 5 images, of which the first is taken" in picture.note


class Endless(io.BytesIO):
    """A file without an end, such as /dev/zero."""

    def read(self, size=-1):
        assert size >= 0, "all of it is asked for"
        return bytes(size)

    def readline(self, size=-1):
        return self.read(size)


def test_what_is_no_image_is_not_read_whole():
    with (
        pytest.raises(DataError, match="zero is not an image that Pillow reads"),
        sound("zero", False),
    ):
        whole(Endless(b"00"), "zero", False)


def test_a_file_beyond_the_memory(tmp_path, monkeypatch):
    Image.fromarray(RGB).save(tmp_path / "a.png")
    size = (tmp_path / "a.png").stat().st_size
    monkeypatch.setattr(memory, "available", lambda: size - 1)
    with pytest.raises(DataError, match=rf"a\.png has {size} bytes; about {size} bytes are needed"):
        read(tmp_path / "a.png")


def test_pipes(tmp_path):
    Image.fromarray(RGB).save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    for given in (data, b""):
        reading, writing = os.pipe()
        os.write(writing, given)
        os.close(writing)
        with os.fdopen(reading, "rb") as stream:
            if given:
                assert whole(stream, "pipe", False) == data
            else:
                with pytest.raises(DataError, match="pipe is empty"):
                    whole(stream, "pipe", False)
