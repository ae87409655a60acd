from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lloydia
from lloydia import KMeans, MiniBatchKMeans
from lloydia.stopping import Labels


def test_predict_repeats_the_labels_of_the_fit(run, blobs):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz", "--labels", "fit.npy")
    ran = run("predict", "m.npz", "blobs.csv", "--labels", "again.npy", "--json")
    assert (ran.status, ran.err) == (0, "")
    facts = json.loads(ran.out)
    assert (facts["n_samples"], facts["n_clusters"], facts["labels"]) == (120, 3, "again.npy")
    assert np.array_equal(np.load("again.npy"), np.load("fit.npy"))


def test_labels_are_printed_where_no_file_is_named(run, blobs):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz")
    ran = run("predict", "m.npz", "blobs.csv")
    same = KMeans(3, random_state=0).fit(blobs)
    assert [int(line) for line in ran.out.splitlines()] == same.labels_.tolist()


def test_columns_are_matched_by_name(run, blobs):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz", "--columns", "a,c")
    names, X = "c,note,a", blobs[:, [2, 0]]
    with open("turned.csv", "w") as file:
        file.write(names + "\n")
        file.writelines(f"{c!r},word,{a!r}\n" for c, a in X.tolist())
    assert run("predict", "m.npz", "turned.csv").out == run("predict", "m.npz", "blobs.csv").out
    np.save("plain.npy", X[:, ::-1])
    assert run("predict", "m.npz", "plain.npy").out == run("predict", "m.npz", "blobs.csv").out


def test_data_are_read_in_the_precision_of_the_model(run, blobs):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz", "--dtype", "float32")
    assert json.loads(run("predict", "m.npz", "blobs.csv", "--json").out)["dtype"] == "float32"


@pytest.mark.parametrize("columns", ["c,a,b", "a,b,c", "1-3", "3,1,b"])
def test_chosen_columns_are_matched_by_name_too(run, blobs, columns):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz", "--columns", "b,a,c")
    known = run("predict", "m.npz", "blobs.csv")
    assert known.status == 0
    assert run("predict", "m.npz", "blobs.csv", "--columns", columns).out == known.out
    for given, says in (("a,b", "leaves out 'c'"), ("1,3", "leaves out 'b'")):
        ran = run("predict", "m.npz", "blobs.csv", "--columns", given)
        assert (ran.status, ran.out) == (2, "")
        assert says in ran.err


def test_surplus_columns_are_refused(run, blobs):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz", "--columns", "a,c")
    ran = run("predict", "m.npz", "blobs.csv", "--columns", "a,b,c")
    assert ran.status == 2
    assert "--columns chooses 'b'" in ran.err


def test_columns_without_a_header_are_positions(run, blobs):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz")
    np.save("turned.npy", blobs[:, ::-1])
    turned = run("predict", "m.npz", "turned.npy", "--columns", "3,2,1")
    assert turned.status == 0
    assert turned.out == run("predict", "m.npz", "blobs.csv").out


def test_json_holds_the_labels_where_no_file_does(run, blobs):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz", "--labels", "l.npy")
    facts = json.loads(run("predict", "m.npz", "blobs.csv", "--json").out)
    assert facts["labels"] == np.load("l.npy").tolist()
    assert facts["sizes"] == np.bincount(facts["labels"]).tolist()


def test_pairs_for_a_model_with_names(run, blobs):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz", "--columns", "a,b")
    stream = " ".join(map(repr, blobs[:, :2].ravel().tolist())).encode()
    ran = run("predict", "m.npz", "-", "--pairs", stdin=stream)
    assert ran.status == 0, ran.err
    assert ran.out == run("predict", "m.npz", "blobs.csv").out
    run("fit", "blobs.csv", "-k", 3, "--model", "three.npz")
    assert "three.npz needs 3" in run("predict", "three.npz", "-", "--pairs", stdin=stream).err


def test_a_device_that_is_not_there_is_one_sentence(run, blobs):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz")
    ran = run("predict", "m.npz", "blobs.csv", "--device", "cuda:99")
    assert (ran.status, ran.out) == (2, "")
    assert "--device cpu." in ran.err


@pytest.mark.parametrize(
    ("name", "value"),
    [("fitted", {"inertia_": None}), ("fitted", {"n_iter_": -3}), ("version", 1.0)],
)
def test_a_forged_model_is_one_sentence(run, blobs, folder, name, value):
    run("fit", "blobs.csv", "-k", 3, "--model", "m.npz")
    with np.load("m.npz") as archive:
        parts = dict(archive)
    header = {**json.loads(str(parts["header"])), name: value}
    np.savez("forged.npz", **{**parts, "header": np.array(json.dumps(header))})
    ran = run("predict", "forged.npz", "blobs.csv", "--labels", "l.csv")
    assert (ran.status, ran.out) == (2, "")
    assert "forged.npz is a damaged model; write it again." in ran.err
    assert not (folder / "l.csv").exists()


def test_what_the_command_line_writes_opens_in_python(run, blobs):
    options = ("--seed", 3, "--stop", "labels:0.01", "--algorithm", "elkan")
    assert run("fit", "blobs.csv", "-k", 3, "--model", "m.npz", *options).status == 0
    model = lloydia.load("m.npz")
    frame = pd.DataFrame(blobs, columns=["a", "b", "c"])
    again = KMeans(3, random_state=3, stop=Labels(0.01), algorithm="elkan", n_init="auto")
    assert model.get_params() == again.get_params()
    again.fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.cluster_centers_.tobytes() == again.cluster_centers_.tobytes()
    assert np.array_equal(model.predict(frame), again.labels_)
    assert (model.inertia_, model.n_iter_) == (again.inertia_, again.n_iter_)


@pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
@pytest.mark.parametrize("named", [True, False])
def test_what_python_saves_works_on_the_command_line(run, blobs, kind, named):
    frame = pd.DataFrame(blobs[:, ::-1], columns=["c", "b", "a"])
    model = kind(3, random_state=0, device="cpu").fit(frame if named else blobs)
    lloydia.save(model, "m.npz")
    ran = run("predict", "m.npz", "blobs.csv")
    assert (ran.status, ran.err) == (0, "")
    assert [int(line) for line in ran.out.splitlines()] == model.labels_.tolist()
    ran = run("fit", "blobs.csv", "-k", 3, "--init", "m.npz", "--labels", "l.npy")
    assert (ran.status, ran.err) == (0, "")


def test_a_model_by_blocks(run, blobs, folder):
    np.save("blobs.npy", blobs)
    pd.DataFrame(blobs, columns=["a", "b", "c"]).to_parquet("blobs.parquet")
    run("fit", "blobs.parquet", "-k", 3, "--memory", "2GB", "--model", "m.npz")
    model = lloydia.load("m.npz")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    ran = run("predict", "m.npz", "blobs.parquet", "--memory", "2GB", "--labels", "l.npy")
    assert (ran.status, "names" in ran.err) == (0, False)
    assert np.array_equal(np.load("l.npy"), KMeans(3, random_state=0).fit(blobs).labels_)


class Broken:
    """Give some of the lines of a file, and then the error of a broken disk."""

    def __init__(self, stream):
        self.stream = stream

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stream.close()

    def read(self, *_):
        raise OSError(errno.EIO, "Input/output error")

    readinto = readline = peek = __next__ = read


def broken_from(monkeypatch, name, number):
    """Let a file be broken from the opening of this number on, counted from 1."""
    opened, n = Path.open, 0

    def open_(path, mode="r", *more, **named):
        nonlocal n
        stream = opened(path, mode, *more, **named)
        if path.name != name or "r" not in mode:
            return stream
        n += 1
        return Broken(stream) if n >= number else stream

    monkeypatch.setattr(Path, "open", open_)


@pytest.mark.parametrize("files", [("--out", "o.csv"), ("--id", "a", "--labels", "l.csv")])
def test_a_table_that_cannot_be_read_again(run, blobs, folder, monkeypatch, files):
    run("fit", "blobs.csv", "-k", 2, "--columns", "b,c", "--model", "m.npz")
    # The first opening reads the numbers, the second one the header.
    broken_from(monkeypatch, "blobs.csv", 3)
    before = sorted(folder.iterdir())
    ran = run("predict", "m.npz", "blobs.csv", "--columns", "b,c", *files)
    assert (ran.status, ran.err) == (2, "lloydia: cannot read blobs.csv: input/output error.\n")
    assert sorted(folder.iterdir()) == before


def test_blocks_that_cannot_be_read(run, blobs, folder, monkeypatch):
    np.save("x.npy", blobs)
    run("fit", "x.npy", "-k", 2, "--model", "m.npz")

    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(np, "fromfile", refuse)
    ran = run("predict", "m.npz", "x.npy", "--memory", "2GB", "--labels", "l.npy")
    assert ran.status == 2
    assert ran.err.splitlines()[-1] == "lloydia: cannot read x.npy: input/output error."
    assert not (folder / "l.npy").exists()
