from __future__ import annotations

import codecs
import os
import tarfile
import threading
import warnings

import numpy as np
import pytest

import lloydia
from lloydia.data.columns import DataError
from lloydia.data.files import read_table
from lloydia.data.labels import read_labels

X = np.array([[1.0, 2.0], [3.0, 4.5]])


@pytest.mark.parametrize(
    ("given", "dtype", "read_as"),
    [
        ("float64", None, "float64"),
        ("float32", None, "float32"),
        ("float16", None, "float32"),
        (">f4", None, "float32"),
        (">f8", None, "float64"),
        ("int64", None, "float64"),
        ("uint8", None, "float64"),
        ("bool", None, "float64"),
        ("float64", "float32", "float32"),
        ("float32", "float64", "float64"),
    ],
)
def test_dtypes(tmp_path, given, dtype, read_as):
    values = X.astype(given)
    np.save(tmp_path / "x.npy", values)
    table = read_table(tmp_path / "x.npy", dtype=dtype)
    assert table.X.dtype == np.dtype(read_as)
    assert table.X.flags.c_contiguous
    assert table.X.dtype.isnative
    assert np.array_equal(table.X, values.astype(read_as))


def test_fortran_order(tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    table = read_table(tmp_path / "x.npy", columns="2,1")
    assert table.X.tolist() == X[:, ::-1].tolist()
    assert table.X.flags.c_contiguous


def test_archives(tmp_path):
    np.savez(tmp_path / "one.npz", anything=X)
    np.savez(tmp_path / "some.npz", a=X + 1, data=X, b=X)
    for name in ("one.npz", "some.npz"):
        assert np.array_equal(read_table(tmp_path / name).X, X)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "x.csv"
    path.write_bytes("größe,b\r\n1,2\r\n3,4.5\r\n".encode(encoding))
    assert path.read_bytes().startswith(codecs.BOM_UTF8) == (encoding == "utf-8-sig")
    table = read_table(path)
    assert table.names == ("größe", "b")
    assert np.array_equal(table.X, X)


def test_pairs_from_an_array_of_one_dimension(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0))
    assert read_table(tmp_path / "x.npy", pairs=True).X.tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_text_from_a_pipe_that_cannot_be_rewound(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("1,2\n3,4.5\n",))
    writer.start()
    assert np.array_equal(read_table(tmp_path / "pipe").X, X)
    writer.join()


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {"a": [1, 3], "word": ["x", "y"], "b": np.array([2.0, 4.5], np.float32)}, index=[7, 9]
    )
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"column 2 \('word'\) holds text.*columns='1,3'"):
        read_table(tmp_path / "x.parquet")
    table = read_table(tmp_path / "x.parquet", columns="a,b")
    assert table.names == ("a", "b")
    assert table.X.dtype == np.float64
    assert np.array_equal(table.X, X)
    only = read_table(tmp_path / "x.parquet", columns="b")
    assert only.X.dtype == np.float32


@pytest.mark.parametrize("kind", ["npy", "txt", "csv", "parquet"])
def test_labels(tmp_path, kind):
    path, labels = tmp_path / f"l.{kind}", np.array([3, 1, 1], np.int32)
    if kind == "npy":
        np.save(path, labels[:, None])
    elif kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pa.table({"label": labels}), path)
    else:
        np.savetxt(path, labels, fmt="%d", header="label" if kind == "csv" else "", comments="")
    assert read_labels(path, 3).tolist() == [3, 1, 1]
    with pytest.raises(DataError, match="labels for the 5 rows"):
        read_labels(path, 5)


def test_labels_of_two_columns(tmp_path):
    (tmp_path / "l.csv").write_text("1,2\n3,4\n")
    with pytest.raises(DataError, match="has 2 columns; labels are one column"):
        read_labels(tmp_path / "l.csv", 2)


def test_columns_without_a_name_are_warned_of(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [0.5, 1.5, 2.0], "b": [1.0, 2.0, 4.0]})
    frame.to_csv(tmp_path / "t.csv")
    with pytest.warns(UserWarning, match=r"column 1 has no name .* columns='2-3'"):
        table = read_table(tmp_path / "t.csv")
    assert table.names == ("", "a", "b")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(tmp_path / "t.csv", columns="2-3").names == ("a", "b")
        frame.to_csv(tmp_path / "t.csv", index=False)
        assert read_table(tmp_path / "t.csv").names == ("a", "b")


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_types_that_pyarrow_does_not_read_are_no_damage(tmp_path, name):
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    frame = pl.DataFrame({"a": [1, 2], "b": [1.0, 2.0]}, schema={"a": pl.Int128, "b": pl.Float64})
    (frame.write_parquet if name == "t.parquet" else frame.write_ipc)(tmp_path / name)
    with pytest.raises(DataError, match=r"holds what pyarrow does not read .*64 bits"):
        read_table(tmp_path / name)
    if name == "t.parquet":
        with pytest.raises(DataError, match="holds what pyarrow does not read"):
            lloydia.chunks(tmp_path / name)


@pytest.mark.parametrize("name", ["t.tgz", "t.txz", "t.tbz2"])
def test_compressed_tar_archives_are_to_be_extracted(tmp_path, name):
    with tarfile.open(tmp_path / name, {"g": "w:gz", "x": "w:xz", "b": "w:bz2"}[name[3]]):
        pass
    with pytest.raises(DataError, match="extract it, as a tar archive"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("name", ["d.csv", "d.npy", "d.h5", "d.parquet", "d"])
def test_folders_without_tables_are_called_folders(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(DataError, match="is a folder, not a file"):
        read_table(tmp_path / name)
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=r"is a folder without \.parquet files"):
        lloydia.chunks(tmp_path / name)
