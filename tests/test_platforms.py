"""Systems that lack what Linux has: macOS and Windows run the engine of the CPU.

docs/platforms.md lists the places; here what is missing elsewhere is taken away.
"""

import errno
import io
import subprocess
import sys

import numpy as np
import pytest

from lloydia.backends.cpu.runtime import kernel_cache, pool
from lloydia.bench import machine
from lloydia.cli import main
from lloydia.data import files
from lloydia.data.columns import DataError

# Modules and functions that Windows does not have, and most of which macOS lacks too.
MODULES = ("fcntl", "grp", "posix", "pwd", "resource", "termios")
FUNCTIONS = (
    *("fork", "forkpty", "getloadavg", "geteuid", "getuid", "kill", "killpg", "mkfifo"),
    *("posix_fadvise", "pread", "process_cpu_count", "register_at_fork", "sched_getaffinity"),
    *("sendfile", "setsid", "statvfs", "sysconf"),
)

# What other libraries need of those is theirs: they are imported before anything is taken away.
PROGRAM = f"""
import os, pkgutil, sys
import numba, numpy as np, pandas, sklearn.base, cyclopts, rich.progress, PIL.Image
from numba.core import caching
from importlib import import_module
for name in ("matplotlib.pyplot", "pyarrow.parquet", "zarr", "h5py", "dask.array", "distributed",
             "dask.dataframe"):
    try:
        import_module(name)
    except ImportError:
        pass

import socket, signal
for name in ("torch", "triton", "numba_cuda", *{MODULES!r}):
    sys.modules[name] = None
for name in {FUNCTIONS!r}:
    if hasattr(os, name):
        delattr(os, name)
if hasattr(socket, "AF_UNIX"):
    del socket.AF_UNIX
for name in ("SIGKILL", "SIGHUP", "SIGPIPE", "SIGALRM", "SIGUSR1"):
    delattr(signal, name)

import lloydia
for module in pkgutil.walk_packages(lloydia.__path__, "lloydia."):
    if module.name.endswith("__main__"):
        continue
    try:
        import_module(module.name)
    except ImportError as error:
        while error.__context__ is not None:
            error = error.__context__
        # Optional libraries may be missing, and nothing else.
        assert error.name not in {MODULES!r}, (module.name, error)

X = np.random.default_rng(0).normal(size=(3000, 3)).astype("f4")
right = lloydia.KMeans(5, n_init=1, random_state=0, device="reference").fit(X)
model = lloydia.KMeans(5, n_init=1, random_state=0, n_threads=3).fit(X)
assert np.array_equal(model.labels_, right.labels_) and model.inertia_ == right.inertia_

from lloydia.cli import main
np.savetxt("table.csv", X[:200], delimiter=",")
np.save("table.npy", X[:200])
for command in (
    "fit table.csv -k 3 --labels labels.npy --model model.npz --plot plot.png --checkpoint c.npz",
    "predict model.npz table.csv --labels again.csv",
    "fit table.npy -k 3 --memory 700MB --labels labels.npy",
):
    assert main(command.split()) == 0, command
print("fitted")
"""


@pytest.mark.slow
def test_without_what_only_unix_has_everything_is_imported_and_fits(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("fitted\n")


def test_without_affinity_all_processors_are_counted(monkeypatch):
    for name in ("sched_getaffinity", "process_cpu_count"):
        monkeypatch.delattr(pool.os, name, raising=False)
    monkeypatch.setattr(pool.os, "cpu_count", lambda: 6)
    monkeypatch.setattr(pool, "_granted", lambda: None)
    assert pool.available_threads() == 6
    monkeypatch.setattr(pool.os, "cpu_count", lambda: None)
    assert pool.available_threads() == 1


def test_a_folder_that_windows_denies_is_called_a_folder(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files.Path, "open", denied)
    with pytest.raises(DataError, match="is a folder, not a file"), files.open_input(tmp_path):
        pass
    (tmp_path / "a").touch()
    with pytest.raises(DataError, match="permission denied"), files.open_input(tmp_path / "a"):
        pass


@pytest.mark.parametrize("method", ["load_overload", "save_overload"])
def test_a_cached_kernel_that_windows_locks_is_not_warned_of(monkeypatch, method, recwarn):
    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    cache = object.__new__(kernel_cache.Cache)
    cache.counts, cache._cache_path = False, "somewhere"
    monkeypatch.setattr(kernel_cache, "_warned", set())
    monkeypatch.setattr(kernel_cache.Cache, f"_{method}", denied)
    monkeypatch.setattr("numba.core.caching.os.name", "nt")
    assert getattr(cache, method)(None, None) is None
    assert not recwarn.list
    monkeypatch.setattr("numba.core.caching.os.name", "posix")
    with pytest.warns(RuntimeWarning, match="somewhere"):
        getattr(cache, method)(None, None)


def test_a_processor_that_may_not_be_asked_for_has_its_architecture_as_name(monkeypatch):
    def forbidden(*_, **__):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(machine.subprocess, "run", forbidden)
    assert machine.cpu_name()


class Console(io.TextIOWrapper):
    """Standard output of a system with few characters, kept."""

    def __init__(self, encoding):
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding)

    def shown(self):
        self.flush()
        return self.bytes.getvalue()


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", b"\\u5e74.npy"), ("gbk", b"\xc4\xea.npy")]
)
def test_a_name_that_the_console_lacks_is_escaped(monkeypatch, tmp_path, encoding, shown):
    np.savetxt(tmp_path / "a.csv", np.arange(12.0).reshape(6, 2), delimiter=",")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", Console(encoding))
    assert main(["fit", "a.csv", "-k", "2", "--labels", "年.npy"]) == 0
    assert shown in sys.stdout.shown()
    assert sys.stdout.errors == "strict"
    assert np.load("年.npy").shape == (6,)


def test_windows_words_for_a_closed_pipe_are_understood(monkeypatch, tmp_path):
    np.savetxt(tmp_path / "a.csv", np.arange(12.0).reshape(6, 2), delimiter=",")

    def closed():
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("lloydia.cli.report.flush", closed)
    monkeypatch.setattr("lloydia.cli._pipe_closed", lambda: 141)
    assert main(["fit", str(tmp_path / "a.csv"), "-k", "2"]) == 2
    monkeypatch.setattr(sys, "platform", "win32")
    assert main(["fit", str(tmp_path / "a.csv"), "-k", "2"]) == 141
