"""Compiled kernels on disk: whatever becomes of their files, kernels are there and right."""

from __future__ import annotations

import os
import pickle
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from numba.core import config

from lloydia.backends.cpu.runtime import kernel_cache
from lloydia.backends.cpu.runtime.compiled import is_compiled, kernel

resource = pytest.importorskip("resource", reason="no limit of the length of files")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_cache, "_warned", set())
    return tmp_path / "cache"


def fresh():
    """Return a kernel as a process has it that has just begun."""

    def tripled(x):
        return 3 * x

    return kernel(tripled)


def called(argument=7):
    """Call a fresh kernel; return the result, whether it came from the disk, and the warnings."""
    tripled = fresh()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = tripled(argument)
    return result, sum(tripled.stats.cache_hits.values()), [str(one.message) for one in found]


def files(folder, suffix):
    return sorted(folder.rglob(f"*{suffix}"))


def test_a_kernel_is_read_from_the_disk(folder):
    assert called() == (21, 0, [])
    assert called() == (21, 1, [])
    assert len(files(folder, ".nbi")) == len(files(folder, ".nbc")) == 1


def test_whether_a_kernel_was_compiled(folder, monkeypatch):
    assert not is_compiled(fresh())
    here = fresh()
    here(7)
    assert is_compiled(fresh())
    (path,) = files(folder, ".nbi")
    path.unlink()
    assert is_compiled(here)
    assert not is_compiled(fresh())
    monkeypatch.setattr(kernel_cache.FunctionCache, "__init__", unwritable)
    alone = fresh()
    assert not is_compiled(alone)
    alone(7)
    assert is_compiled(alone)


def unwritable(*_):
    raise RuntimeError("no folder can be written")


DAMAGE = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[:-1],
    "a few bytes": lambda data: data[:5],
    "garbage": lambda data: b"\x80\x04garbage" * 9,
    "a bit": lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:],
    "another pickle": lambda data: pickle.dumps(("0.1", {})),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_file_is_compiled_anew_and_replaced(folder, suffix, damage):
    called()
    (path,) = files(folder, suffix)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    result, hits, told = called()
    assert (result, hits, len(told)) == (21, 0, 1)
    assert str(path.parent) in told[0]
    assert called() == (21, 1, [])


def test_an_index_of_another_release_of_numba_is_replaced(folder):
    called()
    (path,) = files(folder, ".nbi")
    _, stamp, _ = kernel_cache.unsealed(str(path))
    # Its keys name a class that is not there any more.
    kernel_cache.seal(str(path), ("0.1", stamp, b"cnumba\nGone\n."))
    assert called() == (21, 0, [])
    assert called() == (21, 1, [])


def test_a_data_file_that_is_gone_is_written_again(folder):
    called()
    files(folder, ".nbc")[0].unlink()
    assert called() == (21, 0, [])
    assert called() == (21, 1, [])


def test_the_kernel_of_another_type_is_never_loaded(folder):
    called()
    called(0.5)
    one, two = files(folder, ".nbc")
    one.write_bytes(two.read_bytes())
    assert called()[0] == 21
    assert called(0.5)[0] == 1.5


@contextmanager
def full():
    """Let no file become longer than a few bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_folder_is_told_once_and_left_without_rests(folder):
    with full():
        result, _, told = called()
        again = called(0.5)
    assert result == 21
    assert len(told) == 1
    assert str(folder) in told[0]
    assert "file too large" in told[0]
    assert "NUMBA_CACHE_DIR" in told[0]
    assert again == (1.5, 0, [])
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert called() == (21, 0, [])
    assert called() == (21, 1, [])


def test_the_data_are_written_before_the_index_names_them(folder, monkeypatch):
    def stops(path, content):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel_cache, "seal", stops)
    with pytest.raises(KeyboardInterrupt):
        called()
    assert files(folder, ".nbi") == files(folder, ".nbc") == []


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_folder_in_the_place_of_a_file(folder, suffix):
    called()
    (path,) = files(folder, suffix)
    path.unlink()
    path.mkdir()
    result, hits, told = called()
    assert (result, hits) == (21, 0)
    assert all(str(path.parent) in text for text in told)
    assert len(told) == 2
    assert path.is_dir()
    assert [one for one in path.parent.iterdir() if ".tmp." in one.name] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read all")
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_file_that_may_not_be_read_is_replaced(folder, suffix):
    called()
    files(folder, suffix)[0].chmod(0)
    result, hits, told = called()
    assert (result, hits, len(told)) == (21, 0, 1)
    assert called() == (21, 1, [])


def test_a_folder_that_cannot_be_read_any_more(folder, monkeypatch):
    tripled = fresh()
    (path,) = folder.iterdir()
    path.rmdir()
    path.write_bytes(b"a file by now")
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        assert tripled(7) == 21


@pytest.mark.parametrize("place", ["a file", "a file/below"])
def test_a_cache_folder_that_is_a_file_is_not_used(tmp_path, monkeypatch, place):
    (tmp_path / "a file").write_bytes(b"")
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / place))
    assert fresh()(np.float32(2)) == 6
