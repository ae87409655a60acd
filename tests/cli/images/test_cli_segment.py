from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from PIL import Image, ImageShow

from lloydia.cli.images.segment_files import SPECKS
from lloydia.images import boundaries, segment
from lloydia.images.borders import without_specks
from lloydia.images.color import SPACES
from lloydia.images.formats.files import read, write


@pytest.fixture
def photo(folder, monkeypatch):
    """A small picture of four hues in a gradient, as photo.png; there is no screen."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    y, x = np.indices((30, 40))
    hues = np.array([[210, 60, 40], [40, 180, 70], [30, 70, 200], [220, 210, 60]])
    pixels = hues[(x // 20) + 2 * (y // 15)] + (x + y)[..., None] // 3
    pixels = pixels.astype(np.uint8)
    Image.fromarray(pixels).save(folder / "photo.png")
    return pixels


@pytest.mark.parametrize("mode", [known.name for known in SPACES])
def test_as_the_original_had_it(run, folder, photo, mode):
    ran = run("segment", "photo.png", mode, 4, 200, "display")
    assert (ran.status, ran.err) == (0, "")
    for line in ("seconds seeding", "seconds iterating", f"space              {mode}"):
        assert line in ran.out
    found = segment(photo, 4, mode, max_iter=200)
    assert np.array_equal(np.asarray(Image.open("photoCLUSTERIZED.png")), found.image)
    assert Image.open("photoSIDEBYSIDE.png").size[0] > 2 * 40
    assert sorted(path.name for path in folder.iterdir()) == [
        "photo.png",
        "photoCLUSTERIZED.png",
        "photoSIDEBYSIDE.png",
    ]


@pytest.mark.parametrize("rung", ["1", "r04", "r00_reference"])
def test_by_a_rung_of_the_ladder(run, folder, photo, rung):
    ran = run("segment", "photo.png", "HSV", 4, 20, "display", "--rung", rung, "--json")
    assert (ran.status, ran.err) == (0, "")
    facts = json.loads(ran.out)
    assert (facts["n_iter"], facts["n_clusters"], facts["device"]) == (20, 4, "cpu")
    image = np.asarray(Image.open("photoCLUSTERIZED.png"))
    assert np.array_equal(
        np.unique(image.reshape(-1, 3), axis=0),
        np.unique(segment(photo, 4, "HSV", max_iter=20).palette, axis=0),
    )
    assert (folder / "photoSIDEBYSIDE.png").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("photo.png HSV 4 --rung 99", "There is no rung '99'"),
        ("photo.png HSV 4 --rung 1 --device cpu", "--rung also decides the device"),
        ("clear.png HSV 2 --rung 1", "A rung counts every pixel, and this picture has transparent"),
    ],
)
def test_rungs_that_are_refused(run, folder, photo, arguments, what):
    clear = np.dstack([photo, np.zeros(photo.shape[:2], np.uint8)])
    clear[:9, :, 3] = 255
    Image.fromarray(clear).save(folder / "clear.png")
    ran = run("segment", *arguments.split())
    assert ran.status == 2
    assert what in ran.err
    assert sorted(path.name for path in folder.iterdir()) == ["clear.png", "photo.png"]


def test_options_instead(run, photo):
    ran = run(
        *("segment", "photo.png", "--space", "LAB", "-k", 5, "--iterations", 3, "--init", "random"),
        *("--seed", 2, "--xy", 0.3, "--out", "out.png", "--labels", "labels.npy"),
        *("--boundaries", "ends.png", "--threads", 1, "--json"),
    )
    assert (ran.status, ran.err) == (0, "")
    facts = json.loads(ran.out)
    found = segment(photo, 5, "Lab", init="random", random_state=2, xy=0.3, max_iter=3)
    assert facts["n_iter"] == found.n_iter <= 3
    assert (facts["space"], facts["n_clusters"], facts["n_colors"]) == ("Lab", 5, found.n_colors)
    assert facts["palette"][0] == "#" + bytes(found.palette[0]).hex()
    assert facts["sizes"] == np.bincount(found.labels.ravel()).tolist()
    parts = ("counting", "seeding", "iterating", "painting")
    assert facts["seconds"] == pytest.approx(sum(facts[f"seconds_{part}"] for part in parts))
    assert np.array_equal(np.load("labels.npy"), found.labels)
    assert np.array_equal(np.asarray(Image.open("out.png")), found.image)
    ends = np.asarray(Image.open("ends.png"))
    edge = boundaries(without_specks(found.labels, found.labels.size // SPECKS))
    assert (ends[edge] == (255, 255, 0)).all()
    assert np.array_equal(ends[~edge], photo[~edge])


def test_labels_as_a_picture(run, photo):
    assert run("segment", "photo.png", "-k", 3, "--labels", "labels.png").status == 0
    labels = np.asarray(Image.open("labels.png"))
    assert np.array_equal(labels, segment(photo, 3, "oklab").labels)


@pytest.mark.parametrize(
    ("mode", "name", "written"),
    [
        ("L", "a.png", "aCLUSTERIZED.png"),
        ("LA", "a.png", "aCLUSTERIZED.png"),
        ("RGBA", "a.webp", "aCLUSTERIZED.webp"),
        ("RGB", "a.JPG", "aCLUSTERIZED.JPG"),
        ("RGB", "a.ppm", "aCLUSTERIZED.png"),
        ("I;16", "a.tif", "aCLUSTERIZED.png"),
    ],
)
def test_kinds_of_images(run, photo, mode, name, written):
    image = Image.fromarray(photo)
    if mode.endswith("A"):
        image.putalpha(Image.fromarray(np.where(np.indices((30, 40))[0] < 9, 0, 128).astype("u1")))
        image = image.convert(mode)
    elif mode == "I;16":
        image = Image.fromarray(photo[..., 0].astype(np.uint16) * 200)
    else:
        image = image.convert(mode)
    image.save(name, **({"lossless": True, "exact": True} if name.endswith("webp") else {}))
    ran = run("segment", name, "RGB", 3, 20, "display", "--boundaries", "ends.png")
    assert (ran.status, ran.err) == (0, "")
    assert Image.open("ends.png").mode == ("RGBA" if mode.endswith("A") else "RGB")
    result = Image.open(written)
    assert result.size == image.size
    assert result.mode == image.mode
    if mode.endswith("A"):
        assert np.array_equal(np.asarray(result.getchannel("A")), np.asarray(image.getchannel("A")))


def test_a_folder_as_out(run, folder, photo):
    (folder / "results").mkdir()
    assert run("segment", "photo.png", "-k", 2, "--out", "results").status == 0
    assert (folder / "results" / "photoCLUSTERIZED.png").exists()


def test_display_uses_a_screen(run, folder, photo, monkeypatch):
    shown = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(ImageShow, "show", lambda sheet: shown.append(sheet.size) or True)
    assert "shown" in run("segment", "photo.png", "RGB", 2, 10, "display").out
    assert len(shown) == 1
    assert not (folder / "photoSIDEBYSIDE.png").exists()
    assert run("segment", "photo.png", "--display").status == 0
    assert len(shown) == 2


def test_a_large_picture_is_thinned_for_the_screen(run, folder, photo):
    Image.fromarray(np.tile(photo, (1, 80, 1))).save("long.png")
    facts = json.loads(run("segment", "long.png", "-k", 2, "--display", "--json").out)
    assert Image.open(facts["display"]).width < 2500
    assert Image.open(facts["out"]).width == 3200


def test_fewer_colours_than_segments_is_said(run, folder):
    Image.fromarray(np.array([[[0, 0, 0], [255, 0, 0]]], dtype=np.uint8)).save("two.png")
    ran = run("segment", "two.png", "-k", 8)
    assert ran.status == 0
    assert "warning: the picture has fewer colours (2) than -k 8" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("photo.png YUV 3 10", "Unknown colour space 'YUV': use one of RGB, sRGB, linear, HSV"),
        ("photo.png RGB 0 10", 'Invalid value "0" for K'),
        ("photo.png RGB two", "'two' is not a whole number; segment takes IMAGE MODE K"),
        ("photo.png RGB 3 10 show", "'show' is not the word display"),
        ("photo.png RGB 3 10 display now", "segment takes IMAGE MODE K ITERATIONS display"),
        ("none.png", "no such file: none.png"),
        ("photo.png --xy -1", "must be >= 0"),
        ("photo.png --out photo.png", "cannot write photo.png"),
        ("photo.png --out no/where.png", "cannot write no/where.png"),
        ("photo.png --out x.gif", "cannot write x.gif: its extension must be one of .png"),
        ("photo.png --labels x.csv", "cannot write x.csv: its extension must be one of .npy, .png"),
        ("photo.png --labels a.png --boundaries a.png", "the command uses that file already"),
        ("photo.png --device tpu", "Unknown device 'tpu'"),
        ("text.png", "is not an image that Pillow reads"),
        ("cut.png", "damaged or cut short"),
    ],
)
def test_bad_input(run, folder, photo, arguments, message):
    (folder / "text.png").write_text("no picture")
    (folder / "cut.png").write_bytes((folder / "photo.png").read_bytes()[:100])
    before = {path.name for path in folder.iterdir()}
    ran = run("segment", *arguments.split())
    assert ran.status == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == before


def test_standard_input_needs_a_name(run, folder, photo):
    ran = run("segment", "-", stdin=(folder / "photo.png").read_bytes())
    assert ran.status == 2
    assert "an image on standard input has no name: give --out FILE" in ran.err
    ran = run("segment", "-", "--out", "x.png", stdin=(folder / "photo.png").read_bytes())
    assert (ran.status, ran.err) == (0, "")


def test_what_a_file_says_about_its_colours(run, folder, photo):
    colors = {"gAMA": struct.pack(">I", 100_000), "cHRM": bytes(31) + b"\1"}
    write(folder / "wide.png", photo, info=colors)
    ran = run("segment", "wide.png", "--boundaries", "drawn.png", "--display")
    assert (ran.status, ran.err) == (0, "")
    for name in ("wideCLUSTERIZED.png", "drawn.png", "wideSIDEBYSIDE.png"):
        assert read(folder / name).info == colors
    ran = run("segment", "wide.png", "--out", "wide.jpg")
    assert ran.status == 0
    assert ran.err == (
        "lloydia: warning: wide.jpg lacks the gamma (gAMA) and the primaries (cHRM) of the "
        "picture, so its colours may look different: JPEG cannot hold them; a .png can.\n"
    )


@pytest.mark.parametrize("option", ["--out", "--boundaries"])
@pytest.mark.parametrize(
    ("name", "says"),
    [("deep.jpg", "16 bits a channel need .png"), ("soft.bmp", "BMP has no transparency")],
)
def test_what_a_format_cannot_hold_is_refused_before_any_work(
    run, folder, photo, option, name, says
):
    write(folder / "deep.png", photo.astype(np.uint16) * 257)
    write(folder / "soft.png", photo, photo[..., 0])
    before = sorted(folder.iterdir())
    source = name[:4] + ".png"
    ran = run("segment", source, "--labels", "labels.npy", option, name)
    assert ran.status == 2
    assert ran.err.startswith(f"lloydia: cannot write {name}: {says}")
    assert sorted(folder.iterdir()) == before


def test_a_bmp_with_transparency_becomes_a_png(run, folder, photo):
    y = np.arange(30, dtype=np.uint8)[:, np.newaxis].repeat(40, axis=1)
    Image.fromarray(np.dstack([photo, y])).save(folder / "soft.tga")
    (folder / "soft.tga").rename(folder / "soft.bmp")
    ran = run("segment", "soft.bmp", "-k", 3)
    assert (ran.status, ran.err) == (0, "")
    np.testing.assert_array_equal(read(folder / "softCLUSTERIZED.png").alpha, y)


def test_all_files_appear_or_none(run, folder, photo, monkeypatch):
    from lloydia.images.formats import files

    saved, save = [], files.save

    def fail(*args, **options):
        saved.append(save(*args, **options))
        if len(saved) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "save", fail)
    before = sorted(folder.iterdir())
    ran = run("segment", "photo.png", "--labels", "l.npy", "--boundaries", "b.png")
    assert ran.status == 2
    assert ran.err == "lloydia: no space left on device: b.png.\n"
    assert sorted(folder.iterdir()) == before
