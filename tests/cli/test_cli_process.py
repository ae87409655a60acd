"""What only shows in a process of its own: pipes, terminals, signals."""

from __future__ import annotations

import io
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import lloydia

LLOYDIA = [sys.executable, "-m", "lloydia"]
unix = pytest.mark.skipif(os.name == "nt", reason="Windows has other signals and terminals")


def test_version():
    done = subprocess.run([*LLOYDIA, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == lloydia.__version__


@pytest.mark.parametrize("command", ["", "fit", "predict", "score", "demo"])
def test_help_shows_an_example(run, command):
    ran = run(*command.split(), "--help")
    assert ran.status == 0
    assert f"Example: lloydia {command}" in ran.out


def test_standard_input_is_recognised_by_its_first_bytes(run, blobs, folder):
    np.save("x.npy", blobs)
    from_file = run("fit", "x.npy", "-k", 3, "--labels", "l.csv", "--centers", "file.csv")
    from_pipe = run(
        *("fit", "-", "-k", 3, "--labels", "l.csv", "--centers", "pipe.csv"),
        stdin=(folder / "x.npy").read_bytes(),
    )
    assert from_file.status == from_pipe.status == 0
    assert (folder / "file.csv").read_text() == (folder / "pipe.csv").read_text()


def test_closed_pipe_is_quiet(folder):
    np.save("x.npy", np.random.default_rng(0).normal(size=(200_000, 1)))
    subprocess.run([*LLOYDIA, *["fit", "x.npy", "-k", "2", "--model", "m.npz"]], check=True)
    predict = subprocess.Popen(
        [*LLOYDIA, "predict", "m.npz", "x.npy"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert predict.stdout.readline().strip() in (b"0", b"1")
    predict.stdout.close()
    assert predict.stderr.read() == b""
    assert predict.wait() == 141


@unix
def test_closed_standard_error(folder):
    np.save("x.npy", np.arange(6.0)[:, np.newaxis])
    for name, status in (("x.npy", 0), ("none.npy", 2)):
        command = shlex.join([*LLOYDIA, "fit", name, "-k", "2", "--labels", "l.npy"])
        done = subprocess.run(["sh", "-c", f"{command} 2>&-"], stdout=subprocess.PIPE)
        assert done.returncode == status
        assert b"lloydia:" not in done.stdout


@unix
def test_ctrl_c(folder):
    data = io.BytesIO()
    np.save(data, np.random.default_rng(0).normal(size=(200_000, 16)))
    options = ["-k", "400", "--tol", "0", "--max-iter", "100000", "--labels", "l.npy"]
    pipe = subprocess.PIPE
    # A shell's background job ignores Ctrl-C, and so would its children.
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    fit = subprocess.Popen(
        [*LLOYDIA, "fit", "-", *options], stdin=pipe, stdout=pipe, stderr=pipe, preexec_fn=heed
    )
    fit.stdin.write(data.getvalue())  # returns when the process has started and read nearly all
    fit.stdin.close()
    time.sleep(2)
    assert fit.poll() is None, "the fit was to be long enough to be interrupted"
    fit.send_signal(signal.SIGINT)
    assert fit.wait(timeout=60) == 130
    assert (fit.stdout.read(), fit.stderr.read()) == (b"", b"lloydia: interrupted.\n")
    assert os.listdir() == []


def shown_on_a_terminal(*arguments, delay=0.0, term="xterm"):
    """Run a command; return what it shows on a terminal, and its standard output."""
    import pty

    code = (
        f"import sys; from lloydia.cli import main, progress; progress.DELAY = {delay}; "
        "sys.exit(main())"
    )
    master, slave = pty.openpty()
    fit = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "TERM": term, "COLUMNS": "100"},
    )
    os.close(slave)
    shown = b""
    while select.select([master], [], [], 60)[0]:
        try:
            shown += os.read(master, 4096)
        except OSError:  # the other end is closed
            break
    os.close(master)
    out = fit.stdout.read()
    assert fit.wait() == 0
    return shown, out


@unix
def test_progress_goes_to_a_terminal_on_standard_error(folder, blobs):
    shown, out = shown_on_a_terminal("fit", "blobs.csv", "-k", "3", "--n-init", "2")
    assert out.startswith(b"n samples ")
    assert b"reading blobs.csv" in shown
    assert b"3 clusters" in shown


@unix
@pytest.mark.parametrize(
    ("arguments", "options"),
    [(["--json"], {}), ([], {"delay": 1e9}), ([], {"term": "dumb"})],
    ids=["json", "at once", "dumb"],
)
def test_no_progress_for_programs_or_what_is_over_at_once(folder, blobs, arguments, options):
    shown, out = shown_on_a_terminal("fit", "blobs.csv", "-k", "3", *arguments, **options)
    assert b"120" in out
    assert re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]", b"", shown) == b""


def test_no_progress_elsewhere(run, blobs, monkeypatch):
    monkeypatch.setattr("lloydia.cli.progress.DELAY", 0)
    assert run("fit", "blobs.csv", "-k", 3).err == ""


def test_start_is_light():
    code = (
        "import sys, lloydia.cli; print([m for m in ('numba', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_commands_import_nothing_heavy():
    """The package itself is left out: what it imports is its own affair."""
    code = (
        "import sys, types; package = types.ModuleType('lloydia'); package.__version__ = '0';"
        f"package.__path__ = {list(lloydia.__path__)!r}; sys.modules['lloydia'] = package;"
        "import lloydia.cli; assert 'cyclopts' not in sys.modules; import lloydia.cli.app;"
        "heavy = {'numpy', 'sklearn', 'numba', 'matplotlib', 'lloydia.estimators.kmeans'};"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_ctrl_c_while_importing(run, monkeypatch):
    class Interrupted:
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "lloydia.cli.app", Interrupted())
    ran = run("--help")
    assert (ran.status, ran.out, ran.err) == (130, "", "lloydia: interrupted.\n")


def test_help_into_a_closed_pipe_is_quiet():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run([*LLOYDIA, "--help"], stdout=pipe, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (141, b"")
