from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, suppress

import numpy as np
import pytest

from lloydia.data.columns import DataError
from lloydia.data.files import read_table
from lloydia.data.outputs import TABLES, check_output, replacing, write_table


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
