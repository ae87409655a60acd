"""`lloydia ladder dump`: C's text files."""

import json

import pytest


def test_text_is_written_after_every_iteration(run, folder):
    ran = run("ladder", "dump", "--rows", 60, "-k", 4, "--every", "--out", "text", "--json")
    assert (ran.status, ran.err) == (0, "")
    files = json.loads(ran.out)["files"]
    assert len(files) > 1
    for file in files:
        lines = (folder / file).read_text().splitlines()
        assert lines[0] == "# 4 centres of 2 coordinates"
        assert lines[5] == "# 60 labels and points of 2 coordinates"
        assert len(lines) == 66
    last = run("ladder", "dump", "--rows", 60, "--k", 4, "--out", "end")
    assert last.out == files[-1].replace("text", "end") + "\n"
    assert (folder / "end").joinpath(files[-1][5:]).read_text() == (folder / files[-1]).read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", 7, "-k", 8], "-k 8 asks for more clusters than the 7 points."),
        (["--rung", "r02_elkan"], "r02_elkan keeps bounds between iterations"),
        (["--rung", "r99"], "There is no rung 'r99': there are r00_reference, "),
        (["--rows", "2.5"], "'2.5' is not a whole number"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing(run, folder, options, message):
    ran = run("ladder", "dump", *options)
    assert ran.status == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert not list(folder.iterdir())
