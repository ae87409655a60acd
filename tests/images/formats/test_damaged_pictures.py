"""Any bytes are a picture or one sentence: small files of all kinds, changed at random."""

from __future__ import annotations

import io
import struct
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from lloydia.data.columns import DataError
from lloydia.images.formats.files import read, write
from lloydia.images.formats.indexed import read_animation

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 6, 4), dtype=np.uint8)
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
TAGS = {318: (0.3, 0.3), 319: (0.6, 0.3, 0.2, 0.7, 0.1, 0.1)}
INTEGERS = [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\1\0\0\0"]


def saved(mode, form, **options):
    image = Image.fromarray(PIXELS if mode in ("RGBA", "LA") else PIXELS[..., :3])
    stream = io.BytesIO()
    if options.get("save_all"):
        options["append_images"] = [image.rotate(180).convert(mode)]
    image.convert(mode).save(stream, form, **options)
    return stream.getvalue()


def exif():
    tags = Image.Exif()
    tags[0x0112] = 6
    for tag, value in TAGS.items():
        tags[tag] = value
    return tags


SEEDS = {
    **{f"{mode}.png": saved(mode, "PNG") for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")},
    **{f"{mode}.tif": saved(mode, "TIFF") for mode in ("CMYK", "LAB", "F", "I;16")},
    "profile.png": saved("RGB", "PNG", icc_profile=PROFILE, dpi=(3, 5), exif=exif()),
    "film.png": saved("RGB", "PNG", save_all=True),
    "profile.jpg": saved("RGB", "JPEG", icc_profile=PROFILE, exif=exif()),
    "inks.jpg": saved("CMYK", "JPEG"),
    "lzw.tif": saved("RGB", "TIFF", compression="tiff_lzw", tiffinfo=TAGS),
    "pages.tif": saved("RGB", "TIFF", compression="tiff_adobe_deflate", save_all=True),
    "film.gif": saved("P", "GIF", save_all=True, loop=0, duration=30),
    "profile.webp": saved("RGBA", "WEBP", lossless=True, icc_profile=PROFILE, exif=exif()),
    "a.bmp": saved("RGB", "BMP"),
    "a.ppm": saved("RGB", "PPM"),
}

edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(["replace", "insert", "cut", "end", "integer"]),
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=5,
)


def changed(data, changes, mends):
    for place, kind, other in changes:
        at = int(place * len(data))
        if kind == "replace":
            data = data[:at] + other + data[at + len(other) :]
        elif kind == "insert":
            data = data[:at] + other + data[at:]
        elif kind == "cut":
            data = data[:at] + data[at + len(other) :]
        elif kind == "end":
            data = data[: at + 1]
        else:
            data = data[:at] + INTEGERS[other[0] % len(INTEGERS)] + data[at + 4 :]
    return mended(data) if mends else data


def mended(data):
    """Return a PNG with the check sums of its chunks as they ought to be."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        return data
    data, place = bytearray(data), 8
    while place + 12 <= len(data):
        end = place + 8 + struct.unpack_from(">I", data, place)[0]
        if end + 4 > len(data):
            break
        struct.pack_into(">I", data, end, zlib.crc32(data[place + 4 : end]))
        place = end + 4
    return bytes(data)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(sorted(SEEDS)), changes=edits, mends=st.booleans())
def test_any_bytes_are_a_picture_or_one_sentence(tmp_path, name, changes, mends):
    path = tmp_path / name
    path.write_bytes(changed(SEEDS[name], changes, mends))
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr(Image, "MAX_IMAGE_PIXELS", 1_000_000)
        for reader in (read, read_animation):
            found = answer(reader, path)
            if isinstance(found, str):
                assert found.startswith(str(path))
                assert "\n" not in found
            elif reader is read:
                comes_back(found, tmp_path / "back.png")


def answer(reader, path):
    try:
        return reader(path)
    except DataError as error:
        return str(error)


def comes_back(picture, path):
    """Check that a picture is one that the other functions take."""
    assert picture.pixels.dtype in (np.uint8, np.uint16)
    assert picture.pixels.ndim == 3
    assert picture.pixels.shape[2] in (1, 3)
    write(path, picture.pixels, picture.alpha, picture.info)
    back = read(path)
    np.testing.assert_array_equal(back.pixels, picture.pixels)
    if picture.alpha is not None:
        np.testing.assert_array_equal(back.alpha, picture.alpha)
