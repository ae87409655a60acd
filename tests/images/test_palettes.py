"""Files of palettes, read back."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from PIL import Image
from PIL.GimpPaletteFile import GimpPaletteFile

from lloydia.data.columns import DataError
from lloydia.images.palettes import KINDS, Palette

COLORS = np.random.default_rng(0).integers(0, 256, (19, 3), dtype=np.uint8)
OPACITY = np.linspace(10, 255, 19).astype(np.uint8)


def made(alpha=None, colors=COLORS):
    return Palette(colors, alpha, np.full(len(colors), 1 / len(colors)), "Oklab")


def test_swatches(tmp_path):
    for alpha in (None, OPACITY):
        made(alpha).write(tmp_path / "p.png")
        cells = np.asarray(Image.open(tmp_path / "p.png"))[24::48, 24::48]
        assert cells.shape[:2] == (2, 16)
        np.testing.assert_array_equal(cells.reshape(32, -1)[:19], made(alpha).bytes())
        blank = cells.reshape(32, -1)[19:]
        assert (blank[:, -1] == (0 if alpha is not None else 255)).all()


def test_json(tmp_path):
    made(OPACITY).write(tmp_path / "sunset.json")
    facts = json.loads((tmp_path / "sunset.json").read_text())
    assert (facts["name"], facts["space"], facts["full"]) == ("sunset", "Oklab", 255)
    assert [color["rgb"] for color in facts["colors"]] == COLORS.tolist()
    assert [color["alpha"] for color in facts["colors"]] == OPACITY.tolist()
    assert facts["colors"][0]["hex"] == "#" + bytes([*COLORS[0], 10]).hex()
    assert sum(color["share"] for color in facts["colors"]) == pytest.approx(1)


def test_gimp(tmp_path):
    made(OPACITY).write(tmp_path / "sunset.gpl")
    lines = (tmp_path / "sunset.gpl").read_text().splitlines()
    assert lines[:4] == ["GIMP Palette", "Name: sunset", "Columns: 16", "#"]
    assert [[int(word) for word in line.split()[:3]] for line in lines[4:]] == COLORS.tolist()
    with (tmp_path / "sunset.gpl").open("rb") as stream:
        GimpPaletteFile(stream)  # Pillow takes it for one too


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float64])
def test_adobe(tmp_path, dtype):
    full = 1.0 if dtype == np.float64 else float(np.iinfo(dtype).max)
    colors = np.rint(COLORS / 255 * full).astype(dtype) if full > 1 else COLORS / 255
    made(colors=colors).write(tmp_path / "p.ase")
    data = (tmp_path / "p.ase").read_bytes()
    assert struct.unpack_from(">4sHHI", data) == (b"ASEF", 1, 0, 19)
    place, found = 12, []
    while place < len(data):
        kind, length, letters = struct.unpack_from(">HIH", data, place)
        assert kind == 1
        name = data[place + 8 : place + 8 + 2 * letters].decode("utf-16-be")
        model, *values, normal = struct.unpack_from(">4s3fH", data, place + 8 + 2 * letters)
        assert (model, normal, name[-1]) == (b"RGB ", 2, "\0")
        found.append(values)
        place += 6 + length
    np.testing.assert_allclose(found, colors / full, atol=1e-7)


def test_other_extensions(tmp_path):
    with pytest.raises(DataError, match=r"one of \.png, \.json, \.gpl, \.ase"):
        made().write(tmp_path / "p.aco")
    assert KINDS == (".png", ".json", ".gpl", ".ase")
