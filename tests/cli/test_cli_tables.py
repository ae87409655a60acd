"""Tables as people have them, by the command line: its own words, options and warnings."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys

import numpy as np
import pytest

A = [[0, 0], [0, 1], [1, 0], [4, 4], [4, 5], [5, 4]]
ROWS = "".join(f"{a},{b}\n" for a, b in A)


def labels_of(run, *arguments):
    ran = run("fit", *arguments, "-k", 2, "--labels", "labels.csv")
    assert ran.status == 0, ran.err
    return len(open("labels.csv").read().splitlines()) - 1, ran.err


def test_a_table_without_names_as_pandas_writes_it(run, folder):
    (folder / "t.csv").write_text(f"0,1\n{ROWS}")
    n, said = labels_of(run, "t.csv")
    assert n == 6
    assert "--no-header reads it as a row of data, and --header ends this warning" in said
    assert labels_of(run, "t.csv", "--header") == (6, "")
    assert labels_of(run, "t.csv", "--no-header") == (7, "")


def test_years_over_whole_numbers_stay_data(run, folder):
    (folder / "t.csv").write_text("2019,2020,2021\n" + "1,2,7\n9,8,1\n5,5,5\n")
    n, said = labels_of(run, "t.csv")
    assert n == 4
    assert said.startswith("lloydia: warning: t.csv: the first row (2019, 2020, 2021) is read as")
    assert said.count("\n") == 1
    assert "--header reads it as one, and --no-header ends this warning" in said
    assert labels_of(run, "t.csv", "--header") == (3, "")


def test_clean_tables_are_read_without_a_word(run, folder):
    (folder / "t.csv").write_text(ROWS)
    assert labels_of(run, "t.csv") == (6, "")
    (folder / "t.csv").write_text(f"a,b\n{ROWS}")
    assert labels_of(run, "t.csv") == (6, "")


@pytest.mark.parametrize("first", ["", "0,1\n", "5,7\n"])
def test_a_header_of_centres_is_known_by_their_count(run, folder, first):
    (folder / "t.csv").write_text(ROWS)
    (folder / "c.csv").write_text(f"{first}0,1\n5,7\n")
    assert labels_of(run, "t.csv", "--init", "c.csv") == (6, "")


@pytest.mark.parametrize(
    ("centers", "says"),
    [
        ("1,5;2\n3;4\n", "write 1.5"),
        ("a,b\n1,2,\n3,4,\n", "column 3 is empty; remove it"),
        ("1,x\n3,4\n", "have it name its columns in words, or remove it"),
    ],
)
def test_errors_about_centres_name_no_option_of_data(run, folder, centers, says):
    (folder / "t.csv").write_text(f"a,b\n{ROWS}")
    (folder / "c.csv").write_text(centers)
    ran = run("fit", "t.csv", "-k", 2, "--init", "c.csv")
    assert ran.status == 2
    assert says in ran.err
    assert "--" not in ran.err


def test_other_marks_of_numbers(run, folder):
    (folder / "t.csv").write_text("a;b\n" + "1.000,5;2\n3,5;4\n" * 2)
    ran = run("fit", "t.csv", "-k", 2)
    assert "give --decimal ',' and --thousands '.', or write 1000.5" in ran.err
    marks = ("--decimal", ",", "--thousands", ".")
    ran = run("fit", "t.csv", "-k", 2, *marks, "--centers", "c.csv", "--model", "m.npz", "--json")
    assert ran.status == 0, ran.err
    centers = np.loadtxt("c.csv", delimiter=",", skiprows=1)
    assert sorted(centers.tolist()) == [[3.5, 4], [1000.5, 2]]
    assert run("predict", "m.npz", "t.csv", *marks).status == 0
    (folder / "l.csv").write_text("0\n1\n0\n1\n")
    assert run("score", "t.csv", "l.csv", *marks).status == 0
    assert run("fit", "t.csv", "-k", 2, "--decimal", ";").err.startswith("lloydia: --decimal ';'")


def test_marks_of_numbers_in_pairs(run):
    stream = b"1,5 2,5;3,5 4,5 "
    ran = run("fit", "-", "-k", 2, "--pairs", "--decimal", ",", "--json", stdin=stream)
    assert json.loads(ran.out)["n_samples"] == 2


def test_a_name_with_a_comma_is_chosen(run, folder):
    (folder / "t.csv").write_text(f'"height, cm","2"\n{ROWS}')
    assert labels_of(run, "t.csv", "--columns", '"height, cm","2"') == (6, "")
    ran = run("fit", "t.csv", "-k", 2, "--columns", "height")
    assert "its columns are 'height, cm', '2'; write a name with commas in double quotes" in ran.err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--tol", "1_0"),
        ("--tol", "nan"),
        ("--tol", "\uff11"),
        ("-k", "1_0"),
        ("-k", "\uff12"),
        ("--seed", "1_0"),
        ("--max-iter", "1_0"),
        ("--n-init", "1_0"),
        ("--stop", "labels:0_1"),
    ],
)
def test_options_take_numbers_alone(run, folder, option, value):
    (folder / "t.csv").write_text(ROWS)
    k = () if option == "-k" else ("-k", 2)
    ran = run("fit", "t.csv", *k, option, value)
    assert ran.status == 2
    assert "number" in ran.err


def test_memory_takes_ascii_digits(run, folder):
    np.save("t.npy", np.array(A, float))
    assert "not an amount of memory" in run("fit", "t.npy", "-k", 2, "--memory", "\uff12GB").err


def test_empty_options_name_options(run, folder):
    (folder / "t.csv").write_text("1\n1\n2\n")
    (folder / "far.csv").write_text("1\n900\n")
    ran = run("fit", "t.csv", "-k", 2, "--init", "far.csv", "--empty", "error")
    assert ran.err.endswith("or --empty relocate.\n")


def test_names_are_no_formulas_in_a_picture(run, folder):
    pytest.importorskip("matplotlib")
    (folder / "$x^$_{.csv").write_text(f"$\\frac$,b_{{\n{ROWS}")
    ran = run("fit", "$x^$_{.csv", "-k", 2, "--plot", "p.svg")
    assert (ran.status, ran.err) == (0, "")


def test_what_is_printed_holds_no_control_characters(run, folder):
    (folder / "t.csv").write_text(ROWS)
    name = "\x1b[31mcaf\udce9.csv"
    ran = run("fit", "t.csv", "-k", 2, "--labels", name)
    assert ran.status == 0, ran.err
    assert "\\x1b[31mcaf\\udce9.csv" in ran.out
    assert os.path.exists(name)


def test_names_are_no_markup_on_a_terminal(folder):
    (folder / "[").mkdir()
    name = "[/].csv"
    (folder / "[").joinpath("].csv").write_text(ROWS)
    main, child = pty.openpty()
    code = (
        "import sys; from lloydia.cli import main, progress; progress.DELAY = 0; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "fit", name, "-k", "2"],
        stdout=subprocess.PIPE,
        stderr=child,
        env={**os.environ, "TERM": "xterm"},
        check=False,
    )
    os.close(child)
    shown = io.BytesIO()
    try:
        while part := os.read(main, 4096):
            shown.write(part)
    except OSError:  # the end of a terminal
        pass
    assert done.returncode == 0, shown.getvalue()
    assert b"reading [/].csv" in shown.getvalue()
