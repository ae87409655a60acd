"""All commands alike replace what Lloydia wrote, and anything else only with --force."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from PIL import Image

from lloydia.data.outputs import Renames

FIT = ("fit", "blobs.csv", "-k", 2)
# Commands, and the option that names the output, for each kind of output.
COMMANDS = {
    **{
        f"labels as {suffix}": ((*FIT, "--labels"), f"l{suffix}")
        for suffix in (".csv", ".tsv", ".txt", ".npy", ".parquet")
    },
    "centres": ((*FIT, "--centers"), "c.csv"),
    "a table": ((*FIT, "--out"), "t.csv"),
    "a model": ((*FIT, "--model"), "m.npz"),
    "a plot": ((*FIT, "--plot"), "p.svg"),
    "predicted labels": (("predict", "model.npz", "blobs.csv", "--labels"), "l.csv"),
    "a predicted table": (("predict", "model.npz", "blobs.csv", "--out"), "t.csv"),
    "labels by blocks": (
        ("predict", "model.npz", "x.npy", "--memory", "2GB", "--labels"),
        "l.csv",
    ),
    "segments": (("segment", "photo.png", "-k", 2, "--out"), "s.jpg"),
    "labels of pixels": (("segment", "photo.png", "-k", 2, "--out", "s.png", "--labels"), "l.npy"),
    "boundaries": (("segment", "photo.png", "-k", 2, "--out", "s.png", "--boundaries"), "b.png"),
    "a picture": (("quantize", "photo.png", "-k", 2, "--out"), "q.gif"),
    "a palette": (("quantize", "photo.png", "-k", 2, "--out", "q.png", "--palette"), "p.gpl"),
    "a dump": (
        ("ladder", "dump", "--rows", 32, "-k", 2, "--every", "--out"),
        "dump/iteration-001.txt",
    ),
}


@pytest.fixture
def inputs(run, blobs, folder):
    np.save("x.npy", blobs)
    run("fit", "blobs.csv", "-k", 2, "--model", "model.npz")
    pixels = np.random.default_rng(0).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save("photo.png")
    (folder / "dump").mkdir()


def others(folder):
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_own_outputs_are_replaced_and_no_others(run, inputs, folder, name):
    words, output = COMMANDS[name]
    named = output.partition("/")[0]
    path = folder / output
    for _ in range(2):
        ran = run(*words, named)
        assert ran.status == 0, ran.err
    # The user's own file, and one of Lloydia's that the user changed.
    for mode, text in (("w", "the user's"), ("a", "more")):
        if name == "a model" and mode == "a":
            # It still says that it is a model.
            continue
        with path.open(mode) as stream:
            stream.write(text)
        before = others(folder)
        ran = run(*words, named)
        assert (ran.status, ran.out) == (2, "")
        assert f"cannot write {output}: it exists, and is not recognised" in ran.err
        assert "name another file, or add --force to replace it." in ran.err
        assert ran.err.count("\n") == 1
        assert others(folder) == before
        assert run(*words, named, "--force").status == 0
        assert run(*words, named).status == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_appears_during_the_work_is_not_replaced(
    run, inputs, folder, name, monkeypatch
):
    words, output = COMMANDS[name]
    path, close = folder / output, Renames.__exit__

    def close_late(renames, *found):
        monkeypatch.setattr(Renames, "__exit__", close)
        path.write_text("the user's")
        return close(renames, *found)

    monkeypatch.setattr(Renames, "__exit__", close_late)
    before = others(folder)
    ran = run(*words, output.partition("/")[0])
    assert ran.status == 2, ran.err
    assert f"cannot write {output}: it exists, and is not recognised" in ran.err
    assert others(folder) == {**before, path: b"the user's"}
    monkeypatch.setattr(Renames, "__exit__", close_late)
    assert run(*words, output.partition("/")[0], "--force").status == 0
    assert path.read_bytes() != b"the user's"


@pytest.mark.parametrize("words", [(), ("--force",)])
@pytest.mark.parametrize("kind", ["itself", "a link", "a hard link"])
def test_the_input_is_never_replaced(run, blobs, folder, kind, words):
    output = {"itself": "blobs.csv", "a link": "link.csv", "a hard link": "hard.csv"}[kind]
    (folder / "link.csv").symlink_to("blobs.csv")
    os.link(folder / "blobs.csv", folder / "hard.csv")
    run(*FIT, "--model", "m.npz")
    before = others(folder)
    for command in ((*FIT, "--out"), ("predict", "m.npz", "blobs.csv", "--labels")):
        ran = run(*command, output, *words)
        assert (ran.status, "uses that file already" in ran.err) == (2, True)
    assert others(folder) == before


def test_a_link_to_a_file_of_the_user(run, blobs, folder):
    (folder / "mine.csv").write_text("mine")
    (folder / "link.csv").symlink_to("mine.csv")
    ran = run(*FIT, "--labels", "link.csv")
    assert (ran.status, (folder / "mine.csv").read_text()) == (2, "mine")
    assert run(*FIT, "--labels", "link.csv", "--force").status == 0
    assert (folder / "link.csv").is_symlink()
    assert run(*FIT, "--labels", "link.csv").status == 0


def test_an_empty_file_holds_nothing_to_keep(run, blobs, folder):
    (folder / "l.csv").touch()
    assert run(*FIT, "--labels", "l.csv").status == 0


@pytest.mark.parametrize("copy", [shutil.copyfile, shutil.copy2])
def test_copies_of_outputs(run, blobs, folder, copy):
    run(*FIT, "--model", "m.npz", "--labels", "l.csv")
    for name in ("m.npz", "l.csv"):
        copy(folder / name, folder / f"copy-{name}")
    # A model says what it is; labels could be anybody's.
    assert run(*FIT, "--model", "copy-m.npz").status == 0
    assert run(*FIT, "--labels", "copy-l.csv").status == 2


@pytest.mark.parametrize("copied", [False, True])
def test_a_checkpoint_is_not_replaced_by_a_model(run, blobs, folder, copied):
    pytest.importorskip("sklearn.callback")
    run(*FIT, "--checkpoint", "c.npz")
    if copied:
        shutil.copyfile("c.npz", "copy.npz")
        os.replace("copy.npz", "c.npz")
    before = others(folder)
    ran = run(*FIT, "--model", "c.npz")
    assert (ran.status, ran.out) == (2, "")
    assert "cannot write c.npz: it is the checkpoint of a fit; name another file" in ran.err
    assert others(folder) == before
    assert run(*FIT, "--model", "c.npz", "--force").status == 0


@pytest.mark.parametrize("more", [(), ("--force",), ("--labels", "mine.csv", "--force")])
def test_a_checkpoint_never_begins_anew(run, blobs, folder, more):
    pytest.importorskip("sklearn.callback")
    (folder / "mine.csv").write_text("mine")
    words = (*FIT, "--checkpoint", "c.npz")
    assert run(*words).status == 0
    before = others(folder)
    ran = run(*words, *more)
    assert (ran.status, ran.out) == (2, "")
    assert "add --resume to continue from it, delete it to start again, or name" in ran.err
    assert others(folder) == before
    assert run(*words, *more, "--resume").status == 0
    (folder / "c.npz").unlink()
    assert run(*words, *more).status == 0


@pytest.mark.parametrize("kind", ["text", "a model", "an archive"])
def test_a_checkpoint_replaces_other_files_only_with_force(run, blobs, folder, kind):
    pytest.importorskip("sklearn.callback")
    if kind == "text":
        (folder / "c.npz").write_text("mine")
    elif kind == "a model":
        run(*FIT, "--model", "c.npz")
    else:
        np.savez("c.npz", X=blobs)
    before = others(folder)
    words = (*FIT, "--checkpoint", "c.npz")
    ran = run(*words)
    assert (ran.status, ran.out) == (2, "")
    assert "c.npz exists, and is not a checkpoint: name another file, or add" in ran.err
    assert others(folder) == before
    assert run(*words, "--force").status == 0
    assert run(*words, "--resume").status == 0


def test_a_folder_of_pictures(run, inputs, folder):
    (folder / "in").mkdir()
    for name in ("a.png", "b.png"):
        shutil.copyfile(folder / "photo.png", folder / "in" / name)
    words = ("quantize", "in", "-k", 2, "--out", "out")
    assert run(*words).status == 0
    assert run(*words).status == 0
    (folder / "out" / "a.png").write_text("mine")
    ran = run(*words)
    assert (ran.status, "1 of 2 images were left out: cannot write out/a.png" in ran.err) == (
        2,
        True,
    )
    assert (folder / "out" / "a.png").read_text() == "mine"
    assert run(*words, "--force").status == 0


def test_names_that_commands_choose(run, inputs, folder, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, words in {
        "photo-2.png": ("quantize", "photo.png", "-k", 2),
        "photoCLUSTERIZED.png": ("segment", "photo.png", "-k", 2),
        "photoSIDEBYSIDE.png": ("segment", "photo.png", "RGB", 2, 9, "display", "--force"),
    }.items():
        (folder / name).write_text("mine")
        words = [word for word in words if word != "--force"]
        ran = run(*words)
        assert (ran.status, f"cannot write {name}" in ran.err) == (2, True), ran.err
        assert run(*words, "--force").status == 0


def test_the_demo_and_the_benchmarks_ask_before_they_work(run, folder):
    pytest.importorskip("matplotlib")
    for name in ("digits.png", "quantize-speed.png"):
        (folder / name).write_text("mine")
    ran = run("demo", "--out", ".")
    assert (ran.status, "cannot write digits.png" in ran.err) == (2, True)
    ran = run("bench", "images", "--pictures", ".")
    assert (ran.status, "cannot write quantize-speed.png" in ran.err) == (2, True)
