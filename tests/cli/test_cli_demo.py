from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pytest
from PIL import Image

from lloydia.cli import main
from lloydia.cli.demo import Outcome, _print_table

pytest.importorskip("matplotlib")

# The demo takes seconds.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One run for all tests: it takes seconds."""
    folder = tmp_path_factory.mktemp("demo")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["demo", "--out", str(folder / "new" / "demo"), "--json"]) == 0
    return json.loads(out.getvalue())["cases"]


def test_three_data_sets_agree_with_scikit_learn(ran):
    shapes = {case["data"]: (case["n"], case["d"], case["k"]) for case in ran}
    assert shapes == {"china": (273_280, 3, 12), "digits": (1797, 64, 10), "wine": (178, 13, 3)}
    for case in ran:
        # In float32, as the photograph is, rounding in scikit-learn decides some labels.
        assert case["inertia"] == pytest.approx(case["sklearn_inertia"], 1e-4)
        assert 0 < case["silhouette"] < 1
        assert case["seconds"] > 0
        assert case["sklearn_seconds"] > 0


def test_photograph_has_twelve_colours(ran):
    with Image.open(ran[0]["picture"]) as picture:
        sheet = np.asarray(picture.convert("RGB"))
    segmented = sheet[20 : 20 + 427, 680 : 680 + 640].reshape(-1, 3)
    original = sheet[20 : 20 + 427, 20 : 20 + 640].reshape(-1, 3)
    assert len(np.unique(segmented, axis=0)) == 12
    assert len(np.unique(original, axis=0)) == 96_615
    # Each colour is the mean of the pixels that it stands for.
    for color in np.unique(segmented, axis=0):
        own = original[(segmented == color).all(axis=1)]
        assert np.abs(own.mean(axis=0) - color).max() <= 0.5
    # The trees stay green and the columns red.
    red, green, blue = np.unique(segmented, axis=0).T.astype(int)
    assert ((green + 5 > red) & (green > blue + 40)).any()
    assert ((red > 1.8 * green) & (red > 1.8 * blue)).any()


def test_table_fits_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    figures = (273_280, 3, 8, 21, 186_865_918.7, 0.285, 10, 0.002, 1277.94, 0.003, 1.5)
    row = Outcome("china", *figures, "c.png")
    _print_table([row])
    text = capsys.readouterr().out
    assert "…" not in text
    for part in ("scikit-learn", "273,280", "186865919", "1277.9", "0.285", "0.0020", "0.0030"):
        assert part in text
    assert "silhouette of china: of 10 rows drawn at random." in text
    assert "compiling took 1.5 s" in text


def test_out_must_be_a_folder(run, folder):
    (folder / "file").write_text("")
    ran = run("demo", "--out", "file")
    assert ran.status == 2
    assert (
        ran.err
        == "lloydia: --out file exists and is not a folder: name a folder for the pictures.\n"
    )
