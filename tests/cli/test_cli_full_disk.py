"""Outputs that a disk or a file system refuses: one sentence, exit status 2, no rest of a file."""

from __future__ import annotations

import os
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

resource = pytest.importorskip("resource", reason="no limit of the length of files")


@contextmanager
def full(n_bytes=50):
    """Let no file become longer, as on a full disk (what the system answers is EFBIG)."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def photo(folder):
    rng = np.random.default_rng(0)
    # Pixels that no format makes small.
    Image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8)).save("photo.png")


@pytest.fixture(autouse=True)
def _compiled(run, blobs, photo):
    # A kernel that is compiled first would be written to the cache, which is full as well.
    run("fit", "blobs.csv", "-k", 2)


OUTPUTS = {
    **{f"labels{kind}": f"fit blobs.csv -k 2 --labels out{kind}" for kind in (".npy", ".csv")},
    **{
        f"centres{kind}": f"fit blobs.csv -k 2 --centers out{kind}"
        for kind in (".npy", ".csv", ".tsv", ".txt", ".parquet")
    },
    "labels.parquet": "fit blobs.csv -k 2 --labels out.parquet",
    "ids": "fit blobs.csv -k 2 --id a --labels out.csv",
    "ids.parquet": "fit blobs.csv -k 2 --id a --labels out.parquet",
    "table": "fit blobs.csv -k 2 --out out.csv",
    "model": "fit blobs.csv -k 2 --model out.npz",
    "checkpoint": "fit blobs.csv -k 2 --checkpoint out.npz --every 1",
    **{f"plot{kind}": f"fit blobs.csv -k 2 --plot out{kind}" for kind in (".png", ".svg", ".pdf")},
    **{
        f"segments{kind}": f"segment photo.png RGB 4 2 --out out{kind}"
        for kind in (".png", ".tif", ".webp", ".bmp", ".jpg")
    },
    "segment labels": "segment photo.png RGB 4 2 --out x.png --labels out.npy",
    **{f"quantize{kind}": f"quantize photo.png -k 9 --out out{kind}" for kind in (".png", ".gif")},
    **{
        f"palette{kind}": f"quantize photo.png -k 9 --out x.png --palette out{kind}"
        for kind in (".png", ".json", ".gpl", ".ase")
    },
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_full_disk(run, folder, name):
    if "plot" in name:
        pytest.importorskip("matplotlib")
    if "parquet" in name:
        pytest.importorskip("pyarrow")
    if name == "checkpoint":
        pytest.importorskip("sklearn.callback")
    before = sorted(os.listdir(folder))
    words = OUTPUTS[name].split()
    with full():
        ran = run(*words)
    written = [word for word in words if word.startswith(("out", "x.png"))]
    assert ran.status == 2
    last = ran.err.splitlines()[-1]
    assert last in {f"lloydia: file too large: {path}." for path in written}
    assert sorted(os.listdir(folder)) == before


def test_predicted_labels_on_a_full_disk(run, folder):
    run("fit", "blobs.csv", "-k", 2, "--model", "m.npz")
    before = sorted(os.listdir(folder))
    with full():
        ran = run("predict", "m.npz", "blobs.csv", "--labels", "out.csv")
    assert (ran.status, ran.err) == (2, "lloydia: file too large: out.csv.\n")
    assert sorted(os.listdir(folder)) == before


# What is in the way, the output, and what is said.
LONG = "x" * 300 + ".csv"
PLACES = {
    "a circle of links": ("loop.csv", "too many levels of symbolic links"),
    "a folder that is a circle of links": ("loop/x.csv", "too many levels of symbolic links"),
    "a name that is too long": (LONG, "file name too long"),
    "a folder": ("folder.csv", "it exists and is not a file"),
    "a file for a folder": ("blobs.csv/x.csv", "blobs.csv is a file, not a folder"),
    "no folder": ("no/x.csv", "there is no folder no; make it first"),
    "a pipe": ("pipe.csv", "it exists and is not a file"),
    "a link to a device": ("full.csv", "it exists and is not a file"),
    "a link to nowhere's folder": ("nowhere.csv", "no such file or directory"),
    "the input": ("blobs.csv", "the command uses that file already"),
    "a link to the input": ("same.csv", "the command uses that file already"),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_that_cannot_be_written(run, folder, name):
    out, reason = PLACES[name]
    os.symlink("other.csv", "loop.csv")
    os.symlink("loop.csv", "other.csv")
    os.symlink("loop", "loop")
    os.symlink("no/x.csv", "nowhere.csv")
    os.symlink("blobs.csv", "same.csv")
    os.symlink("/dev/full", "full.csv")
    os.mkfifo("pipe.csv")
    os.mkdir("folder.csv")
    before = sorted(os.listdir(folder))
    for option in ("--labels", "--centers"):
        ran = run("fit", "blobs.csv", "-k", 2, option, out)
        assert ran.status == 2
        assert ran.err.startswith(f"lloydia: cannot write {out}: {reason}")
        assert ran.err.count("\n") == 1
        assert "bug" not in ran.err
    assert sorted(os.listdir(folder)) == before


def test_the_longest_name_that_a_file_can_have(run, folder):
    name = "ü" * 125 + "x.csv"
    assert len(os.fsencode(name)) == 255
    assert run("fit", "blobs.csv", "-k", 2, "--labels", name).status == 0
    assert (folder / name).exists()
