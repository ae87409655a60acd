"""`lloydia quantize`: files in, indexed files and palettes out, or one sentence."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from PIL import Image

from lloydia.images.formats.files import read, write
from lloydia.images.formats.indexed import read_animation, write_gif
from lloydia.images.quantization import quantize

RNG = np.random.default_rng(0)
Y, X = np.mgrid[:24, :30]
PHOTO = np.stack([8 * X, 10 * Y, 255 - 4 * X - 4 * Y], axis=2).clip(0, 255).astype(np.uint8)
FILM = np.stack([PHOTO, np.roll(PHOTO, 5, axis=1), PHOTO[::-1]])


@pytest.fixture
def photo(folder):
    write(folder / "photo.png", PHOTO, info={"dpi": (200.0, 200.0)})
    return folder / "photo.png"


@pytest.fixture
def film(folder):
    q = quantize(FILM, 256)
    write_gif(folder / "film.gif", q.indices, [q.palette], [30, 60, 90], 0)
    return q.image


@pytest.mark.parametrize("dither", ["none", "floyd-steinberg", "blue-noise"])
def test_a_photo(run, folder, photo, dither):
    ran = run(
        *("quantize", photo, "-k", 8, "--dither", dither, "--space", "oklab"),
        *("--palette", "p.json", "--out", "small.png", "--json"),
    )
    assert ran.status == 0, ran.err
    facts = json.loads(ran.out)
    expected = quantize(PHOTO, 8, dither=dither, space="oklab")
    picture = read(folder / "small.png")
    np.testing.assert_array_equal(picture.pixels, expected.image)
    assert picture.info["dpi"] == pytest.approx((200, 200), abs=0.02)
    assert facts["palette_size"] == 8
    assert facts["space"] == "Oklab"
    assert facts["n_colors"] == expected.n_colors
    assert facts["bytes"] == (folder / "small.png").stat().st_size
    assert 10 < facts["psnr"] < 40
    assert 0 < facts["ssim"] < 1
    colors = json.loads((folder / "p.json").read_text())["colors"]
    assert [color["rgb"] for color in colors] == expected.palette.colors.tolist()


COLORS = {"gAMA": struct.pack(">I", 100_000), "cICP": bytes([9, 16, 0, 1])}


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_what_a_file_says_about_its_colours(run, folder, dtype):
    write(folder / "wide.png", PHOTO.astype(dtype) * (np.iinfo(dtype).max // 255), info=COLORS)
    ran = run("quantize", "wide.png", "-k", 8, "--palette", "swatches.png")
    assert (ran.status, ran.err) == (0, "")
    for name in ("wide-8.png", "swatches.png"):
        assert read(folder / name).info == COLORS
    ran = run("quantize", "wide.png", "-k", 8, "--out", "wide.gif", "--palette", "colours.gpl")
    assert ran.status == 0
    assert ran.err.splitlines() == [
        f"lloydia: warning: {name} lacks the colour code (cICP) of the picture, so its "
        f"colours may look different: {form} cannot hold it; a .png can."
        for name, form in (("wide.gif", "GIF"), ("colours.gpl", ".gpl"))
    ]


def test_text_and_default_names(run, folder, photo):
    ran = run("quantize", photo, "-k", 300 % 256)
    assert ran.status == 0
    assert "psnr" in ran.out
    assert (folder / "photo-44.png").exists()


@pytest.mark.parametrize("per_frame", [False, True])
def test_an_animation(run, folder, film, per_frame):
    ran = run("quantize", "film.gif", "-k", 12, "--json", *["--per-frame"] * per_frame)
    assert ran.status == 0, ran.err
    back = read_animation(folder / "film-12.gif")
    frames = [quantize(frame, 12).image for frame in film]
    expected = np.stack(frames) if per_frame else quantize(film, 12).image
    np.testing.assert_array_equal(back.pixels, expected)
    assert (back.durations, back.loop) == ([30, 60, 90], 0)
    assert json.loads(ran.out)["frames"] == 3


def test_a_picture_has_no_frames(run, folder, photo):
    ran = run("quantize", photo, "-k", 4, "--per-frame", "--json")
    assert "--per-frame changes nothing" in json.loads(ran.out)["note"]


def test_a_folder(run, folder, film):
    source = folder / "in"
    source.mkdir()
    write(source / "a.png", PHOTO)
    write(source / "b.c.jpg", PHOTO)
    write(source / "b.c.bmp", PHOTO)
    (folder / "film.gif").rename(source / "film.gif")
    (source / "notes.txt").write_text("no image")
    ran = run("quantize", source, "-k", 4, "--out", "out")
    assert ran.status == 0, ran.err
    names = sorted(path.name for path in (folder / "out").iterdir())
    assert names == ["a.png", "b.c.bmp.png", "b.c.jpg.png", "film.gif"]
    assert len(ran.out.splitlines()) == 4
    assert ran.err == ""
    (source / "cut.png").write_bytes((source / "a.png").read_bytes()[:60])
    ran = run("quantize", source, "-k", 4, "--out", "again", "--json")
    assert ran.status == 2
    assert "1 of 5 images were left out" in ran.err
    assert "cut.png" in ran.err
    assert len(json.loads(ran.out)["images"]) == 4
    assert "warning" not in ran.err
    (folder / "file").write_text("")
    ran = run("quantize", source, "-k", 4, "--out", "file")
    assert ran.status == 2
    assert "cannot write into file: it is not a folder" in ran.err


def test_what_is_left_out_of_a_folder_is_said(run, folder):
    (folder / "in" / "old").mkdir(parents=True)
    (folder / "in" / ".hidden").mkdir()
    ran = run("quantize", "in", "-k", 4, "--out", "out")
    assert "in has no images, .png, .jpg" in ran.err
    assert ".gif; folders in it are not looked into" in ran.err
    write(folder / "in" / "a.png", PHOTO)
    for _ in range(2):
        ran = run("quantize", "in", "-k", 4, "--out", "in/small")
        assert ran.status == 0
        assert ran.err == "lloydia: warning: in: the folder old is left out; name it by itself.\n"
    ran = run("quantize", "in", "-k", 4, "--out", "out")
    assert "in: 2 folders in it are left out; name each by itself." in ran.err


def test_alpha_and_16_bits(run, folder):
    alpha = (X * 8).astype(np.uint8)
    write(folder / "soft.png", PHOTO.astype(np.uint16) * 257, alpha.astype(np.uint16) * 257)
    ran = run("quantize", "soft.png", "-k", 9, "--json")
    assert "rounded to 8" in json.loads(ran.out)["note"]
    expected = quantize(np.dstack([PHOTO, alpha]), 9)
    picture = read(folder / "soft-9.png")
    np.testing.assert_array_equal(picture.pixels, expected.image[..., :3])
    np.testing.assert_array_equal(picture.alpha, expected.image[..., 3])
    ran = run("quantize", "soft.png", "-k", 9, "--out", "hard.gif", "--json")
    assert "opaque or transparent" in json.loads(ran.out)["note"]
    assert set(np.unique(read(folder / "hard.gif").alpha)) == {0, 255}


def test_an_opaque_alpha_changes_nothing(run, folder, photo):
    write(folder / "opaque.png", PHOTO, np.full(PHOTO.shape[:2], 255, np.uint8))
    plain = json.loads(run("quantize", "photo.png", "-k", 8, "--json").out)
    opaque = json.loads(run("quantize", "opaque.png", "-k", 8, "--json").out)
    for name in ("n_colors", "n_iter", "palette_size", "psnr", "ssim", "note"):
        assert opaque[name] == plain[name]
    np.testing.assert_array_equal(read("opaque-8.png").pixels, read("photo-8.png").pixels)


def test_more_colours_than_there_are(run, folder):
    write(folder / "flat.png", np.full((5, 6, 3), 7, np.uint8))
    ran = run("quantize", "flat.png", "-k", 16, "--json")
    facts = json.loads(ran.out)
    assert ran.status == 0
    assert facts["note"] == (
        "the picture has one colour, all of them in the palette; every pixel is as it was"
    )
    assert (facts["psnr"], facts["ssim"], facts["palette_size"]) == (None, None, 1)


BAD = {
    "no image": ("text.png -k 4", "text.png is not an image that Pillow reads"),
    "missing": ("none.png -k 4", "no such file: none.png"),
    "no k": ("photo.png", "-k is required"),
    "k of 0": ("photo.png -k 0", "must be >= 1"),
    "k of 257": ("photo.png -k 257", "must be <= 256"),
    "space": ("photo.png -k 4 --space CIE", "Unknown colour space 'CIE': use one of RGB, sRGB"),
    "dither": ("photo.png -k 4 --dither bayer", "bayer"),
    "extension": ("photo.png -k 4 --out a.jpg", "its extension must be one of .png, .gif"),
    "palette": ("photo.png -k 4 --palette a.aco", "one of .png, .json, .gpl, .ase"),
    "onto itself": ("photo.png -k 4 --out photo.png", "the command uses that file already"),
    "no folder": ("photo.png -k 4 --out none/a.png", "there is no folder none; make it first"),
    "film to PNG": ("film.gif -k 4 --out film.png", "is an animation of 3 frames"),
    "folder without out": ("full -k 4", "is a folder: add --out FOLDER"),
    "folder onto itself": ("full -k 4 --out full", "it holds the images"),
    "folder's palette": (
        "full -k 4 --out o --palette p.png",
        "--palette writes the colours of one image",
    ),
    "many palettes": ("film.gif -k 4 --per-frame --palette p.png", "leave out one of them"),
    "empty folder": ("empty -k 4 --out o", "empty has no images"),
    "two images": ("photo.png film.gif -k 4", "quantize takes one IMAGE"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(run, folder, photo, film, name):
    (folder / "text.png").write_text("no image")
    (folder / "full").mkdir()
    (folder / "empty").mkdir()
    write(folder / "full" / "a.png", PHOTO)
    before = sorted(folder.rglob("*"))
    command, says = BAD[name]
    ran = run("quantize", *command.split())
    assert ran.status == 2
    assert says in ran.err.replace('"', "")
    assert ran.err.count("\n") == 1
    assert ran.out == ""
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["photo.png", "film.gif"])
def test_bombs(run, folder, photo, film, name, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    before = sorted(folder.iterdir())
    ran = run("quantize", name, "-k", 4)
    assert ran.status == 2
    assert ran.err.endswith("are needed; --allow-huge reads it.\n")
    assert ran.err.count("\n") == 1
    assert "allow_huge" not in ran.err
    assert sorted(folder.iterdir()) == before
    ran = run("quantize", ".", "-k", 4, "--out", "small")
    assert ran.status == 2
    assert "2 of 2 images were left out" in ran.err
    assert "allow_huge" not in ran.err
    assert run("quantize", name, "-k", 4, "--allow-huge").status == 0


def test_all_files_appear_or_none(run, folder, photo, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lloydia.images.palettes._WRITERS", {".json": fail})
    before = sorted(folder.iterdir())
    ran = run("quantize", "photo.png", "-k", 3, "--palette", "p.json")
    assert ran.status == 2
    assert ran.err == "lloydia: no space left on device: p.json.\n"
    assert sorted(folder.iterdir()) == before
