"""Closed and full streams, and tables whose columns share a name."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from lloydia.cli import main

NAMES = [
    "Dr. Smith.csv",
    "two  spaces.csv",
    "init='random' empty='keep'.csv",
    "[red]x[bold].csv",
    "x[" + "y" * 200 + "].csv",
    "100%s {0} {name}.csv",
    'it\'s "quoted".csv',
    "two\nlines. And More.csv",
    "\x1b[31mred.csv",
    "caf\udce9.csv",
]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rows = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    path.write_text("a,a,b\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return path


def test_a_closed_standard_input_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["fit", "-", "-k", "2"]) == 2
    assert capsys.readouterr().err == "lloydia: standard input is closed; give a file.\n"


def test_a_closed_standard_output_is_no_error(monkeypatch, table, tmp_path):
    monkeypatch.setattr(sys, "stdout", None)
    labels = tmp_path / "labels.npy"
    assert main(["fit", str(table), "-k", "2", "--labels", str(labels)]) == 0
    assert np.load(labels).shape == (60,)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_standard_output_leaves_no_file(monkeypatch, table, tmp_path):
    labels = tmp_path / "labels.npy"
    full = open("/dev/full", "w")  # noqa: SIM115
    monkeypatch.setattr(sys, "stdout", full)
    assert main(["fit", str(table), "-k", "2", "--labels", str(labels), "--json"]) == 2
    assert not labels.exists()
    with pytest.raises(OSError, match="No space"):
        full.close()


def test_a_model_fits_the_table_it_came_from_whatever_its_header(table, tmp_path, capsys):
    model = tmp_path / "model.npz"
    assert main(["fit", str(table), "-k", "2", "--model", str(model)]) == 0
    assert main(["predict", str(model), str(table)]) == 0
    assert "named" not in capsys.readouterr().err


def test_parquet_columns_of_one_name_are_refused(tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "twice.parquet"
    parquet.write_table(pa.Table.from_arrays([pa.array([1.0, 2.0])] * 2, names=["a", "a"]), path)
    assert main(["fit", str(path), "-k", "1"]) == 2
    assert "two columns named 'a'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("labels", "message"),
    [(np.ones(60, complex), "complex128"), (np.full(60, np.nan), "row 1 is missing")],
)
def test_labels_that_are_none(labels, message, table, tmp_path, capsys):
    path = tmp_path / "labels.npy"
    np.save(path, labels)
    assert main(["score", str(table), str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error) < 200


def test_a_bug_is_one_line_and_its_traceback_is_to_be_had(monkeypatch, table, capsys):
    from lloydia import KMeans

    def broken(*_, **__):
        raise KeyError("lost")

    monkeypatch.setattr(KMeans, "fit", broken)
    assert main(["fit", str(table), "-k", "2"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("LLOYDIA_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["fit", str(table), "-k", "2"])


@pytest.mark.parametrize("name", NAMES)
def test_names_of_files_columns_and_cells_are_printed_as_they_are(run, folder, name):
    column, cell = "Temp. Max  at St. Louis", "St. Louis.  Mo"
    (folder / name).write_text(f"{column},b\n1,2\n{cell},3\n")
    ran = run("fit", name, "-k", 2)
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    place = f"row 2 (line 3), column 1 ({column!r}) is {cell!r}, not a number."
    assert (ran.status, ran.err) == (2, f"lloydia: {shown}: {place}\n")
