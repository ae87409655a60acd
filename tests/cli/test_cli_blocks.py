"""`--memory`: tables that are read by blocks."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lloydia
from lloydia.data.chunks.memory import OWN, OWN_FEATURE, PROGRAM, Purpose, spell

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def parts(folder):
    """600 rows of columns a to d as one.parquet, x.npy and a folder of three files."""
    X = np.random.default_rng(0).normal(size=(600, 4))
    rows = pa.table(dict(zip("abcd", X.T)))
    pq.write_table(rows, "one.parquet")
    np.save("x.npy", X)
    (folder / "parts").mkdir()
    for i in range(3):
        pq.write_table(rows.slice(200 * i, 200), f"parts/{i}.parquet")
    return X


def labels(path):
    return pq.read_table(path)["label"].to_numpy()


def test_fit_and_predict_give_what_they_give_in_memory(run, parts):
    options = ("-k", 5, "--labels")
    expected = json.loads(run("fit", "one.parquet", *options, "l.parquet", "--json").out)
    for i, data in enumerate((["one.parquet", "--memory", "1GB"], ["parts"], ["x.npy"])):
        ran = run("fit", *data, *options, f"{i}.parquet", "--model", "m.npz", "--json")
        assert ran.status == 0, ran.err
        assert ("peak memory" in ran.err) == (data != ["x.npy"])
        assert json.loads(ran.out)["inertia"] == expected["inertia"]
        np.testing.assert_array_equal(labels(f"{i}.parquet"), labels("l.parquet"))
    ran = run("predict", "m.npz", "x.npy", "--memory", "600MB", "--labels", "p.parquet")
    assert ran.status == 0, ran.err
    np.testing.assert_array_equal(labels("p.parquet"), labels("l.parquet"))


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_help_says_what_a_folder_is(run, command):
    shown = " ".join(run(command, "--help").out.replace("│", " ").split())
    assert "or a folder whose .parquet files are read as one table" in shown


@pytest.mark.parametrize("more", [(), ("--memory", "1GB")])
@pytest.mark.parametrize("name", ["a.csv", "_a.parquet"])
def test_a_folder_without_tables_says_what_a_folder_is(run, folder, name, more):
    (folder / "parts").mkdir()
    (folder / "parts" / name).touch()
    ran = run("fit", "parts", "-k", 2, *more)
    assert ran.status == 2
    assert ran.err == (
        "lloydia: parts is a folder without .parquet files: give a file, or a folder whose "
        ".parquet files are read as one table.\n"
    )


def test_predict_matches_columns_by_name(run, parts):
    options = ("--labels", "l.parquet")
    run("fit", "parts", "-k", 3, "--columns", "b,a", "--model", "m.npz", *options)
    for columns in ([], ["--columns", "a,b"]):
        ran = run("predict", "m.npz", "parts", *columns, "--labels", "p.parquet", "--json")
        assert ran.status == 0, ran.err
        assert json.loads(ran.out)["n_features"] == 2
        np.testing.assert_array_equal(labels("p.parquet"), labels("l.parquet"))


def test_the_memory_that_is_needed_is_named(run, parts):
    fit = ("fit", "parts", "-k", 3, "--threads", 1, "--memory")
    clusters = 3 * Purpose(3, "auto", "k-means++").of_cluster(4, n_threads=1)
    # All 600 rows are in one block; 28 bytes are kept of each, and each takes 32.
    kept = 600 * 28 + clusters + OWN + 4 * OWN_FEATURE
    source = lloydia.chunks("parts")
    needed = PROGRAM + kept + 32 * (4 * 600 + 2 * source.at_once) + source.overhead
    for memory in ("1MB", needed - 1):
        ran = run(*fit, memory)
        assert ran.status == 2
        said = f"parts needs at least {spell(needed)} of memory ({spell(PROGRAM)} for the program, "
        assert f"{said}{spell(kept)} for" in ran.err
        assert f"give --memory {-(-needed // 10**6)}MB or more" in ran.err
    ran = run(*fit, needed)
    assert ran.status == 0, ran.err
    assert f"peak memory {spell(needed)} of {spell(needed)}" in ran.err
    assert "1 are read in every pass." in ran.err
    ran = run(*fit, needed, "--spill", ".")
    assert ran.status == 0, ran.err
    assert "1 are read in every pass, the first time from the data, then from ." in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit parts -k 3 --memory much", "--memory much is not an amount of memory"),
        ("fit parts -k 3 --spill none", "--spill none is not a folder: make it, or name another."),
        ("fit b.npy -k 3 --spill parts", "--spill is for DATA that is read by blocks: add --mem"),
        ("fit parts -k 3 --memory -1GB", "--memory -1GB is not an amount of memory: write 2GB"),
        ("fit parts -k 3 --plot p.png", "in memory, and parts is read by blocks: leave it out."),
        ("fit b.npy -k 3 --plot p.png --memory 1GB", "leave it out, or --memory."),
        ("fit parts -k 3 --pairs", "--pairs and --header are for text"),
        ("fit parts -k 601", "-k 601 asks for more clusters than the 600 rows of parts"),
        ("fit parts -k 3 --columns e", "there is no column 'e'"),
        ("fit data.csv -k 3 --memory 1GB", "data.csv is text, which is not read by blocks"),
        ("fit data.csv -k 3 --memory 1GB", "leave out --memory, or make a .parquet of it."),
        ("fit folder.csv -k 3", "folder.csv is a folder without .parquet files"),
        ("fit folder.csv.gz -k 3", "folder.csv.gz is a folder without .parquet files"),
    ],
)
def test_bad_input_is_one_sentence(run, parts, folder, arguments, message):
    (folder / "data.csv").write_text("1,2\n3,4\n")
    for name in ("folder.csv", "folder.csv.gz"):
        (folder / name).mkdir()
    ran = run(*arguments.split())
    assert ran.status == 2
    assert message in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("name", ["parts/labels.parquet", "link/sub/labels.parquet", "in.parquet"])
@pytest.mark.parametrize(
    "command", ["fit {} -k 3 --labels", "fit {} -k 3 --centers", "predict m.npz {} --labels"]
)
@pytest.mark.parametrize("data", ["parts", "link"])
def test_an_output_is_no_part_of_the_folder_that_is_read(run, parts, folder, data, command, name):
    (folder / "parts" / "sub").mkdir()
    (folder / "link").symlink_to("parts")
    (folder / "in.parquet").symlink_to("parts/new.parquet")
    # Not Parquet at all, but nothing of it is read.
    (folder / "parts" / "0.parquet").write_bytes(b"")
    ran = run(*command.format(data).split(), name)
    assert ran.status == 2
    assert ran.err == (
        f"lloydia: cannot write {name}: it would become a part of the table that is read "
        f"from {data}; name a file in another folder, or of another format.\n"
    )


@pytest.mark.parametrize("name", ["labels.npy", "_labels.parquet", "../labels.parquet"])
def test_an_output_may_lie_beside_what_is_read(run, parts, name):
    ran = run("fit", "parts", "-k", 3, "--labels", f"parts/{name}")
    assert ran.status == 0, ran.err
    assert run("fit", "parts", "-k", 3, "--json").out.count('"n_samples": 600') == 1


def test_predict_needs_a_file_for_labels(run, parts):
    run("fit", "parts", "-k", 3, "--model", "m.npz")
    ran = run("predict", "m.npz", "parts")
    assert ran.status == 2
    assert "add --labels FILE" in ran.err
