"""Bad input: exit status 2, one sentence, nothing touched."""

from __future__ import annotations

import re
import zipfile

import numpy as np
import pytest

from lloydia.data.outputs.seals import seal

GOOD = "a,b\n1,2\n3,4\n5,7\n"
FIT = ("fit", "data.csv", "-k", 2, "--labels", "labels.csv", "--centers", "new.csv")

# What the data file holds, the command, and what the sentence must say.
TEXTS = {
    "empty file": ("", FIT, "data.csv is empty"),
    "only comments": ("# a\n\n", FIT, "data.csv is empty"),
    "header only": ("a,b\n", FIT, "has a header but no rows"),
    "ragged row": (
        "a,b\n1,2\n3,4,5\n",
        FIT,
        "row 2 (line 3) has 3 cells where the first row has 2",
    ),
    "short row": ("1,2\n3\n", FIT, "row 2 (line 2) has 1 cell where"),
    "text cell": ("a,b\n1,2\n3,x\n", FIT, "row 2 (line 3), column 2 ('b') is 'x', not a number"),
    "text column": (
        "a,b,c\n1,x,2\n3,y,4\n",
        FIT,
        "column 2 ('b') holds text; choose",
    ),
    "missing cell": (
        "1,2\n3,\n",
        FIT,
        "column 2 is missing; fill it in or remove the row",
    ),
    "NA": ("a,b\n1,2\n\nNA,4\n", FIT, "row 2 (line 4), column 1 ('a') is missing"),
    "NaN": ("a,b\n1,nan\n3,4\n", FIT, "row 1 (line 2), column 2 ('b') is NaN"),
    "infinity": ("1,2\n3,-inf\n", FIT, "row 2 (line 2), column 2 is infinite"),
    "beyond float64": ("1,2\n3,1e999\n", FIT, "row 2 (line 2), column 2 is infinite"),
    "beyond float32": ("1,2\n3,1e39\n", (*FIT, "--dtype", "float32"), "too large for float32"),
    "squares overflow": (
        "a,b,c\n1,0,2\n3,0,-1e200\n",
        (*FIT, "--columns", "a,c"),
        "data.csv: row 2, column 3 ('c') is -1e+200, and its squared distances overflow",
    ),
    "decimal commas": (
        "a;b\n1,5;2\n2,5;3\n",
        FIT,
        "column 1 ('a') holds '1,5' in row 1, line 2, not a number; give --decimal ',',",
    ),
    "thousands": (
        "a\tb\n1,000\t2\n3\t4\n",
        FIT,
        "not a number; give --thousands ',' if it means 1000, or --decimal ',' if it means 1.",
    ),
    "decimal commas in the first row": (
        "1,5\t2\n2,5\t3\n",
        FIT,
        "column 1 holds '1,5' in row 1, line 1, not a number; give --decimal",
    ),
    "one decimal comma": (
        "a;b\n1;2\n2;3,25\n",
        FIT,
        "is '3,25', not a number; give --decimal ',', or write 3.25",
    ),
    "gzip": (b"\x1f\x8b\x08\x00rest", FIT, "data.csv is compressed by gzip"),
    "zip": (b"PK\x03\x04rest", FIT, "data.csv is a zip archive"),
    "NumPy": (b"\x93NUMPY\x01\x00", FIT, "data.csv is a NumPy array, not text; name it .npy"),
    "backwards": (GOOD, (*FIT, "--columns", "2-1"), "the range runs backwards; write 1-2"),
    "two tables": (
        GOOD,
        ("fit", "data.csv", "x.csv", "-k", 2),
        "fit takes one DATA; 'x.csv' is one too many (see lloydia fit --help)",
    ),
    "no data": (
        GOOD,
        ("predict", "data.csv"),
        "DATA is required: predict takes one MODEL and one DATA (see lloydia predict",
    ),
    "no value": (GOOD, ("fit", "data.csv", "-k", 2, "--labels"), "--labels needs a value"),
    "empty data name": (GOOD, ("fit", "", "-k", 2), "an empty file name"),
    "empty output name": (GOOD, (*FIT[:4], "--model", ""), "an empty file name"),
    "labels to standard output": (GOOD, (*FIT[:5], "-"), "standard output is not supported"),
    "one extension": (GOOD, (*FIT[:4], "--model", "m.pkl"), "its extension must be .npz."),
    "empty cluster": (
        "1\n1\n2\n",
        ("fit", "data.csv", "-k", 2, "--init", "far.csv", "--empty", "error"),
        "or --empty relocate",
    ),
    "ambiguous header": ("1,x\n2,y\n", FIT, "say --header or --no-header"),
    "odd pairs": ("1 2 3", (*FIT, "--pairs"), "3 numbers, an odd count"),
    "text in pairs": ("1 2 3 y", (*FIT, "--pairs"), "pair 2 (line 1), y is 'y', not a number"),
    "pairs and columns": (GOOD, (*FIT, "--pairs", "--columns", 1), "leave out --columns"),
    "unknown column": (GOOD, (*FIT, "--columns", "z"), "no column 'z'; its columns are 'a', 'b'"),
    "column too high": (GOOD, (*FIT, "--columns", "1-3"), "outside its columns 1 to 2"),
    "no such file": (GOOD, ("fit", "none.csv", "-k", 2, *FIT[4:]), "no such file: none.csv"),
    "folder": (GOOD, ("fit", ".", "-k", 2, *FIT[4:]), "is a folder without .parquet files"),
    "no k": (GOOD, ("fit", "data.csv"), "-k is required, such as -k 8 (see lloydia fit"),
    "k of 0": (GOOD, ("fit", "data.csv", "-k", 0), "0 for -k: it must be >= 1"),
    "negative k": (GOOD, ("fit", "data.csv", "-k", -3), "-3 for -k: it must be >= 1"),
    "k above n": (GOOD, ("fit", "data.csv", "-k", 4), "more clusters than the 3 rows of data.csv"),
    "fraction of k": (GOOD, ("fit", "data.csv", "-k", 2.5), "'2.5' is not a whole number"),
    "unknown init": (GOOD, (*FIT, "--init", "kmeans+"), "Unknown --init 'kmeans+'; give k-means++"),
    "unknown algorithm": (GOOD, (*FIT, "--algorithm", "yolo"), "yolo"),
    "unknown device": (GOOD, (*FIT, "--device", "tpu"), "'tpu'"),
    "no such GPU": (GOOD, (*FIT, "--device", "cuda:99"), "--device cpu."),
    "two ways to stop": (
        GOOD,
        (*FIT, "--stop", "labels", "--tol", "1e-3"),
        "--tol 0.001: give one",
    ),
    "unknown stop": (GOOD, (*FIT, "--stop", "soon"), "'soon'"),
    "stop of a word": (GOOD, (*FIT, "--stop", "labels:x"), "'x' is not a number; write labels:0."),
    "negative tol": (GOOD, (*FIT, "--tol", -1), "--tol: it must be >= 0"),
    "max_iter of 0": (GOOD, (*FIT, "--max-iter", 0), "--max-iter: it must be >= 1"),
    "init that is not there": (GOOD, (*FIT, "--init", "s.csv"), "no such file: s.csv; give k-me"),
    "n_init of 0": (GOOD, (*FIT, "--n-init", 0), "0 is not positive"),
    "negative seed": (GOOD, (*FIT, "--seed", -1), "--seed: it must be >= 0"),
    "init of wrong k": (GOOD, (*FIT, "--init", "data.csv"), "holds 3 centres of 2 columns"),
    "init of wrong d": (GOOD, (*FIT, "--init", "one.csv"), "holds 2 centres of 1 columns"),
    "unknown option": (GOOD, (*FIT, "--fast"), "Unknown option"),
    "unknown command": (GOOD, ("cluster", "data.csv"), "Unknown command"),
    "unknown extension": (GOOD, (*FIT[:4], "--labels", "l.xls"), "one of .npy, .csv, .tsv, .txt"),
    "checkpoint of another kind": (GOOD, (*FIT, "--checkpoint", "c.pkl"), "must be .npz."),
    "checkpoint is an output": (
        GOOD,
        (*FIT, "--model", "m.npz", "--checkpoint", "m.npz"),
        "uses that file already",
    ),
    "every without a checkpoint": (GOOD, (*FIT, "--every", 3), "--every needs a checkpoint"),
    "resume without a checkpoint": (GOOD, (*FIT, "--resume"), "--resume needs a checkpoint"),
    "every of 0": (GOOD, (*FIT, "--checkpoint", "c.npz", "--every", 0), "--every: it must be >= 1"),
    "no folder": (GOOD, (*FIT, "--model", "no/m.npz"), "there is no folder no; make it first"),
    "output is a folder": (GOOD, (*FIT, "--plot", "sub.png"), "exists and is not a file"),
    "output is the input": (GOOD, (*FIT[:4], "--labels", "data.csv"), "uses that file already"),
    "same output twice": (GOOD, (*FIT[:6], "--centers", "labels.csv"), "uses that file already"),
    "a picture": (
        b"\xff\xd8\xff\xe0 and more",
        FIT,
        "is a JPEG picture, not text; lloydia",
    ),
    "not UTF-8": ("größe\n1\n".encode("latin-1"), FIT, "is not UTF-8 text"),
    "not a model": (
        GOOD,
        ("predict", "data.csv", "data.csv"),
        "is not a model: give MODEL first",
    ),
    "one score label": (GOOD, ("score", "data.csv", "one.csv"), "holds 2 labels for the 3 rows"),
    "a header is no label": (
        GOOD,
        ("score", "data.csv", "headed.csv"),
        "holds 2 labels for the 3 rows",
    ),
}


def snapshot(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def check(ran, says):
    assert ran.status == 2
    assert ran.out == ""
    assert says in ran.err.replace('"', "")  # the parser's versions quote differently
    assert re.fullmatch(r"lloydia: [^\n]+[.?]\n", ran.err)
    assert not re.search(r"[^.]\. +[A-Z]", ran.err), f"more than one sentence: {ran.err}"


@pytest.mark.parametrize("name", TEXTS)
def test_text(run, folder, name):
    text, command, says = TEXTS[name]
    (folder / "data.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    (folder / "one.csv").write_text("1\n2\n")
    (folder / "headed.csv").write_text("label\n1\n2\n")
    (folder / "far.csv").write_text("1\n900\n")
    # As if Lloydia had written it: nothing but the error keeps it.
    (folder / "labels.csv").write_text("kept")
    seal(folder / "labels.csv")
    (folder / "sub.png").mkdir()
    before = snapshot(folder)
    check(run(*command), says)
    assert snapshot(folder) == before


def _object_array():
    array = np.empty((2, 2), dtype=object)
    array[:] = {}
    return array


ARRAYS = {
    "one dimension": (np.arange(6.0), "reshape(-1, 1)"),
    "three dimensions": (np.zeros((2, 2, 2)), "a table has two dimensions"),
    "no rows": (np.zeros((0, 3)), "is empty: its shape is (0, 3)"),
    "complex": (np.zeros((3, 2), complex), "not real numbers"),
    "words": (np.array([["a", "b"]]), "not real numbers"),
    "objects": (_object_array(), "holds Python objects"),
    "NaN": (np.array([[0, 1], [2, np.nan]], np.float32), "row 2, column 2 is NaN"),
    "infinity": (np.array([[0, 1], [np.inf, 1]]), "row 2, column 1 is infinite"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_array(run, folder, name):
    array, says = ARRAYS[name]
    np.save(folder / "x.npy", array, allow_pickle=True)
    before = snapshot(folder)
    check(run("fit", "x.npy", "-k", 2, "--model", "m.npz"), says)
    assert snapshot(folder) == before


def test_archives(run, folder):
    np.savez("two.npz", a=np.zeros((2, 2)), b=np.zeros((2, 2)))
    check(run("fit", "two.npz", "-k", 1), "two.npz holds a, b; keep one array")
    (folder / "cut.npy").write_bytes(b"\x93NUMPY\x01\x00")
    check(run("fit", "cut.npy", "-k", 1), "damaged")
    whole = (folder / "two.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    check(run("fit", "cut.npz", "-k", 1), "damaged")
    with zipfile.ZipFile("text.npz", "w") as archive:
        archive.writestr("hello.txt", "hello")
    check(run("predict", "text.npz", "two.npz"), "is not a model")


def test_parquet(run, folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [1, 2], "s": ["x", "y"]}), "text.parquet")
    check(run("fit", "text.parquet", "-k", 1), "column 2 ('s') holds text; choose")
    days = pa.array([1, 2], pa.date32())
    parquet.write_table(pa.table({"a": [1, 2], "day": days}), "dates.parquet")
    check(run("fit", "dates.parquet", "-k", 1), "column 2 ('day') holds dates; choose")
    parquet.write_table(pa.table({"a": [1, 2], "b": [0.5, None]}), "null.parquet")
    check(run("fit", "null.parquet", "-k", 1), "row 2, column 2 ('b') is missing")
    (folder / "bad.parquet").write_bytes(b"PAR1 nothing")
    check(run("fit", "bad.parquet", "-k", 1), "damaged or not a Parquet file")


def test_a_full_disk_names_the_file_that_failed(run, blobs, monkeypatch):
    from lloydia.data import outputs

    def full(to, *_):
        if to.name.startswith(".second"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs, "write_table", full)
    ran = run("fit", "blobs.csv", "-k", 2, "--labels", "first.csv", "--centers", "second.csv")
    check(ran, "lloydia: no space left on device: second.csv.")


def test_predict_with_other_columns(run, blobs):
    run("fit", "blobs.csv", "-k", 2, "--model", "m.npz")
    np.save("two.npy", blobs[:, :2])
    np.savetxt("other.csv", blobs, delimiter=",", header="a,b,z", comments="")
    check(run("predict", "m.npz", "two.npy"), "two.npy has 2 columns, and m.npz needs 3")
    check(run("predict", "m.npz", "other.csv"), "no column 'c'")
    np.savetxt("huge.csv", 1e200 + blobs, delimiter=",", header="a,b,c", comments="")
    check(run("predict", "m.npz", "huge.csv", "--labels", "l.csv"), "overflow")
