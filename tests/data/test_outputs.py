from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack, suppress

import numpy as np
import pytest

from lloydia.data.columns import DataError
from lloydia.data.files import read_table
from lloydia.data.outputs import (
    TABLES,
    Renames,
    check_output,
    naming,
    replacing,
    write_table,
    writing,
)
from lloydia.data.outputs.seals import is_sealed, kind_of, seal


def test_nothing_is_renamed_when_a_later_output_fails(tmp_path):
    (tmp_path / "a.txt").write_text("old")

    def write():
        with ExitStack() as stack:
            stack.enter_context(replacing(tmp_path / "a.txt")).write_text("new")
            stack.enter_context(replacing(tmp_path / "b.txt")).write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert os.listdir(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


@pytest.mark.parametrize("appears", ["a.csv", "b.csv", "c.csv"])
@pytest.mark.parametrize("force", [False, True])
def test_a_file_that_appears_while_others_are_written(tmp_path, appears, force):
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]

    def write():
        with Renames(force=force) as renames:
            for path in paths:
                check_output(path, TABLES, force=force)
                with writing(path, renames) as to:
                    to.write_text("new")
            (tmp_path / appears).write_text("the user's")

    if force:
        write()
        assert texts(tmp_path) == ["new"] * 3
    else:
        with pytest.raises(DataError, match=f"{appears}: it exists, and is not rec"):
            write()
        assert texts(tmp_path) == ["the user's"]
    (tmp_path / appears).unlink()


WRITER = """
import sys
from pathlib import Path
from lloydia.data.outputs import replacing

with replacing(Path(sys.argv[1])) as to:
    to.write_text(sys.argv[2])
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer():
    """Start processes that write, and wait before they rename."""
    started = []

    def start(path, text):
        command = [sys.executable, "-c", WRITER, path, text]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"written\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def fail_to_write(path, _):
    with suppress(ZeroDivisionError), replacing(path):
        raise ZeroDivisionError


def texts(folder):
    return sorted(each.read_text() for each in folder.iterdir())


@pytest.mark.kill
@pytest.mark.skipif(sys.platform == "win32", reason="no locks that go with a process")
@pytest.mark.parametrize("begin", [check_output, fail_to_write])
def test_what_a_dead_process_left_is_removed_and_nothing_else(tmp_path, writer, begin):
    path = tmp_path / "a [1].npy"
    dead, living = writer(path, "dead"), writer(path, "living")
    beside = writer(tmp_path / "a [1].b.npy", "beside")
    (tmp_path / ".a [1].npy").write_text("the user's")
    for process in (dead, beside):
        process.kill()
        process.wait()
    assert texts(tmp_path) == ["beside", "dead", "living", "the user's"]
    begin(path, TABLES)
    assert texts(tmp_path) == ["beside", "living", "the user's"]
    living.communicate()
    assert path.read_text() == "living"
    assert texts(tmp_path) == ["beside", "living", "the user's"]


def test_rename_through_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with replacing(tmp_path / "link.txt") as to:
        to.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_check_leaves_nothing_behind(tmp_path):
    check_output(tmp_path / "a.npy", TABLES)
    assert os.listdir(tmp_path) == []


def test_check_sees_the_same_file_by_another_name(tmp_path):
    (tmp_path / "x.csv").write_text("1")
    (tmp_path / "link.csv").symlink_to("x.csv")
    with pytest.raises(DataError, match="uses that file already"):
        check_output(tmp_path / "link.csv", TABLES, others=[tmp_path / "x.csv"])


def test_check_sees_a_hard_link(tmp_path):
    (tmp_path / "x.csv").write_text("1")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "x.csv")
    with pytest.raises(DataError, match="uses that file already"):
        check_output(tmp_path / "hard.csv", TABLES, others=[tmp_path / "x.csv"])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match="permission denied"):
        check_output(tmp_path / "a.npy", TABLES)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".npy", ".parquet"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_bit_comes_back(tmp_path, suffix, dtype):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    info = np.finfo(dtype)
    special = [0.1, -0.0, info.tiny, info.smallest_subnormal, info.max, 1 / 3]
    values = np.array(special, dtype).reshape(3, 2)
    path = tmp_path / f"c{suffix}"
    write_table(path, values, ("a, b", "c"), suffix)
    table = read_table(path, dtype=np.dtype(dtype).name)
    assert table.X.tobytes() == values.tobytes()
    assert table.names == (("a, b", "c") if suffix in (".csv", ".tsv", ".parquet") else None)


def test_an_error_of_an_input_does_not_name_the_output(tmp_path):
    says = DataError("cannot read x.csv: input/output error.")
    says.__context__ = OSError(errno.EIO, "Input/output error")
    with pytest.raises(DataError, match=re.escape(str(says))), naming(tmp_path / "labels.csv"):
        raise says


def test_what_was_written_is_sealed_until_somebody_writes_to_it(tmp_path):
    path = tmp_path / "x.csv"
    for text in ("", "a", "label\n0\n1\n" * 1000):
        (tmp_path / "input").write_text("an input that was written just before")
        with replacing(path) as to:
            to.write_text(text)
        # A build program must not take it for older than what it was made from.
        later = path.stat().st_mtime_ns - (tmp_path / "input").stat().st_mtime_ns
        assert 0 <= later < 10**9
        assert is_sealed(path)
        check_output(path, TABLES, force=False)
    with path.open("a") as stream:
        stream.write("2\n")
    assert not is_sealed(path)
    with pytest.raises(DataError, match="add --force to replace it"):
        check_output(path, TABLES, force=False)
    check_output(path, TABLES)


@pytest.mark.parametrize("begin", [0, 1, 9_999_900, 123_456_789, 999_999_999])
def test_a_seal_is_at_most_ten_milliseconds_later(tmp_path, begin):
    for number in range(20):
        path = tmp_path / f"{number}.csv"
        path.write_text(f"{number}")
        os.utime(path, ns=(0, 10**18 + begin))
        before = path.stat().st_mtime_ns
        seal(path)
        assert 0 <= path.stat().st_mtime_ns - before < 10**7
        assert is_sealed(path)


@pytest.mark.parametrize("copy", [shutil.copyfile, shutil.copy2])
def test_a_copy_has_no_seal_even_if_it_keeps_the_time(tmp_path, copy):
    path, kept = tmp_path / "l.csv", tmp_path / "kept.csv"
    with replacing(path) as to:
        to.write_text("label\n0\n")
    copy(path, kept)
    assert not is_sealed(kept)
    with pytest.raises(DataError, match="nor are copies"):
        check_output(kept, TABLES, force=False)
    # A file that is moved is the same file.
    path.rename(tmp_path / "moved.csv")
    assert is_sealed(tmp_path / "moved.csv")


@pytest.mark.parametrize("digits", [10**9, 10**6, 10**3, 1])
def test_times_that_are_kept_less_exactly_are_no_seal(tmp_path, digits):
    path = tmp_path / "x.npy"
    for number in range(50):
        with replacing(path) as to:
            to.write_text(f"text {number}")
        time_ns = path.stat().st_mtime_ns // digits * digits
        os.utime(path, ns=(time_ns, time_ns))
        assert is_sealed(path) == (digits == 1)
    if digits > 1:
        with pytest.raises(DataError, match=r"file system without exact times\); name"):
            check_output(path, TABLES, force=False)


def test_a_file_that_cannot_be_sealed_is_written_all_the_same(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "utime", refuse)
    with replacing(tmp_path / "x.csv") as to:
        to.write_text("1")
    assert (tmp_path / "x.csv").read_text() == "1"
    assert not is_sealed(tmp_path / "x.csv")


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04 and more", b"text"])
def test_neither_models_nor_checkpoints(tmp_path, content):
    (tmp_path / "x.npz").write_bytes(content)
    assert kind_of(tmp_path / "x.npz") is None
    np.savez(tmp_path / "x.npz", header=np.array("[" * 10_000), X=np.eye(2))
    assert kind_of(tmp_path / "x.npz") is None
    np.savez(tmp_path / "x.npz", X=np.eye(2))
    assert kind_of(tmp_path / "x.npz") is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("lloydia model 2", "model"),
        ("lloydia model 99", "model"),
        ("lloydia k-means 1", "model"),
        ("lloydia checkpoint 2", "checkpoint"),
        ("lloydia checkpoint 99", "checkpoint"),
        ("lloydia catalogue 1", None),
        ("another model 2", None),
    ],
)
def test_what_an_archive_says_that_it_is(tmp_path, name, kind):
    for parts in ({"header": np.array(f'{{"format": "{name}"}}')}, {"format": np.array(name)}):
        np.savez(tmp_path / "x.npz", **parts)
        assert kind_of(tmp_path / "x.npz") == kind
