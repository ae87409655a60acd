from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
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
    for page in ("page.md", "new.md"):
        ran = run("ladder", "report", "--results", "kept", "--page", page)
        assert ran.status == 0
        assert ran.out.splitlines()[0] == page
        text = (folder / page).read_text()
        assert "| 01 lloyd |" in text
        assert "| src/lloydia/ladder/r12_atomics.py |" in text  # no links outside of a clone
    assert "## A: atomics, shared memory, masked trees" in text
    assert "ladder: T" not in text


@pytest.fixture
def sample(folder):
    """Write 60 points as x y lines, and as one line of x y x y."""
    points = np.random.default_rng(3).random((60, 2)).round(3)
    lines = [f"{x} {y}" for x, y in points]
    (folder / "rows.txt").write_text("\n".join(lines))
    (folder / "line.txt").write_text(" ".join(lines))
    return points


@pytest.mark.parametrize("file", ["rows.txt", "line.txt"])
@pytest.mark.parametrize("letter", ["T", "A", "B", "C", "D", "walk"])
def test_rungs_run_on_a_table_of_the_user(run, sample, folder, letter, file):
    ran = run("ladder", "run", letter, "--data", file, "-k", 4, "--rung", 1, "--rung", "r00")
    assert (ran.status, ran.err) == (0, "")
    assert [line.split(" at ")[0] for line in ran.out.splitlines()] == [
        f"{letter} own data: 01 lloyd",
        f"{letter} own data: 00 reference",
    ]
    assert " at 60 x 2, k = 4, " in ran.out
    assert sorted(path.name for path in folder.iterdir()) == ["line.txt", "rows.txt"]


def test_all_of_a_documents_rungs_run_on_the_users_points_and_are_kept_on_demand(run, folder):
    ran = run("ladder", "run", "C", "--points", 50, "-k", 3, "--out", "kept", "--json")
    rows = json.loads(ran.out)["rows"]
    assert {row["rung"] for row in rows} >= {"scikit-learn lloyd", "r01_lloyd", "r30_engine_cpu"}
    assert {(row["n"], row["k"], row["part"]) for row in rows} == {(50, 3, "own data")}
    (lines,) = (folder / "kept").glob("*/ladder/C.jsonl")
    assert len(lines.read_text().splitlines()) == len(rows)


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
        ("run A --rung 1", "--rung is for data of your own: give --data FILE or --points N"),
        ("run A --data rows.txt", "data of your own needs the number of clusters: give -k"),
        ("run A --data rows.txt --points 9 -k 2", "--data and --points both give points"),
        ("run A --data rows.txt -k 61", "-k 61 asks for more clusters than the 60 points of rows"),
        ("run A --data none.txt -k 2", "no such file: none.txt"),
        ("run A --data rows.txt -k 2 --rung 99", "There is no rung '99'"),
        ("run A --data rows.txt -k 2 --scale 0.5", "--scale shrinks an experiment"),
        ("run A --data huge.txt -k 1", "A's programs compute in float32, which has no number as"),
        ("list A", "ladder list takes only options"),
        ("report", "docs/ladder.md is not there: run this in a clone, or name a page"),
        ("report --page none/new.md", "cannot write none/new.md: there is no folder none"),
        ("report --page new.md", "benchmarks/results has no measurement of the ladder"),
    ],
)
def test_bad_input_is_one_sentence(run, folder, sample, arguments, what):
    (folder / "file").write_text("")
    (folder / "huge.txt").write_text("1 1e200\n2 3\n")
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
