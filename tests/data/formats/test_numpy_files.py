"""NumPy's files declare shapes: no memory is taken for what the file or the memory cannot hold."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydia import KMeans
from lloydia.data.checkpoints import load_snapshot
from lloydia.data.columns import DataError
from lloydia.data.files import read_table
from lloydia.data.formats import room
from lloydia.data.formats.numpy_files import Archive, load_array, load_numpy
from lloydia.data.labels import read_labels
from lloydia.data.models import load, read_centers, save

MODEL = KMeans(2, random_state=0, init="first").fit(np.eye(2))


def header(shape, dtype="<f8", version=1):
    """Return the header of a .npy file that declares an array."""
    stream = io.BytesIO()
    declared = {"descr": dtype, "fortran_order": False, "shape": shape}
    write = np.lib.format.write_array_header_1_0
    (write if version == 1 else np.lib.format.write_array_header_2_0)(stream, declared)
    return stream.getvalue()


@pytest.fixture
def measured():
    """Refuse a test that takes more than some megabytes."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000_000


BOMBS = {
    "rows": header((10**9, 1)),
    "rows, later version": header((10**9, 1), version=2),
    "columns": header((1, 10**12)),
    "beyond any memory": header((2**62, 2**62)),
    "long text": header((1,), "<U100000000"),
    "one byte too few": header((2, 2)) + bytes(31),
}


@pytest.mark.parametrize("name", BOMBS)
def test_an_array_that_is_longer_than_its_file(tmp_path, name, measured):
    path = tmp_path / "x.npy"
    path.write_bytes(BOMBS[name])
    with pytest.raises(DataError, match="is cut short: it declares an array of shape"):
        read_table(path)
    with pytest.raises(DataError, match="is cut short: it declares an array of shape"):
        read_labels(path, 3)


def test_a_header_that_is_longer_than_any(tmp_path, measured):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        length = 100_000_000
        archive.writestr(
            "X.npy", b"\x93NUMPY\x02\x00" + length.to_bytes(4, "little") + bytes(length)
        )
    tracemalloc.reset_peak()
    with pytest.raises(DataError, match="is damaged or not a NumPy file"):
        read_table(tmp_path / "x.npz")


@pytest.mark.parametrize("header_of", [header((2, 2)) + bytes(32)])
def test_a_sound_header_is_read(tmp_path, header_of):
    (tmp_path / "x.npy").write_bytes(header_of)
    assert read_table(tmp_path / "x.npy").X.tolist() == [[0, 0], [0, 0]]


def test_an_archive_that_does_not_fit_is_refused_before_it_is_read(tmp_path, monkeypatch, measured):
    path = tmp_path / "x.npz"
    bomb(path, "X.npy", header((10_000_000, 2)), 160_000_000)
    assert path.stat().st_size < 300_000
    tracemalloc.reset_peak()
    monkeypatch.setattr(room, "free", lambda: 10**8)
    with pytest.raises(DataError, match=r"X needs 160\.00 MB of memory, and 100\.00 MB is free"):
        read_table(path)


def bomb(path, name, start, zeros, others=()):
    """Write an archive with an array of so many zero bytes, in pieces."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for other, data in others:
            archive.writestr(other, data)
        with archive.open(name, "w", force_zip64=True) as member:
            member.write(start)
            for _ in range(zeros // 1_000_000):
                member.write(bytes(1_000_000))


def test_an_array_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.zeros((1000, 10)))
    monkeypatch.setattr(room, "free", lambda: 79_999)
    with pytest.raises(DataError, match="needs 80 kB of memory, and 80 kB is free: read it by"):
        read_table(tmp_path / "x.npy")


def test_where_no_system_says_what_is_free_nothing_is_refused(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.zeros((10, 10)))
    monkeypatch.setattr(room, "free", lambda: None)
    assert read_table(tmp_path / "x.npy").X.shape == (10, 10)


@pytest.mark.parametrize("part", ["cluster_centers_", "header", "another"])
def test_a_model_that_declares_many_times_its_size(tmp_path, part, measured):
    save(MODEL, tmp_path / "sound.npz")
    with zipfile.ZipFile(tmp_path / "sound.npz") as archive:
        others = [
            (name, archive.read(name)) for name in archive.namelist() if name != f"{part}.npy"
        ]
    path = tmp_path / "bomb.npz"
    bomb(path, f"{part}.npy", header((15_000_000, 1)), 120_000_000, others)
    tracemalloc.reset_peak()
    for read in (load, load_snapshot):
        with pytest.raises(DataError, match=r"is damaged: its arrays declare 120,\d+,\d+ bytes"):
            read(path)


def test_a_model_that_was_compressed_since_is_read(tmp_path):
    save(MODEL, tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as archive:
        np.savez_compressed(tmp_path / "small.npz", **archive)
    assert np.array_equal(load(tmp_path / "small.npz").cluster_centers_, np.eye(2))
    assert np.array_equal(read_centers(str(tmp_path / "small.npz"), "float64", 2)[0], np.eye(2))


def test_python_objects_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[{}]], dtype=object))
    np.savez(tmp_path / "x.npz", np.array([[{}]], dtype=object))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(DataError, match="holds Python objects; save it as numbers"):
            read_table(tmp_path / name)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<i2", "?"])
def test_archives_and_arrays_are_what_numpy_reads(tmp_path, order, dtype):
    X = np.asarray(np.arange(12).reshape(4, 3) % 2, dtype=dtype, order=order)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X, y=np.zeros(3))
    with open(tmp_path / "x.npy", "rb") as stream:
        assert np.array_equal(load_array(stream, "x"), X)
    with open(tmp_path / "x.npz", "rb") as stream:
        archive = load_numpy(stream, "x")
        assert isinstance(archive, Archive)
        assert archive.files == ["X", "y"]
        assert np.array_equal(archive["X"], X)
        with pytest.raises(KeyError):
            archive["z"]


SOUND = io.BytesIO()
np.savez(SOUND, X=np.arange(6.0).reshape(3, 2))


def test_damage_of_another_compression(tmp_path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", header((3, 2)) + bytes(48))
    assert read_table(path).X.shape == (3, 2)
    damaged = bytearray(path.read_bytes())
    # Within the compressed data, after the member's header and the coder's properties.
    damaged[50:60] = bytes(range(200, 210))
    path.write_bytes(damaged)
    with pytest.raises(DataError, match="is damaged"):
        read_table(path)


def test_a_header_whose_brackets_do_not_close(tmp_path):
    data = header((2, 2)).replace(b"(2, 2), }", b"(2, 2(, \0") + bytes(32)
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(DataError, match="is damaged or not a NumPy file"):
        read_table(tmp_path / "x.npy")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SOUND.getvalue()) - 1), st.integers(0, 255))))
def test_damaged_archives_are_read_or_refused(changes):
    data = bytearray(SOUND.getvalue())
    for place, value in changes:
        data[place] = value
    try:
        archive = load_numpy(io.BytesIO(data), "x")
        if isinstance(archive, Archive):
            for name in archive.files:
                archive[name]
    except DataError:
        pass
