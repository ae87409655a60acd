from __future__ import annotations

import json
import subprocess
import sys

import pytest


def test_rungs_are_listed(run):
    lines = run("ladder", "list").out.splitlines()
    assert lines[0].startswith("r00_reference")
    assert any("r01_lloyd" in line and "TABCD" in line for line in lines)
    rows = json.loads(run("ladder", "list", "--json").out)["rungs"]
    assert [row["rung"] for row in rows] == sorted(row["rung"] for row in rows)


def test_without_numba_cuda_the_list_has_its_titles_and_says_once_how_to_get_it():
    program = (
        "import importlib.util as util, sys\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *more: name != 'numba_cuda' and find(name, *more) or None\n"
        "from lloydia.cli import main\n"
        "sys.exit(main(['ladder', 'list']))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "one thread a point, atomic sums" in ran.stdout
    assert "numba-cuda" not in ran.stdout
    assert ran.stderr.count("pip install numba-cuda") == 1


def test_a_tiny_run_and_its_report(run, folder):
    pytest.importorskip("matplotlib")
    ran = run("ladder", "run", "a", "--scale", 0.001, "--out", "kept", "--json")
    assert ran.status == 0
    rows = json.loads(ran.out)["rows"]
    assert {row["experiment"] for row in rows} == {"A"}
    (lines,) = (folder / "kept").glob("*/ladder/A.jsonl")
    assert len(lines.read_text().splitlines()) == len(rows)
    assert str(lines.relative_to(folder)) in ran.err
    (folder / "page.md").write_text("<!-- ladder: A -->\n<!-- end -->\n")
    ran = run("ladder", "report", "--results", "kept", "--page", "page.md")
    assert ran.status == 0
    assert ran.out.splitlines()[0] == "page.md"
    assert "| 01 lloyd |" in (folder / "page.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("run", "needs an experiment"),
        ("run A --scale 0.1 --out file", "cannot write into file: it is not a folder; name one"),
        ("dump --out file", "cannot write into file: it is not a folder; name one"),
        ("run E --out x", "'E' is not one of walk, T, A, B, C, D"),
        ("run A --scale 0.5", "name a folder with --out"),
        ("run A --scale 0 --out x", "--scale must be more than 0"),
        ("run A --scale 2 --out x", "--scale must be more than 0 and at most 1, not 2"),
        ("run A --where tpu", "--where"),
        ("list A", "ladder list takes options alone"),
        ("report --page none.md", "none.md is not there: run this in a clone"),
    ],
)
def test_bad_input_is_one_sentence(run, folder, arguments, what):
    (folder / "file").write_text("")
    ran = run("ladder", *arguments.split())
    assert ran.status == 2
    assert what in ran.err
    assert ran.err.count("\n") == 1


def test_a_report_of_nothing_is_one_sentence(run, folder):
    (folder / "page.md").write_text("<!-- ladder: A -->\n<!-- end -->\n")
    ran = run("ladder", "report", "--results", "nothing", "--page", "page.md")
    assert ran.status == 2
    assert "nothing has no measurement of the ladder: make some" in ran.err


def test_no_gpu_is_one_sentence(run, monkeypatch):
    cuda = pytest.importorskip("numba.cuda")
    pytest.importorskip("numba_cuda")
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    monkeypatch.setattr(cuda, "is_available", lambda: False)
    ran = run("ladder", "run", "A", "--where", "cuda")
    assert ran.status == 2
    assert ran.err == (
        "lloydia: Rungs on a GPU need an NVIDIA GPU, and numba-cuda finds none here; with "
        "NUMBA_ENABLE_CUDASIM=1 they run without one, for some dozen points.\n"
    )


def test_no_numba_cuda_is_one_sentence(run, monkeypatch):
    monkeypatch.setattr("lloydia.ladder.experiments.lab.find_spec", lambda name: None)
    ran = run("ladder", "run", "A", "--where", "all")
    assert ran.status == 2
    assert "need numba-cuda; pip install numba-cuda" in ran.err


@pytest.mark.parametrize("command", ["", "list", "run", "report"])
def test_help_shows_an_example(run, command):
    ran = run("ladder", *command.split(), "--help")
    assert ran.status == 0
    assert "Example: lloydia ladder" in ran.out
