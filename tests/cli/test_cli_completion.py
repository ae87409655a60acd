"""`lloydia --install-completion`, and what the scripts offer in the shells that are here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import get_args, get_type_hints

import pytest

from lloydia.cli.images.pictures import SpaceName
from lloydia.cli.method import SEEDINGS, Method
from lloydia.cli.parser.completion import SHELLS, script
from lloydia.images.color import SPACES

# A command line up to the cursor, and words that are offered.
OFFERED = {
    "lloydia fi": ["fit"],
    "lloydia se": ["segment"],
    "lloydia bench pe": ["peers"],
    "lloydia fit --al": ["--algorithm"],
    "lloydia fit x.csv --algorithm yi": ["yinyang"],
    "lloydia fit x.csv --device cu": ["cuda", "cuda:all"],
    "lloydia fit x.csv --init fa": ["farthest"],
    "lloydia fit x.csv --no-": ["--no-header"],
    "lloydia predict --device cp": ["cpu"],
    "lloydia segment x.png Ok": ["Oklab"],
    "lloydia quantize x.png --space La": ["Lab"],
    "lloydia --ver": ["--version"],
}


def needs(shell):
    # What is called bash on Windows may be that of another system, with other paths.
    found = None if sys.platform == "win32" else shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


@pytest.fixture
def home(folder, monkeypatch):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    for name in ("ZSH", "ZSH_CUSTOM", "ZSH_VERSION", "BASH_VERSION", "FISH_VERSION"):
        monkeypatch.delenv(name, raising=False)
    return folder


PATHS = {
    "bash": (".local/share/bash-completion/completions/lloydia", ".bashrc"),
    "zsh": (".zsh/completions/_cyclopts_lloydia", ".zshrc"),
    "fish": (".config/fish/completions/lloydia.fish", None),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_install(run, home, shell):
    path, startup = PATHS[shell]
    if startup:
        (home / startup).write_text("# mine\n")
    ran = run("--install-completion", shell)
    assert (ran.status, ran.err) == (0, "")
    assert f"{home / path} completes lloydia in {shell}.\n" in ran.out
    assert (home / path).read_text(encoding="utf-8") == script(shell)
    if startup:
        assert f"{home / startup} now loads it.\n" in ran.out
        loads = (home / startup).read_text()
        assert "# mine\n" in loads
        assert f"{home / startup} loads it.\n" in run("--install-completion", shell).out
        assert (home / startup).read_text() == loads


def test_the_shell_that_runs_it(run, home, monkeypatch):
    monkeypatch.setenv("FISH_VERSION", "3")
    assert "in fish." in run("--install-completion").out


def test_a_shell_that_is_not_supported(run, home, monkeypatch):
    ran = run("--install-completion", "tcsh")
    assert ran.err.startswith('lloydia: Invalid value "tcsh" for SHELL; choose from bash, zsh')
    monkeypatch.setattr("cyclopts.completion.detect.detect_shell", lambda: "powershell")
    ran = run("--install-completion")
    assert ran.status == 2
    assert ran.err.startswith("lloydia: powershell is not supported: name bash, zsh or fish")


def test_bash(folder):
    bash = needs("bash")
    lines = [script("bash")]
    for line in OFFERED:
        words = line.split(" ")
        lines += [
            f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}",
            "COMPREPLY=(); _lloydia; echo ${COMPREPLY[@]}",
        ]
    # Files are bash's own affair, which knows how to quote them.
    lines += ["COMP_WORDS=(lloydia fit x); COMP_CWORD=2; _lloydia; echo ${#COMPREPLY[@]} files"]
    lines += ["complete -p lloydia"]
    (folder / "x y.csv").touch()
    (folder / "lines.sh").write_text("\n".join(lines), encoding="utf-8")
    ran = subprocess.run([bash, "--norc", "lines.sh"], capture_output=True, text=True, cwd=folder)
    *offered, files, registered = ran.stdout.splitlines()
    assert [line.split() for line in offered] == list(OFFERED.values())
    assert files == "0 files"
    assert registered == "complete -o default -F _lloydia lloydia"
    assert ran.stderr == ""


def test_fish(folder):
    fish = needs("fish")
    (folder / "l.fish").write_text(script("fish"), encoding="utf-8")
    asked = [*OFFERED, "lloydia fit x.csv --init k", "lloydia fit y"]
    lines = ["source l.fish", *(f"complete -C '{line}'; echo =" for line in asked)]
    (folder / "y.csv").touch()
    ran = subprocess.run(
        [fish, "--no-config", "-c", "; ".join(lines)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
    )
    assert ran.stderr == ""
    parts = ran.stdout.split("=\n")[:-1]
    found = [[line.partition("\t")[0] for line in part.splitlines()] for part in parts]
    assert found == [*OFFERED.values(), ["k-means++", "k-means||"], ["y.csv"]]


def test_zsh(folder):
    zsh = needs("zsh")
    (folder / "_lloydia").write_text(script("zsh"), encoding="utf-8")
    ran = subprocess.run([zsh, "-n", "_lloydia"], capture_output=True, text=True, cwd=folder)
    assert (ran.returncode, ran.stderr) == (0, "")


def choices(hint):
    """Return the choices of a type that also takes other texts."""
    return get_args(get_args(hint)[0])


def test_choices_are_those_that_there_are():
    assert choices(SpaceName) == tuple(space.name for space in SPACES)
    assert choices(get_type_hints(Method)["init"]) == SEEDINGS
