"""What counts as a number: the list of docs/tables.md."""

from __future__ import annotations

import io

import numpy as np
import pytest

from lloydia.data.columns import DataError
from lloydia.data.labels import read_labels
from lloydia.data.numbers import Grammar, real_number, whole_number
from lloydia.data.text import TextForm, read_pairs, read_text
from lloydia.stopping import parse

NUMBERS = {
    "1e5": 1e5,
    "1E+05": 1e5,
    "+1": 1.0,
    "-1": -1.0,
    ".5": 0.5,
    "5.": 5.0,
    "-.5e-3": -0.5e-3,
    "007": 7.0,
    "1e-400": 0.0,
    "0." + "1" * 400: float("0." + "1" * 400),
    "1" * 300: float("1" * 300),
    " 5\u00a0": 5.0,
}

# What is no number, and a part of what the error says of it.
NO_NUMBERS = {
    "12_3": "write 123",
    "1__0": "write 10",
    "_1": "write 1",
    "1e1_0": "write 1e10",
    "0x10": "write 16",
    "0x1p3": "not a number",
    "0b1": "not a number",
    "1d5": "write 1e5",
    "1.5f": "write 1.5",
    "(5)": "write -5",
    "\uff11\uff12": "write 12",
    "\u0661\u0662": "write 12",
    "\u22121": "write -1",
    "1\x1e": "not a number",
    "\x1f1": "not a number",
    "1e": "not a number",
    "1e5.5": "not a number",
    "--1": "not a number",
    "+-1": "not a number",
    "- 5": "not a number",
    "1.2.3": "not a number",
    "True": "write 1",
    "false": "write 0",
    "5%": "remove the sign %",
    "$5": "remove the sign $",
    "\u20ac 5,50": "remove the sign \u20ac",
    "5 kg": "remove the unit 'kg'",
    "1,5": "give decimal=',', or write 1.5",
    "1,234": "give thousands=',' if it means 1234, or decimal=',' if it means 1.234",
    "1,234.56": "give thousands=',', or write 1234.56",
    "1.234,56": "give decimal=',' and thousands='.', or write 1234.56",
    "1 234": "give thousands=' ', or write 1234",
    "1\u202f234": "give thousands=' ', or write 1234",
    "1'234": 'give thousands="\'", or write 1234',
    "1\0": "UTF-16 without a byte-order mark",
    "1/2": "not a number",
    "1:30": "not a number",
    "inf": "is infinite",
    "-Infinity": "is infinite",
    "nan": "is NaN",
    "NaN": "is NaN",
    "1e400": "is infinite, as it is too large for float64",
    "9" * 400: "too large for float64",
    "": "is missing; fill it in",
    "NA": "is missing ('NA')",
    "#DIV/0!": "is missing ('#DIV/0!')",
    "\\N": "is missing",
    "-": "is missing ('-')",
}


def read(text, *, suffix=".tsv", wanted=None, header=None, **marks):
    form = TextForm(header, Grammar(**marks))
    return read_text(io.BytesIO(text.encode()), "t", suffix=suffix, form=form, wanted=wanted)[0]


@pytest.mark.parametrize("cell", NUMBERS)
def test_numbers(cell):
    assert read(f"a\tb\n1\t2\n{cell}\t3\n").tolist() == [[1, 2], [NUMBERS[cell], 3]]
    assert read(f'a\tb\n1\t2\n"{cell}"\t3\n').tolist() == [[1, 2], [NUMBERS[cell], 3]]


@pytest.mark.parametrize("cell", NO_NUMBERS)
def test_no_numbers(cell):
    with pytest.raises(DataError) as caught:
        read(f"a\tb\n1\t2\n4\t3\n{cell}\t5\n")
    assert str(caught.value).startswith("t: row 3 (line 4), column 1 ('a') is ")
    assert NO_NUMBERS[cell] in str(caught.value)


@pytest.mark.parametrize("cell", NO_NUMBERS)
def test_no_numbers_beyond_the_first_rows(cell):
    with pytest.raises(DataError, match="row 301"):
        read("a\tb\n" + "1\t2\n" * 300 + f"{cell}\t5\n")


@pytest.mark.parametrize(
    ("cell", "value", "marks"),
    [
        ("1,5", 1.5, {"decimal": ","}),
        (",5", 0.5, {"decimal": ","}),
        ("5,", 5.0, {"decimal": ","}),
        ("1,5e-3", 1.5e-3, {"decimal": ","}),
        ("1.234.567,8", 1234567.8, {"decimal": ",", "thousands": "."}),
        ("1,234.5", 1234.5, {"thousands": ","}),
        ("1234.5", 1234.5, {"thousands": ","}),
        ("1 234,5", 1234.5, {"decimal": ",", "thousands": " "}),
        ("1\u202f234", 1234.0, {"thousands": " "}),
        ("1\u00a0234", 1234.0, {"thousands": " "}),
        ("1'234", 1234.0, {"thousands": "'"}),
        ("1\u2019234", 1234.0, {"thousands": "'"}),
    ],
)
def test_other_marks(cell, value, marks):
    assert read(f"a\tb\n{cell}\t3\n", **marks).tolist() == [[value, 3]]


@pytest.mark.parametrize(
    ("cell", "marks"),
    [
        ("1.5", {"decimal": ","}),
        ("12,34", {"thousands": ","}),
        ("1,2345", {"thousands": ","}),
        ("1,234,5", {"thousands": ","}),
        ("1.234.5", {"thousands": ","}),
        (",123", {"thousands": ","}),
    ],
)
def test_other_marks_refuse(cell, marks):
    with pytest.raises(DataError, match="not a number"):
        read(f"a\tb\n1\t2\n{cell}\t3\n", **marks)


@pytest.mark.parametrize(
    ("text", "rows", "marks"),
    [
        ("1,5;2\n3;4,5\n", [[1.5, 2], [3, 4.5]], {"decimal": ","}),
        ("1,5 2\n3 4,5\n", [[1.5, 2], [3, 4.5]], {"decimal": ","}),
        ("1,5\n2,5\n", [[1.5], [2.5]], {"decimal": ","}),
        ('"1,5","2"\n"3","4,5"\n', [[1.5, 2], [3, 4.5]], {"decimal": ","}),
        ('a,b\n"1,234",2\n3,4\n', [[1234, 2], [3, 4]], {"thousands": ","}),
        ("1,234\n5,678\n", [[1234], [5678]], {"thousands": ","}),
        ("1 234\n5 678\n", [[1234], [5678]], {"thousands": " "}),
    ],
)
def test_marks_of_numbers_separate_no_cells(text, rows, marks):
    assert read(text, suffix=".csv", **marks).tolist() == rows


@pytest.mark.parametrize(
    "marks", [{"decimal": ";"}, {"decimal": ""}, {"thousands": "x"}, {"thousands": "."}]
)
def test_bad_marks(marks):
    with pytest.raises(ValueError, match=next(iter(marks))):
        Grammar(**marks)


@pytest.mark.parametrize("text", ["1_0 2", "1 \uff12", "1 inf", "1 nan", "0x1 2", "1 1e400"])
def test_pairs(text):
    with pytest.raises(DataError):
        read_pairs(io.BytesIO(f"0 0 {text}".encode()), "t")
    assert read_pairs(io.BytesIO(b"1e5,.5;+1 5."), "t").tolist() == [[1e5, 0.5], [1, 5]]


def test_labels(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("12_3\n123\n\uff11\n1\n", encoding="utf-8")
    assert len(np.unique(read_labels(path, 4))) == 4
    path.write_text("1\n2\nnan\n")
    with pytest.raises(DataError, match=r"line 3 is missing \(nan\)"):
        read_labels(path, 3)
    path.write_text("none\nmild\nsevere\n")
    assert read_labels(path, 3).tolist() == ["none", "mild", "severe"]


@pytest.mark.parametrize("text", ["1_0", "\uff11", "1.5", "0x1", "", "1e3", "9" * 5000])
def test_whole_numbers_of_options(text):
    with pytest.raises(ValueError, match=r"not a whole number|too many digits"):
        whole_number(text)


@pytest.mark.parametrize("text", ["1_0", "\uff11", "nan", "inf", "0x1", "", "1e400", "1e"])
def test_numbers_of_options(text):
    with pytest.raises(ValueError, match=r"not a number|too large"):
        real_number(text)


def test_numbers_of_stop_rules():
    assert parse("labels:0.5").fraction == 0.5
    with pytest.raises(ValueError, match="not a number"):
        parse("labels:0_1")


def test_columns_are_numbered_with_ascii_digits():
    with pytest.raises(DataError, match="no column"):
        read("a\tb\n1\t2\n", wanted="\uff12")
