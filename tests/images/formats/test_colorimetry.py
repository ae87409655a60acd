"""What a file says about its colours comes back from every file that can hold it; a word else."""

from __future__ import annotations

import io
import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms, PngImagePlugin, features

from lloydia.images.formats.colorimetry import CHUNKS
from lloydia.images.formats.files import read, write
from lloydia.images.formats.indexed import read_animation, write_gif, write_png
from lloydia.images.quantization import quantize

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (12, 14, 3), dtype=np.uint8)
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
GREY = SRGB[:16] + b"GRAY" + SRGB[20:]
WIDE = struct.pack(">8I", 31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000)  # Display P3
SAID = {
    "gAMA": struct.pack(">I", 100_000),
    "cHRM": WIDE,
    "sRGB": b"\2",
    "cICP": bytes([9, 16, 0, 1]),
    "mDCV": bytes(range(24)),
    "cLLI": bytes(range(8)),
    "icc_profile": SRGB,
}
EVERYTHING = {name: value for name, value in SAID.items() if name != "sRGB"}


def chunked(chunks, pixels=RGB):
    """Return a PNG with some chunks after its header."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    data, put = stream.getvalue(), b""
    for name, value in chunks.items():
        if name == "icc_profile":
            name, value = "iCCP", b"ICC Profile\0\0" + zlib.compress(value)
        crc = zlib.crc32(name.encode() + value)
        put += struct.pack(">I", len(value)) + name.encode() + value + struct.pack(">I", crc)
    return data[:33] + put + data[33:]


LAYOUTS = {
    "grey": RGB[..., :1],
    "RGB": RGB,
    "16 bits": RGB.astype(np.uint16) * 257,
    "16 bits, grey": RGB[..., :1].astype(np.uint16) * 257,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("transparent", [False, True])
@pytest.mark.parametrize("name", [*SAID, "everything"])
def test_a_png_holds_all_of_it(tmp_path, layout, transparent, name):
    pixels = LAYOUTS[layout]
    info = EVERYTHING if name == "everything" else {name: SAID[name]}
    if pixels.shape[2] == 1 and "icc_profile" in info:
        info = info | {"icc_profile": GREY}
    write(tmp_path / "a.png", pixels, pixels[..., 0] if transparent else None, info)
    assert read(tmp_path / "a.png").info == info


@pytest.mark.parametrize("name", [*SAID, "everything"])
def test_an_indexed_png_holds_all_of_it(tmp_path, name):
    info = EVERYTHING if name == "everything" else {name: SAID[name]}
    (tmp_path / "a.png").write_bytes(chunked(info))
    picture = read(tmp_path / "a.png")
    assert picture.info == info
    q = quantize(picture.pixels, 5)
    write_png(tmp_path / "b.png", q.indices, q.palette, picture.info)
    assert read(tmp_path / "b.png").info == info
    q.palette.write(tmp_path / "swatches.png", picture.info)
    assert read(tmp_path / "swatches.png").info == info
    # What stands before the palette and the pixels is where the standard wants it.
    order = [data[4:8] for data in chunks_of((tmp_path / "b.png").read_bytes())]
    assert order.index(b"PLTE") == len(order) - 3


def chunks_of(data):
    place = 8
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        yield data[place : place + 12 + length]
        place += 12 + length


@pytest.mark.parametrize("extension", [".png", ".jpg", ".webp", ".tif"])
def test_profiles_come_back(tmp_path, extension):
    write(tmp_path / f"a{extension}", RGB, info={"icc_profile": SRGB})
    assert read(tmp_path / f"a{extension}").info["icc_profile"] == SRGB
    write(tmp_path / f"b{extension}", RGB, info=read(tmp_path / f"a{extension}").info)
    assert read(tmp_path / f"b{extension}").info["icc_profile"] == SRGB


@pytest.mark.parametrize("n_frames", [1, 3])
@pytest.mark.parametrize("k", [2, 256])
def test_gifs_hold_a_profile(tmp_path, n_frames, k):
    film = np.stack([np.roll(RGB, i, axis=1) for i in range(n_frames)])
    q = quantize(film, k)
    write_gif(tmp_path / "a.gif", q.indices, [q.palette], [50] * n_frames, 0, {"icc_profile": SRGB})
    write_gif(tmp_path / "plain.gif", q.indices, [q.palette], [50] * n_frames, 0)
    assert read(tmp_path / "a.gif").info["icc_profile"] == SRGB
    np.testing.assert_array_equal(read(tmp_path / "a.gif").pixels, q.image[0])
    if n_frames > 1:
        back, plain = read_animation(tmp_path / "a.gif"), read_animation(tmp_path / "plain.gif")
        assert back.info["icc_profile"] == SRGB
        np.testing.assert_array_equal(back.pixels, plain.pixels)
        assert (back.durations, back.loop) == (plain.durations, plain.loop)


def test_tiffs_hold_the_primaries(tmp_path):
    write(tmp_path / "a.tif", RGB, info={"cHRM": WIDE})
    tags = Image.open(tmp_path / "a.tif").tag_v2
    assert [float(value) for value in tags[318]] == pytest.approx([0.3127, 0.329])
    assert float(tags[319][2]) == pytest.approx(0.265)
    picture = read(tmp_path / "a.tif")
    assert picture.info["cHRM"] == WIDE
    write(tmp_path / "a.png", picture.pixels, info=picture.info)
    assert read(tmp_path / "a.png").info["cHRM"] == WIDE


def test_a_transfer_function_of_a_tiff_is_told(tmp_path):
    Image.fromarray(RGB).save(tmp_path / "a.tif", tiffinfo={301: tuple(range(768))})
    assert "has a transfer function (tag 301), which is left out" in read(tmp_path / "a.tif").note


def exif_of(tags, index=None):
    exif = Image.Exif()
    exif[0x0112] = 1
    for tag, value in tags.items():
        exif[tag] = value
    if index:
        exif.get_ifd(0x8769)[0xA001] = 0xFFFF
        exif.get_ifd(0x8769)[0xA005] = {1: index}
    return exif


def colors_of(path):
    return {name: value for name, value in read(path).info.items() if name != "dpi"}


@pytest.mark.parametrize("form", ["JPEG", "WEBP", "PNG"])
def test_adobe_rgb_by_exif(tmp_path, form):
    path = tmp_path / f"a.{form.lower()}"
    Image.fromarray(RGB).save(path, form, exif=exif_of({}, "R03"))
    info = colors_of(path)
    assert info["gAMA"] == struct.pack(">I", 45_471)
    assert struct.unpack(">8I", info["cHRM"])[4:6] == (21_000, 71_000)
    Image.fromarray(RGB).save(path, form, exif=exif_of({}, "R98"))  # sRGB
    assert colors_of(path) == {}
    Image.fromarray(RGB).save(path, form, exif=exif_of({}, "R03"), icc_profile=SRGB)
    assert colors_of(path) == {"icc_profile": SRGB}


def test_primaries_by_exif(tmp_path):
    tags = {318: (0.3127, 0.329), 319: (0.68, 0.32, 0.265, 0.69, 0.15, 0.06)}
    Image.fromarray(RGB).save(tmp_path / "a.jpg", exif=exif_of(tags))
    assert colors_of(tmp_path / "a.jpg") == {"cHRM": WIDE}


def bmp(version, kind, ends=(), gammas=(0, 0, 0), profile=b""):
    """Return a BMP of one red pixel."""
    size = {4: 108, 5: 124}[version]
    head = struct.pack("<IiiHHIIiiII", size, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0) + bytes(16) + kind
    head += struct.pack("<9i", *(ends or (0,) * 9)) + struct.pack("<3I", *gammas)
    if version == 5:
        head += struct.pack("<4I", 4, size + 4, len(profile), 0)
    data = b"BM" + struct.pack("<IHHI", 14 + size + 4, 0, 0, 14 + size) + head
    return data + b"\0\0\xff\0" + profile


def test_bmp_headers(tmp_path):
    path = tmp_path / "a.bmp"
    path.write_bytes(bmp(5, b"DEBM", profile=SRGB))
    assert read(path).info == {"icc_profile": SRGB}
    unit = 1 << 30
    ends = [round(unit * value) for value in (0.5, 0.25, 0.25, 0.25, 0.5, 0.25, 0.25, 0.25, 0.5)]
    path.write_bytes(bmp(4, bytes(4), ends, (2 << 16,) * 3))
    info = read(path).info
    assert info["gAMA"] == struct.pack(">I", 50_000)
    pairs = [*[33_333, 33_333], *[50_000, 25_000], *[25_000, 50_000], *[25_000, 25_000]]
    assert info["cHRM"] == struct.pack(">8I", *pairs)
    for data in (bmp(4, b"BGRs"), bmp(4, bytes(4)), bmp(5, b" niW")):
        path.write_bytes(data)
        assert read(path).info == {}


def test_avif_codes(tmp_path):
    if not features.check("avif"):
        pytest.skip("this Pillow has no AVIF")
    Image.fromarray(RGB).save(tmp_path / "a.avif")
    assert read(tmp_path / "a.avif").info == {}
    data = (tmp_path / "a.avif").read_bytes()
    place = data.index(b"colrnclx") + 8
    coded = data[:place] + struct.pack(">2H", 9, 16) + data[place + 4 :]
    (tmp_path / "hdr.avif").write_bytes(coded)
    assert read(tmp_path / "hdr.avif").info == {"cICP": bytes([9, 16, 0, 1])}


def test_gain_maps_are_told(tmp_path):
    xmp = b'<x:xmpmeta xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0"/>'
    Image.fromarray(RGB).save(tmp_path / "a.jpg", xmp=xmp)
    assert (
        "has a gain map for bright displays (HDR), which is left out"
        in read(tmp_path / "a.jpg").note
    )


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_damaged_profiles_are_told(tmp_path, form):
    Image.fromarray(RGB).save(tmp_path / "a.img", form, icc_profile=b"no profile")
    picture = read(tmp_path / "a.img")
    assert picture.note.endswith("has a damaged colour profile, which is left out.")
    assert picture.info == {}
    data = chunked({"iCCP": b"x\0\0no deflate stream"})
    (tmp_path / "b.png").write_bytes(data)
    assert "damaged colour profile" in read(tmp_path / "b.png").note


LOST = {
    "a.jpg": ("gAMA", "a.jpg lacks the gamma (gAMA) of the picture"),
    "a.webp": ("cHRM", "a.webp lacks the primaries (cHRM) of the picture"),
    "a.tif": ("gAMA", "TIFF cannot hold it; a .png can"),
    "a.bmp": ("icc_profile", "a.bmp lacks the colour profile of the picture"),
    "b.jpg": ("cICP", "b.jpg lacks the colour code (cICP) of the picture"),
    "b.webp": ("gAMA cHRM", "lacks the gamma (gAMA) and the primaries (cHRM)"),
    "b.bmp": (
        "cICP icc_profile",
        "lacks the colour code (cICP) and the colour profile of the picture, so its colours may "
        "look different: BMP cannot hold them; a .png can.",
    ),
    "b.jpeg": ("cICP icc_profile", "lacks the colour code (cICP) of the picture"),
}


@pytest.mark.parametrize("name", LOST)
def test_what_a_file_cannot_hold_is_told(tmp_path, name):
    names, says = LOST[name]
    with pytest.warns(UserWarning, match="so its colours may look different") as told:
        write(tmp_path / name, RGB, info={key: SAID[key] for key in names.split()})
    assert len(told) == 1
    assert says in str(told[0].message)
    assert told[0].filename == __file__


NOTHING_LOST = {
    "sRGB by its name": {"sRGB": b"\0", "gAMA": SAID["gAMA"]},
    "sRGB by its numbers": {
        "gAMA": struct.pack(">I", 45_455),
        "cHRM": struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000),
    },
    "sRGB by its code": {"cICP": bytes([1, 13, 0, 1])},
    "what a profile stands above": {"icc_profile": SRGB, "gAMA": SAID["gAMA"], "cHRM": WIDE},
}


@pytest.mark.parametrize("case", NOTHING_LOST)
def test_nothing_is_told_where_no_colour_is_lost(tmp_path, case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(tmp_path / "a.jpg", RGB, info=NOTHING_LOST[case])


def test_palettes_have_no_room(tmp_path):
    q = quantize(RGB, 3)
    for extension in (".json", ".gpl", ".ase"):
        with pytest.warns(UserWarning, match=rf"p{extension} lacks the gamma"):
            q.palette.write(tmp_path / f"p{extension}", {"gAMA": SAID["gAMA"]})


def test_a_profile_of_grey_is_none_of_a_palette(tmp_path):
    q = quantize(RGB[..., 0], 3)
    with pytest.warns(UserWarning, match="its pixels are RGB, and the profile is not"):
        write_png(tmp_path / "a.png", q.indices, q.palette, {"icc_profile": GREY})


def test_chunks_of_a_wrong_length_say_nothing(tmp_path):
    for name, size in CHUNKS.items():
        if name in ("gAMA", "cHRM", "sRGB"):  # these Pillow reads itself
            continue
        (tmp_path / "a.png").write_bytes(chunked({name: bytes(size + 1)}))
        assert read(tmp_path / "a.png").info == {}


def test_pillow_agrees(tmp_path):
    write(tmp_path / "a.png", RGB, info={"gAMA": SAID["gAMA"], "cHRM": WIDE})
    info = PngImagePlugin.PngImageFile(tmp_path / "a.png").info
    assert info["gamma"] == 1
    assert info["chromaticity"][:2] == (0.3127, 0.329)
