"""Files of other formats than plain text: read, or named for what they are, by their bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import sqlite3
import sys
import threading
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image

from lloydia.data.columns import DataError
from lloydia.data.files import read_table
from lloydia.data.formats import compressed, room
from lloydia.data.labels import read_labels

A = np.array([[0, 0], [0, 1], [1, 0], [4, 4], [4, 5], [5, 4.0]])
CSV = b"a,b\n" + b"".join(b"%d,%d\n" % tuple(row) for row in A.astype(int).tolist())


def zstd(data):
    pa = pytest.importorskip("pyarrow")
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


COMPRESSIONS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}


@pytest.mark.parametrize("extension", COMPRESSIONS)
@pytest.mark.parametrize("inner", [".csv", ".txt", ""])
def test_compressed_text_is_read(tmp_path, extension, inner):
    path = tmp_path / f"table{inner}{extension}"
    path.write_bytes(COMPRESSIONS[extension](CSV))
    table = read_table(path, columns="b,a")
    assert np.array_equal(table.X, A[:, ::-1])
    assert table.names == ("b", "a")


def test_the_inner_extension_says_how_the_text_is_separated(tmp_path):
    (tmp_path / "table.TSV.GZ").write_bytes(gzip.compress(b"a,b\tc\n1\t2\n"))
    assert read_table(tmp_path / "table.TSV.GZ").names == ("a,b", "c")


def test_concatenated_gzip_members_and_utf16_are_read(tmp_path):
    path = tmp_path / "table.csv.gz"
    text = CSV.decode()
    path.write_bytes(gzip.compress(text.encode("utf-16")))
    assert np.array_equal(read_table(path).X, A)
    path.write_bytes(gzip.compress(CSV) + gzip.compress(b"7,7\n"))
    assert np.array_equal(read_table(path).X, np.vstack([A, [7, 7]]))


@pytest.mark.parametrize("extension", COMPRESSIONS)
def test_labels_are_read_from_compressed_text(tmp_path, extension):
    path = tmp_path / f"labels.csv{extension}"
    path.write_bytes(COMPRESSIONS[extension](b"label\n0\n1\n1\n"))
    assert read_labels(path, 3).tolist() == [0, 1, 1]


@pytest.mark.parametrize("extension", COMPRESSIONS)
@pytest.mark.parametrize("cut", ["short", "altered"])
def test_a_damaged_compressed_file(tmp_path, extension, cut):
    data = bytearray(COMPRESSIONS[extension](CSV * 3000))
    if cut == "short":
        data = data[: len(data) // 2]
    else:
        data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    path = tmp_path / f"table.csv{extension}"
    path.write_bytes(data)
    with pytest.raises(DataError) as error:
        read_table(path)
    assert str(path) in str(error.value)


def test_zstandard_without_a_library_says_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / "table.csv.zst"
    path.write_bytes(zstd(CSV))
    for name in ("compression.zstd", "zstandard", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DataError, match=r"zstd -d.*pip install pyarrow"):
        read_table(path)


def test_a_name_that_says_compressed_and_is_not(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(CSV)
    (tmp_path / "b.csv.gz").write_bytes(bz2.compress(CSV))
    (tmp_path / "c.csv.gz").write_bytes(b"")
    with pytest.raises(DataError, match=r"is not compressed.*name it a\.csv\."):
        read_table(tmp_path / "a.csv.gz")
    with pytest.raises(DataError, match=r"compressed by bzip2.*name it b\.csv\.bz2\."):
        read_table(tmp_path / "b.csv.gz")
    with pytest.raises(DataError, match="is empty"):
        read_table(tmp_path / "c.csv.gz")


def saved(function, *args, **kwargs):
    stream = io.BytesIO()
    function(stream, *args, **kwargs)
    return stream.getvalue()


def zipped(*names):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, "content")
    return stream.getvalue()


def parquet():
    pa = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    return saved(lambda stream: write_table(pa.table({"a": [1.0], "b": [2.0]}), stream))


def arrow(compression=None, file=True):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": A[:, 0], "b": A[:, 1].astype(np.float32)})
    stream = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    new = pa.ipc.new_file if file else pa.ipc.new_stream
    with new(stream, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=4)
    return stream.getvalue()


def picture(kind):
    return saved(lambda stream: Image.new("RGB", (9, 9)).save(stream, kind))


def database(path):
    connection = sqlite3.connect(path)
    connection.execute("create table t (a)")
    connection.commit()
    connection.close()
    return path.read_bytes()


# What is in the file, whatever its name is; and what the error says.
FOREIGN = {
    "Excel": (lambda: zipped("[Content_Types].xml", "xl/workbook.xml"), "Excel workbook.*CSV"),
    "old Excel": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), r"\(\.xls\).*CSV"),
    "OpenDocument": (lambda: zipped("mimetype", "content.xml"), "OpenDocument.*CSV"),
    "Word": (lambda: zipped("[Content_Types].xml", "word/document.xml"), "Office document"),
    "zip": (lambda: zipped("table.csv"), "a zip archive.*extract it"),
    "gzip": (lambda: gzip.compress(CSV), r"compressed by gzip.*name it x\.csv\.gz"),
    "bzip2": (lambda: bz2.compress(CSV), r"compressed by bzip2.*\.bz2"),
    "xz": (lambda: lzma.compress(CSV), r"compressed by xz.*\.xz"),
    "zstd": (lambda: zstd(CSV), r"compressed by Zstandard.*\.zst"),
    "Parquet": (parquet, r"a Parquet file.*name it \.parquet"),
    "Arrow": (arrow, r"an Arrow file.*name it \.arrow"),
    "an Arrow stream": (lambda: arrow(file=False), r"an Arrow file.*name it \.arrow"),
    "NumPy": (lambda: saved(np.save, A), r"a NumPy array.*name it \.npy"),
    "NumPy's archive": (lambda: saved(np.savez, X=A), r"a NumPy archive.*name it \.npz"),
    "pickle": (lambda: pickle.dumps({"a": [1]}), r"a Python pickle.*numpy\.save"),
    "JSON of records": (lambda: b'[{"a": 1, "b": 2}]', "JSON.*CSV"),
    "JSON of rows": (lambda: b"[[1, 2],\n [3, 4]]\n", "JSON.*CSV"),
    "JSON of columns": (lambda: b'{\n "a": [1, 2]}', "JSON.*CSV"),
    "JSON lines": (lambda: b'{"a": 1}\n{"a": 2}\n', "JSON.*CSV"),
    "HTML": (lambda: b"\n<!DOCTYPE html>\n<html><body>1,2", "an HTML page"),
    "a table of HTML": (lambda: b"<table><tr><td>1", "an HTML page"),
    "XML": (lambda: b'<?xml version="1.0"?><Workbook/>', "is XML.*CSV"),
    "PDF": (lambda: b"%PDF-1.7\n%\xe2\xe3", "a PDF document"),
    "MATLAB": (lambda: b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(200), "MATLAB.*writematrix"),
    "R": (lambda: b"X\n\x00\x00\x00\x03\x00\x04", r"R's data.*write\.csv"),
    "HDF5": (lambda: b"\x89HDF\r\n\x1a\n" + bytes(99), r"an HDF5 file.*name it \.h5"),
    "SAS": (lambda: bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf", "statistics program.*CSV"),
    "tar": (lambda: b"x".ljust(257, b"\0") + b"ustar\0", "a tar archive.*extract"),
    **{
        kind: (lambda kind=kind: picture(kind), f"a {kind} picture.*lloydia segment")
        for kind in ("PNG", "JPEG", "GIF", "TIFF", "BMP")
    },
    "WebP": (lambda: picture("WEBP"), "a WebP picture"),
    "something else": (lambda: bytes(range(256)), "is not text: it holds bytes of value zero"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_named_for_what_it_is(tmp_path, name):
    make, says = FOREIGN[name]
    path = tmp_path / "x.csv"
    path.write_bytes(make())
    for read in (read_table, lambda path: read_labels(path, 3)):
        with pytest.raises(DataError, match=says) as error:
            read(path)
        assert str(error.value).startswith(f"{path} ")
        assert "\n" not in str(error.value)


def test_a_database_is_named(tmp_path):
    database(tmp_path / "x.csv")
    with pytest.raises(DataError, match=r"an SQLite database.*CSV"):
        read_table(tmp_path / "x.csv")


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.parquet", "x.feather"])
def test_a_foreign_file_under_the_name_of_a_table(tmp_path, name):
    (tmp_path / name).write_bytes(picture("PNG"))
    with pytest.raises(DataError, match="is a PNG picture, not a"):
        read_table(tmp_path / name)


def test_compressed_files_of_other_kinds_are_named(tmp_path):
    (tmp_path / "x.npy.gz").write_bytes(gzip.compress(saved(np.save, A)))
    with pytest.raises(DataError, match="holds a NumPy array when it is decompressed"):
        read_table(tmp_path / "x.npy.gz")
    (tmp_path / "data.rds").write_bytes(gzip.compress(b"X\n\0\0\0\3"))
    with pytest.raises(DataError, match="compressed by gzip"):
        read_table(tmp_path / "data.rds")


# Headers and cells that begin as a file of another kind does, or nearly.
ALIKE = ["PAR1,PAR2", "PARENT,CHILD", "ORCID,x", "FEA1,FEA2", "BM,x", "BZh,x", "RDX2,x", "GIF,x"]


@pytest.mark.parametrize("header", [*ALIKE, "[a],[b]", "{x},{y}", "A,B", "MM,II", "PK,id", "X,Y"])
def test_a_table_whose_header_looks_like_a_signature_is_read(tmp_path, header):
    (tmp_path / "x.csv").write_text(f"{header}\n1,2\n3,4\n")
    table = read_table(tmp_path / "x.csv")
    assert table.names == tuple(header.split(","))
    assert table.X.tolist() == [[1, 2], [3, 4]]


def test_a_single_column_named_like_ascii_of_r(tmp_path):
    (tmp_path / "x.csv").write_text("A\n2\n3\n")
    assert read_table(tmp_path / "x.csv").X.tolist() == [[2], [3]]


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("file", [True, False])
@pytest.mark.parametrize("name", ["x.feather", "x.arrow", "x.ipc", "x.arrows"])
def test_arrow_files_are_read(tmp_path, name, file, compression):
    (tmp_path / name).write_bytes(arrow(compression, file))
    table = read_table(tmp_path / name)
    assert np.array_equal(table.X, A)
    assert table.names == ("a", "b")
    some = read_table(tmp_path / name, columns="b")
    assert np.array_equal(some.X, A[:, 1:])
    assert some.X.dtype == np.float32


def test_a_feather_file_of_pandas_is_read(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame(A, columns=["u", "v"]).to_feather(tmp_path / "x.feather")
    assert np.array_equal(read_table(tmp_path / "x.feather").X, A)


def test_damaged_arrow_files(tmp_path):
    data = arrow("lz4")
    for i, cut in enumerate((data[:-40][:200], data[:9], b"ARROW1\0\0", data[:100] + b"\xff" * 99)):
        (tmp_path / f"{i}.arrow").write_bytes(cut)
        with pytest.raises(DataError, match=r"is damaged or not an Arrow file|no columns"):
            read_table(tmp_path / f"{i}.arrow")


def test_an_arrow_bomb_is_refused_before_it_is_decompressed(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": np.zeros(2_000_000), "b": np.zeros(2_000_000)})
    stream = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(stream, table.schema, options=options) as writer:
        writer.write_table(table)
    (tmp_path / "bomb.arrow").write_bytes(stream.getvalue())
    assert len(stream.getvalue()) < 100_000
    monkeypatch.setattr(room, "free", lambda: 30_000_000)
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match=r"needs 32\.00 MB of memory, and 30\.00 MB is free"):
        read_table(tmp_path / "bomb.arrow")
    assert pa.total_allocated_bytes() - before < 1_000_000


@pytest.mark.parametrize("place", ["metadata", "body"])
def test_an_arrow_message_that_goes_beyond_the_end(tmp_path, place):
    data = bytearray(arrow("lz4", file=False))
    if place == "metadata":
        data[4:8] = (2**31 - 1).to_bytes(4, "little")
    else:
        # The length of the body of the first batch, wherever it is in its metadata.
        second = 8 + int.from_bytes(data[4:8], "little")
        start = second + 8
        body = start + int.from_bytes(data[second + 4 : second + 8], "little")
        third = data.index(b"\xff\xff\xff\xff", body)
        length = (third - body).to_bytes(8, "little")
        at = data.index(length, start)
        data[at : at + 8] = (10**12).to_bytes(8, "little")
    (tmp_path / "x.arrow").write_bytes(data)
    with pytest.raises(DataError, match="is damaged or not an Arrow file"):
        read_table(tmp_path / "x.arrow")


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_arrow_files_of_polars_are_read(tmp_path, compression):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": A[:, 0], "v": A.tolist()}, strict=False)
    # It begins with no message of a stream: only the footer says where the rows are.
    frame.write_ipc(tmp_path / "x.arrow", compression=compression)
    table = read_table(tmp_path / "x.arrow")
    assert table.names == ("a", "v[0]", "v[1]")
    assert np.array_equal(table.X, A[:, [0, 0, 1]])


def test_a_batch_of_an_arrow_file_that_goes_beyond_the_end(tmp_path):
    data = bytearray(arrow("lz4"))
    footer = len(data) - 10 - int.from_bytes(data[-10:-6], "little")
    # The place of the batch is the one struct in the footer: where it is, its lengths follow.
    batch = data.index(b"\xff\xff\xff\xff", 16)
    at = data.index(batch.to_bytes(8, "little"), footer)
    data[at + 16 : at + 24] = (10**12).to_bytes(8, "little")
    (tmp_path / "x.arrow").write_bytes(data)
    with pytest.raises(DataError, match="is damaged or not an Arrow file"):
        read_table(tmp_path / "x.arrow")


@pytest.mark.parametrize("file", [True, False])
@pytest.mark.parametrize("kind", ["list", "dictionary"])
def test_damaged_places_in_arrow_files_do_not_lead_out_of_bounds(tmp_path, kind, file):
    pa = pytest.importorskip("pyarrow")
    # Marks that can be found: the offset 2 of the second vector, or the second row's number 1.
    if kind == "list":
        column, good = pa.array([[1.5, 2.5], [3.5, 4.5]]), np.int32([0, 2, 4]).tobytes()
        bad = np.int32([0, 10**9, 4]).tobytes()
    else:
        column, good = pa.array([5.5, 6.5, 7.5]).dictionary_encode(), np.int32([0, 1, 2]).tobytes()
        bad = np.int32([0, 10**9, 2]).tobytes()
    table, stream = pa.table({"q": column}), io.BytesIO()
    make = pa.ipc.new_file if file else pa.ipc.new_stream
    with make(stream, table.schema) as writer:
        writer.write_table(table)
    data = stream.getvalue()
    at = data.rindex(good)
    (tmp_path / "x.arrow").write_bytes(data[:at] + bad + data[at + len(bad) :])
    with pytest.raises(DataError, match="is damaged or not an Arrow file"):
        read_table(tmp_path / "x.arrow")


@pytest.mark.parametrize("names", ["data indices indptr shape", "row col data", "data coords"])
def test_parts_of_a_sparse_matrix_are_no_table(tmp_path, names):
    np.savez(tmp_path / "x.npz", **dict.fromkeys(names.split(), np.arange(4)))
    for pairs in (False, True):
        with pytest.raises(DataError, match=r"parts of a sparse matrix.*save_npz"):
            read_table(tmp_path / "x.npz", pairs=pairs)


def test_records_are_named(tmp_path):
    np.save(tmp_path / "x.npy", np.array([(1.0, 2), (3.0, 4)], dtype=[("u", "f8"), ("v", "i4")]))
    for pairs in (False, True):
        with pytest.raises(DataError, match=r"fields 'u', 'v'; .*structured_to_unstructured"):
            read_table(tmp_path / "x.npy", pairs=pairs)


def test_labels_of_two_columns_of_one_name(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather

    column = pa.array([1, 2, 3])
    table = pa.Table.from_arrays([column, column], names=["a", "a"])
    feather.write_feather(table, tmp_path / "x.feather")
    with pytest.raises(DataError, match="has 2 columns; labels are one column"):
        read_labels(tmp_path / "x.feather", 3)


SPARSE = sp.csr_matrix(A)


@pytest.mark.parametrize("array", [True, False])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_matrices_are_read(tmp_path, form, array, compressed):
    path = tmp_path / "X.npz"
    kind = sp.csr_array if array else sp.csr_matrix
    sp.save_npz(path, kind(A).asformat(form), compressed=compressed)
    assert np.array_equal(read_table(path).X, A)
    table = read_table(path, sparse=True, columns="2")
    assert sp.issparse(table.X)
    assert table.X.has_canonical_format
    assert np.array_equal(table.X.toarray(), A[:, 1:])
    assert np.array_equal(table.dense().X, A[:, 1:])


@pytest.mark.parametrize(
    ("dtype", "read_as"),
    [("f4", "f4"), ("f8", "f8"), ("i8", "f8"), ("u1", "f8"), ("?", "f8")],
)
def test_types_of_sparse_matrices(tmp_path, dtype, read_as):
    sp.save_npz(tmp_path / "X.npz", SPARSE.astype(dtype))
    X = read_table(tmp_path / "X.npz", sparse=True).X
    assert X.dtype == read_as
    assert np.array_equal(X.toarray(), A.astype(dtype))


def broken(**changes):
    parts = {
        "format": np.array(b"csr"),
        "shape": np.array([6, 2]),
        "data": SPARSE.data,
        "indices": SPARSE.indices,
        "indptr": SPARSE.indptr,
    }
    return {name: part for name, part in {**parts, **changes}.items() if part is not None}


BROKEN = {
    "an index too large": broken(indices=np.full(len(SPARSE.data), 1_000_000, np.int32)),
    "a negative index": broken(indices=np.full(len(SPARSE.data), -1, np.int32)),
    "a row beyond the end": broken(indptr=np.array([0, 1, 2, 3, 4, 5, 99], np.int32)),
    "rows backwards": broken(indptr=np.array([0, 8, 2, 3, 4, 5, 8], np.int32)),
    "another shape": broken(shape=np.array([7, 2])),
    "a negative shape": broken(shape=np.array([-6, 2])),
    "no indices": broken(indices=None),
    "numbers as indices": broken(indices=SPARSE.indices + 0.5),
    "a shape of words": broken(shape=np.array(["6", "2"])),
    "coordinates": {
        **broken(format=np.array(b"coo"), indices=None, indptr=None),
        "row": np.full(len(SPARSE.data), 99),
        "col": np.zeros(len(SPARSE.data), int),
    },
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_sparse_matrix_is_refused(tmp_path, name):
    np.savez(tmp_path / "X.npz", **BROKEN[name])
    with pytest.raises(DataError, match="is a damaged sparse matrix"):
        read_table(tmp_path / "X.npz")


def test_sparse_matrices_that_are_no_tables(tmp_path):
    path = tmp_path / "X.npz"
    sp.save_npz(path, SPARSE.astype(complex))
    with pytest.raises(DataError, match="complex128, not real numbers"):
        read_table(path)
    bad = SPARSE.copy()
    bad.data[2] = np.nan
    sp.save_npz(path, bad)
    with pytest.raises(DataError, match=r"row 4, column 1 is nan"):
        read_table(path)
    sp.save_npz(path, SPARSE * 1e300)
    with pytest.raises(DataError, match="too large for float32"):
        read_table(path, dtype="float32")
    np.savez(path, **broken(shape=np.array([6, 2, 1])))
    with pytest.raises(DataError, match="a table has two dimensions"):
        read_table(path)


def test_zeros_that_do_not_fit_are_refused(tmp_path, monkeypatch):
    wide = sp.csr_matrix(([1.0], ([0], [0])), shape=(1000, 10**6))
    sp.save_npz(tmp_path / "X.npz", wide)
    monkeypatch.setattr(room, "free", lambda: 10**9)
    with pytest.raises(DataError, match=r"with its zeros, needs 8\.00 GB"):
        read_table(tmp_path / "X.npz")


def test_a_table_of_zeros_in_gzip_stops_where_memory_ends(tmp_path, monkeypatch):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"0" * 3_000_000))
    monkeypatch.setattr(room, "STEP", 1_000_000)
    told = iter([10**9, 10**9, 10**6])
    monkeypatch.setattr(room, "free", lambda: next(told))
    with pytest.raises(DataError, match=r"does not fit into memory: 2\.\d+ MB of text were read"):
        read_table(tmp_path / "x.csv.gz")


@pytest.mark.parametrize("content", ["text", "gzip", "npy", "npz", "parquet", "arrow"])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_known_by_its_content(tmp_path, content):
    data = {
        "text": lambda: CSV,
        "gzip": lambda: gzip.compress(CSV),
        "npy": lambda: saved(np.save, A),
        "npz": lambda: saved(np.savez_compressed, A),
        "parquet": parquet,
        "arrow": arrow,
    }[content]()
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,))
    thread.start()
    table = read_table(tmp_path / "pipe")
    thread.join()
    assert np.array_equal(table.X, [[1, 2]] if content == "parquet" else A)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device")
def test_a_device_that_never_ends_is_refused(tmp_path, monkeypatch):
    os.symlink("/dev/zero", tmp_path / "x.csv")
    with pytest.raises(DataError, match="is a device, not a file"):
        read_table(tmp_path / "x.csv")
    with open("/dev/zero", "rb") as zeros:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(zeros))
        with pytest.raises(DataError, match="standard input is not text"):
            read_table("-")


PLACES = {
    "a circle of links": ("loop", "cannot read .*: too many levels of symbolic links"),
    "a folder": (".", "is a folder"),
    "a name that is too long": ("x" * 300, "cannot read .*: file name too long"),
    "a file for a folder": ("file/x.csv", "cannot read .*: not a directory"),
    "no name of a file": ("a\0b", "is no name of a file"),
    "an empty file": ("file", "is empty"),
    "memory of this process": ("/proc/self/mem", "cannot read /proc/self/mem: input/output error"),
}


@pytest.mark.parametrize("name", PLACES)
def test_an_input_that_cannot_be_read(tmp_path, name):
    place, says = PLACES[name]
    if place.startswith("/") and not os.path.exists(place):
        pytest.skip("no such file on this system")
    os.symlink("loop", tmp_path / "loop")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match=says):
        read_table(os.path.join(tmp_path, place))


def test_extensions_of_compressed_files_are_those_of_the_kinds():
    assert set(compressed.EXTENSIONS) == set(COMPRESSIONS)
