"""Image files: every kind comes back as arrays, upright, with its bits; bad ones say why."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms

from lloydia.data.columns import DataError
from lloydia.images.formats.files import Picture, read, write

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)
ALPHA = RNG.integers(0, 256, (5, 7), dtype=np.uint8)
DEEP = RNG.integers(0, 65_536, (5, 7, 4), dtype=np.uint16)
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}


def png(samples, color_type, interlace=False, extra=()):
    """Return a 16-bit PNG whose rows go through all five filters in turn."""
    height, width, channels = samples.shape
    body = b""
    passes = [(0, 0, 1, 1)]
    if interlace:  # Adam7
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)]
        passes += [(0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    for x, y, dx, dy in passes:
        part = samples[y::dy, x::dx]
        if not part.size:
            continue
        above = np.zeros(part.shape[1] * 2 * channels, int)
        for i, row in enumerate(part.astype(">u2").reshape(len(part), -1).view(np.uint8)):
            body += bytes([i % 5]) + filtered(row.astype(int), above, 2 * channels, i % 5)
            above = row.astype(int)
    head = struct.pack(">IIBBBBB", width, height, 16, color_type, 0, 0, int(interlace))
    chunks = [(b"IHDR", head), *extra, (b"IDAT", zlib.compress(body)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def filtered(row, above, step, kind):
    left = np.concatenate([np.zeros(step, int), row[:-step]])
    corner = np.concatenate([np.zeros(step, int), above[:-step]])
    near = left + above - corner
    paeth = np.stack([abs(near - side) for side in (left, above, corner)]).argmin(0)
    guess = [0 * row, left, above, (left + above) // 2, np.choose(paeth, [left, above, corner])]
    return ((row - guess[kind]) % 256).astype(np.uint8).tobytes()


@pytest.mark.parametrize("interlace", [False, True])
@pytest.mark.parametrize("color_type", CHANNELS)
def test_a_16_bit_png_keeps_every_bit(tmp_path, color_type, interlace):
    samples = DEEP[..., : CHANNELS[color_type]]
    (tmp_path / "deep.png").write_bytes(png(samples, color_type, interlace))
    picture = read(tmp_path / "deep.png")
    pixels = samples if color_type in (0, 2) else samples[..., :-1]
    assert picture.pixels.dtype == np.uint16
    np.testing.assert_array_equal(picture.pixels, pixels)
    if color_type in (4, 6):
        np.testing.assert_array_equal(picture.alpha, samples[..., -1])
    else:
        assert picture.alpha is None
    assert picture.note is None


def test_a_transparent_16_bit_colour(tmp_path):
    key = DEEP[2, 3, :3]
    data = png(DEEP[..., :3], 2, extra=[(b"tRNS", key.astype(">u2").tobytes())])
    (tmp_path / "keyed.png").write_bytes(data)
    alpha = read(tmp_path / "keyed.png").alpha
    assert alpha[2, 3] == 0
    assert np.count_nonzero(alpha == 65_535) == alpha.size - 1


@pytest.mark.parametrize(
    ("extension", "transparent"),
    [*((name, False) for name in (".png", ".tif", ".webp", ".bmp"))]
    + [(name, True) for name in (".png", ".tif", ".webp")],
)
def test_what_is_written_is_read(tmp_path, extension, transparent):
    alpha = np.maximum(ALPHA, 1) if transparent else None  # WebP forgets colours of alpha 0
    write(tmp_path / f"a{extension}", RGB, alpha)
    picture = read(tmp_path / f"a{extension}")
    np.testing.assert_array_equal(picture.pixels, RGB)
    assert (picture.alpha is None) == (not transparent)
    if transparent:
        np.testing.assert_array_equal(picture.alpha, alpha)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_16_bits_are_written(tmp_path, channels):
    samples = DEEP[..., :channels]
    pixels, alpha = (samples, None) if channels % 2 else (samples[..., :-1], samples[..., -1])
    write(tmp_path / "deep.png", pixels, alpha, {"dpi": (300.0, 150.0)})
    picture = read(tmp_path / "deep.png")
    np.testing.assert_array_equal(picture.pixels, pixels)
    if alpha is not None:
        np.testing.assert_array_equal(picture.alpha, alpha)
    assert picture.info["dpi"] == pytest.approx((300, 150), abs=0.02)


def tiff(samples, order, deflated):
    """Return a baseline TIFF of one strip."""
    height, width, channels = samples.shape
    data = samples.astype(f"{order}u2").tobytes()
    data = zlib.compress(data) if deflated else data
    data += bytes(len(data) % 2)
    tags = {256: width, 257: height, 259: 8 if deflated else 1, 262: 2, 273: 8 + 2 * channels}
    tags |= {258: 8, 277: channels, 278: height, 279: len(data)}
    head = struct.pack(f"{order}2sHI", b"II" if order == "<" else b"MM", 42, 8 + 6 + len(data))
    bits = struct.pack(f"{order}3H", *[16] * channels)
    entries = [
        struct.pack(f"{order}HHII", tag, 3, channels, value)
        if tag == 258
        else struct.pack(f"{order}HHII", tag, 4, 1, value)
        for tag, value in sorted(tags.items())
    ]
    count = struct.pack(f"{order}H", len(entries))
    return head + bits + data + count + b"".join(entries) + bytes(4)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("deflated", [False, True])
def test_16_bit_tiffs_keep_every_bit(tmp_path, order, deflated):
    (tmp_path / "deep.tif").write_bytes(tiff(DEEP[..., :3], order, deflated))
    picture = read(tmp_path / "deep.tif")
    np.testing.assert_array_equal(picture.pixels, DEEP[..., :3])
    assert picture.note is None


ORIENTED = {
    1: lambda x: x,
    2: np.fliplr,
    3: lambda x: np.rot90(x, 2),
    4: np.flipud,
    5: lambda x: x.swapaxes(0, 1),
    6: lambda x: np.rot90(x, -1),
    7: lambda x: np.rot90(x, 2).swapaxes(0, 1),
    8: np.rot90,
}


@pytest.mark.parametrize("orientation", ORIENTED)
def test_pictures_are_upright(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(RGB).save(tmp_path / "turned.png", exif=exif, dpi=(100, 50))
    upright = ORIENTED[orientation](RGB)
    picture = read(tmp_path / "turned.png")
    np.testing.assert_array_equal(picture.pixels, upright)
    dpi = (100, 50) if orientation < 5 else (50, 100)
    assert picture.info["dpi"] == pytest.approx(dpi, abs=0.02)
    data = png(DEEP[..., :3], 2, extra=[(b"eXIf", exif.tobytes()[6:])])
    (tmp_path / "deep.png").write_bytes(data)
    expected = ORIENTED[orientation](DEEP[..., :3])
    np.testing.assert_array_equal(read(tmp_path / "deep.png").pixels, expected)


def test_the_profile_is_kept_where_it_fits(tmp_path):
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for pixels in (RGB, DEEP[..., :3]):
        write(tmp_path / "a.png", pixels, info={"icc_profile": profile})
        assert read(tmp_path / "a.png").info["icc_profile"] == profile
    with pytest.warns(UserWarning, match="lacks the colour profile of the picture"):
        write(tmp_path / "grey.png", RGB[..., :1], info={"icc_profile": profile})
    assert "icc_profile" not in read(tmp_path / "grey.png").info


def converted(mode, **options):
    return lambda path: Image.fromarray(RGB).convert(mode, **options).save(path)


def two_pages(path):
    first, second = Image.fromarray(RGB), Image.fromarray(RGB[::-1])
    first.save(path, save_all=True, append_images=[second])


NOTED = {
    "cmyk.jpg": (converted("CMYK"), "converted from CMYK to RGB by the plain formula"),
    "palette.png": (converted("P", palette=Image.Palette.ADAPTIVE), "converted from a palette"),
    "lab.tif": (lambda path: Image.new("LAB", (3, 2)).save(path), "converted from Lab to RGB"),
    "pages.tif": (two_pages, "holds 2 images, of which the first is taken"),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_was_converted_is_said(tmp_path, name):
    make, says = NOTED[name]
    make(tmp_path / name)
    picture = read(tmp_path / name)
    assert says in picture.note
    assert picture.note.startswith(str(tmp_path / name))
    assert picture.note.endswith(".")
    assert picture.pixels.shape[2] == 3


def test_cmyk_with_a_profile(tmp_path, monkeypatch):
    inks = bytes(16) + b"CMYK" + bytes(16) + b"acsp" + bytes(88)  # no more than a header
    Image.fromarray(RGB).convert("CMYK").save(
        tmp_path / "print.jpg", icc_profile=inks, dpi=(300, 300)
    )
    picture = read(tmp_path / "print.jpg")
    assert "plain formula" in picture.note  # a profile that is of no use
    assert picture.info == {"dpi": (300, 300)}
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()

    def convert(image, profile, to, outputMode):
        assert (image.mode, profile.read()) == ("CMYK", inks)
        converted = Image.new(outputMode, image.size, (1, 2, 3))
        converted.info["icc_profile"] = srgb
        return converted

    monkeypatch.setattr(ImageCms, "profileToProfile", convert)
    picture = read(tmp_path / "print.jpg")
    assert picture.note.endswith("was converted from CMYK to sRGB by its colour profile.")
    assert picture.info == {"dpi": (300, 300), "icc_profile": srgb}
    assert (picture.pixels == [1, 2, 3]).all()


def test_a_transparent_palette(tmp_path):
    image = Image.fromarray(np.array([[0, 1], [1, 2]], np.uint8)).convert("P")
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    image.save(tmp_path / "p.png", transparency=bytes([0, 128, 255]))
    picture = read(tmp_path / "p.png")
    np.testing.assert_array_equal(picture.alpha, [[0, 128], [128, 255]])
    np.testing.assert_array_equal(picture.pixels[1, 1], [0, 0, 255])


@pytest.mark.parametrize(("mode", "dtype"), [("1", np.uint8), ("L", np.uint8), ("I;16", np.uint16)])
def test_grey(tmp_path, mode, dtype):
    values = (DEEP[..., 0] >> 8 << 8) if mode == "I;16" else RGB[..., 0] // 128 * 255
    image = Image.fromarray(values)
    (image.convert("1") if mode == "1" else image).save(tmp_path / "grey.png")
    picture = read(tmp_path / "grey.png")
    assert picture.pixels.dtype == dtype
    np.testing.assert_array_equal(picture.pixels[..., 0], values)
    assert (picture.note, picture.alpha) == (None, None)


def bytes_of(form, **options):
    stream = io.BytesIO()
    Image.fromarray(RGB).resize((400, 300)).save(stream, form, **options)
    return stream.getvalue()


BAD = {
    "empty.png": (b"", "is empty"),
    "text.png": (b"a,b\n1,2\n", "is not an image that Pillow reads"),
    "cut.png": (bytes_of("PNG")[:-900], "is damaged or cut short"),
    "cut.jpg": (bytes_of("JPEG")[:2000], "is damaged or cut short"),
    "cut.gif": (bytes_of("GIF")[:900], "is damaged or cut short"),
    "head.png": (bytes_of("PNG")[:12], "cut short, or empty"),
    "float.tif": (None, "has values from"),
    "zero.gif": (b"GIF89a" + bytes(7) + bytes_of("GIF")[13:], "cut short, or empty"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_one_sentence(tmp_path, name):
    data, says = BAD[name]
    if name == "float.tif":
        Image.fromarray(np.full((2, 3), 0.5, np.float32)).save(tmp_path / name)
    else:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=says) as raised:
        read(tmp_path / name)
    assert str(raised.value).startswith(str(tmp_path / name))
    assert str(raised.value).count("\n") == 0


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "none.png")
    with pytest.raises(DataError, match="is a folder"):
        read(tmp_path)


def test_bombs(tmp_path, monkeypatch):
    write(tmp_path / "large.png", RGB)
    for limit in (10, 20):  # of 35 pixels: Pillow raises beyond twice the limit, else warns
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(DataError, match="allow_huge=True"):
            read(tmp_path / "large.png")
        assert isinstance(read(tmp_path / "large.png", allow_huge=True), Picture)
        assert limit == Image.MAX_IMAGE_PIXELS


UNWRITABLE = {
    "a.xyz": (RGB, None, "its extension must be one of .png"),
    "a.jpg": (RGB, ALPHA, "JPEG has no transparency"),
    "b.jpg": (DEEP[..., :3], None, "16 bits a channel need .png"),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_what_cannot_be_written(tmp_path, name):
    pixels, alpha, says = UNWRITABLE[name]
    with pytest.raises(DataError, match=says):
        write(tmp_path / name, pixels, alpha)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        write(tmp_path / "none" / "a.png", RGB)


@pytest.mark.parametrize("mode", ["1", "P", "L", "RGB"])
def test_an_icon_is_of_the_mode_that_is_decoded(tmp_path, mode):
    image = Image.fromarray(RGB).convert(mode)
    pixels = np.asarray(image.convert("RGB"))
    stream = io.BytesIO()
    image.resize((16, 16), Image.Resampling.NEAREST).save(stream, "PNG")
    data = stream.getvalue()
    entry = b"icp4" + struct.pack(">I", len(data) + 8) + data
    (tmp_path / "a.icns").write_bytes(b"icns" + struct.pack(">I", len(entry) + 8) + entry)
    picture = read(tmp_path / "a.icns")
    assert picture.pixels.dtype == np.uint8
    assert set(map(tuple, np.broadcast_to(picture.pixels, (16, 16, 3)).reshape(-1, 3))) <= set(
        map(tuple, pixels.reshape(-1, 3))
    )
