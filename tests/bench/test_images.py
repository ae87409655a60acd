"""Colour quantisation beside others: judged before timed, tables, figures and sheets."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from lloydia.bench.images import contact, contenders, photographs, run
from lloydia.bench.images.contenders import CONTENDERS, Contender, choose
from lloydia.images.quality import psnr, ssim

Y, X = np.mgrid[:40, :60]
PHOTO = np.stack([4 * X, 6 * Y, 255 - 2 * X - 2 * Y], axis=2).clip(0, 255).astype(np.uint8)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(run, "photograph", lambda name: PHOTO)
    monkeypatch.setattr(photographs, "photograph", lambda name: np.tile(PHOTO, (7, 7, 1)))


def measured(some, k=8):
    return next(run.run(["china"], [k], some, threads=1, rounds=2, step=lambda what: None))


@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda contender: contender.name)
def test_every_contender(small, contender):
    if not contender.version():
        pytest.skip(f"{contender.package} is not installed")
    (row,) = measured([contender])
    assert row["status"] == "ok", row["reason"]
    assert 2 <= row["palette_size"] <= 8
    assert row["ms"] > 0
    image = contender.reduce(PHOTO, 8, 1)
    assert row["psnr"] == pytest.approx(psnr(PHOTO, image), abs=1)
    assert row["ssim"] == pytest.approx(ssim(PHOTO, image), abs=0.1)


def test_ours_is_nearest(small):
    ours, median_cut = measured([CONTENDERS[0], CONTENDERS[2]])
    assert ours["psnr"] > median_cut["psnr"]


def test_too_many_colours_have_no_time(small):
    cheat = Contender("Cheat", "lloydia", lambda pixels, k, threads: pixels)
    crop = Contender("Crop", "lloydia", lambda pixels, k, threads: 0 * pixels[1:])
    for row in measured([cheat, crop]):
        assert row["status"] == "differs"
        assert "ms" not in row
        assert "psnr" not in row


def test_sheets(small):
    part = (slice(5, 25), slice(10, 40))
    beside = contact.beside_peers(PHOTO, 4, CONTENDERS[:3], part)
    assert beside.size == (3 * 40 + 10, 2 * 56 + 10)
    np.testing.assert_array_equal(np.asarray(beside)[10:30, 10:40], PHOTO[part])
    theirs = CONTENDERS[2].reduce(PHOTO, 4, 1)[part]
    np.testing.assert_array_equal(np.asarray(beside)[66:86, 10:40], theirs)
    assert contact.beside_undithered(PHOTO, (2, 4), part).size == (3 * 40 + 10, 2 * 56 + 10)


def test_photographs():
    assert list(photographs.present(["china", "flower"])) == ["china", "flower"]
    assert photographs.photograph("china").shape == (427, 640, 3)
    with pytest.raises(ValueError, match="There is no photograph 'lena': there are china"):
        list(photographs.present(["lena"]))


def test_choose(monkeypatch):
    assert [contender.name for contender in choose(["Pillow octree"])] == [
        *("Lloydia", "Lloydia, Oklab", "Pillow octree"),
    ]
    with pytest.raises(ValueError, match="There is no library 'gimp'"):
        choose(["gimp"])
    monkeypatch.setattr(contenders.Contender, "version", lambda self: None)
    with pytest.raises(ImportError, match="pip install imagequant"):
        choose(["libimagequant"])


def test_command_and_report(small, tmp_path, monkeypatch, capsys):
    from lloydia.cli import main

    monkeypatch.chdir(tmp_path)
    few = ["--photographs", "china", "--peers", "Pillow", "--sizes", "2", "8", "--rounds", "1"]
    assert main(["bench", "images", *few, "--out", "kept", "--pictures", "pictures"]) == 0
    shown = capsys.readouterr().out
    assert "1 photograph: PSNR, SSIM, time" in shown
    assert "Pillow median cut" in shown
    for name in ("quantize-peers", "quantize-dither", "quantize-speed"):
        assert Image.open(tmp_path / "pictures" / f"{name}.png").width > 200
    (lines,) = (tmp_path / "kept").glob("*/images.jsonl")
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(rows) == 2 * 5
    assert main(["bench", "report", str(lines)]) == 0
    report = lines.with_suffix(".md").read_text()
    assert f"{rows[0]['psnr']:.2f}, {rows[0]['ssim']:.3f}" in report
    assert lines.with_suffix(".png").exists()


def test_sides_that_are_not_installed_are_named(small, tmp_path, monkeypatch, capsys):
    from lloydia.cli import main

    monkeypatch.chdir(tmp_path)
    absent = [
        Contender(name, "no-such-package", None) for name in ("OpenCV kmeans", "libimagequant")
    ]
    monkeypatch.setattr(contenders, "CONTENDERS", (absent[0], *CONTENDERS[:3], absent[1]))
    few = ["--photographs", "china", "--sizes", "2", "--rounds", "1"]
    assert main(["bench", "images", *few, "--out", "kept", "--pictures", "pictures"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("OpenCV") == shown.count("libimagequant") == 1
    assert "\nnot installed: OpenCV kmeans, libimagequant.\n" in shown
    (lines,) = (tmp_path / "kept").glob("*/images.jsonl")
    statuses = [json.loads(line)["status"] for line in lines.read_text().splitlines()]
    assert statuses == ["ok"] * 3 + ["not installed"] * 2
    assert main(["bench", "report", str(lines)]) == 0
    report = lines.with_suffix(".md").read_text()
    assert "- not installed: OpenCV kmeans, libimagequant." in report
    assert "None" not in report


@pytest.mark.parametrize("size", ["1", "257"])
def test_sizes(size, capsys):
    from lloydia.cli import main

    assert main(["bench", "images", "--sizes", size]) == 2
    assert f"--sizes {size}: a palette has 2 to 256 colours." in capsys.readouterr().err
