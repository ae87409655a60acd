"""Lines, quotes, separators and characters of texts."""

from __future__ import annotations

import io
import re
import warnings
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lloydia.data.columns import DataError
from lloydia.data.numbers import Grammar
from lloydia.data.text import QuoteError, TextForm, read_text, rows


def read(text, suffix="", wanted=None, **form):
    data = text if isinstance(text, bytes) else text.encode()
    return read_text(io.BytesIO(data), "t", suffix=suffix, form=TextForm(**form), wanted=wanted)


def refusal(text, **options):
    with pytest.raises(DataError) as caught:
        read(text, **options)
    return str(caught.value)


@pytest.mark.parametrize("d", [6_000, 50_000])
def test_wide_tables(d):
    row = ",".join(map(str, range(1, d + 1)))
    X, columns = read(",".join(f"c{j}" for j in range(d)) + f"\n{row}\n{row}\n")
    assert X.shape == (2, d)
    assert columns.names[-1] == f"c{d - 1}"
    X, _ = read(f"{row}\n{row}\n", header=False, wanted=f"{d},1")
    assert X.tolist() == [[d, 1]] * 2


def test_long_cells():
    assert read(f"a,b\n{'x' * 2_000_000},1\n", wanted="b")[0].tolist() == [[1]]
    assert read(f'a,b\n"{"x," * 1_000_000}",1\n', wanted="b")[0].tolist() == [[1]]
    assert read(f"a,b\n0.{'1' * 1_000_000},1\n")[0].tolist() == [[1 / 9, 1]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('a,b\n1,"2\n3,4\n5,6\n', "t: line 2: a quote is opened and never closed; remove it."),
        ("a,b\n" + "1,2\n" * 900 + '1,"' + "3,4\n" * 900, "line 902: a quote is opened"),
        ('a,b\n1,"2\n3,4\n5,"6\n', "t: line 4: text follows the quote that closes '2\\n3,4\\n5,'"),
        ('a,b\n1,"2"x\n', "line 2: text follows the quote that closes '2'"),
        ('a b\n1 "2\n3 4\n', "line 2: a quote is opened"),
        ('"', "line 1: a quote is opened"),
    ],
)
def test_quotes_that_do_not_match(text, says):
    assert says in refusal(text)


@pytest.mark.parametrize(
    ("text", "wanted", "rows"),
    [
        ('a,b,c\n1,2,"x\ny, ""z"""\n3,4,"z"\n', "1-2", [[1, 2], [3, 4]]),
        ('a,b\n5" pipe,1\n3" pipe,2\n', "b", [[1], [2]]),
        ('"a" , "b"\n"1" , "2"\n', None, [[1, 2]]),
        ('"a\tb"\tc\n"x\ty"\t2\n', "c", [[2]]),
        ('"a  b" c\n1 2\n', '"a  b"', [[1]]),
        ('"a" "b"\n "1"   "2" \n"3" "4"', None, [[1, 2], [3, 4]]),
        ('a,b\n"x\n\n\ny",1\n"",2\n', "b", [[1], [2]]),
    ],
)
def test_quotes(text, wanted, rows):
    assert read(text, wanted=wanted)[0].tolist() == rows


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b,\n1,2,\n3,4,\n", "column 3 is empty; leave it out with columns='1-2'"),
        ("a,b\n1,2,\n3,4,\n", "column 3 is empty; leave it out with columns='1-2'"),
        ("1,2,\n3,4,\n", "column 3 is empty; leave it out with columns='1-2'"),
        ("a;b;;\n1;2;;\n", "are empty; leave them out with columns='1-2'"),
        ("a,,b\n1,,2\n3,,4\n", "column 2 is empty; leave it out with columns='1,3'"),
        ("a,b\n1,2\n3,4,\n", "row 2 (line 3) has 3 cells where the first row has 2; it ends with"),
        ("a,b\n1,2\n,\n", "row 2 (line 3) has only empty cells; remove it"),
        ("a,b\n1,2\n# x\n", "comments are left out only above the first row"),
        ('a\n1\n""\n', "row 2 (line 3) has only empty cells"),
    ],
)
def test_empty_cells(text, says):
    assert says in refusal(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,5%\n3,6%\n", "column 2 ('b') holds '5%' in row 1, line 2, not a number; remove"),
        ("a,b\n1,x\n3,y\n", "holds text; choose numeric columns, such as columns='1' (the first"),
        ("a,b\n1,NA\n3,y\n", "(the first text is 'y' in row 2, line 3)"),
    ],
)
def test_columns_of_text_show_the_first_cell(text, says):
    assert says in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        '"x" "y"\n"1" 0.5 2\n"2" 0.25 3\n',
        '"x"\t"y"\n"1"\t0.5\t2\n"2"\t0.25\t3\n',
        '"x","y"\n"1",0.5,2\n"2",0.25,3\n',
        "x y\n1 0.5 2\n2 0.25 3\n",
        "x\ty\nr1\t0.5\t2\nr2\t0.25\t3\n",
        'x y\n"Mazda RX4" 0.5 2\n"Datsun 710" 0.25 3\n',
    ],
)
def test_names_of_rows_as_r_writes_them(text):
    with pytest.warns(UserWarning, match="column 1 is read as names of rows"):
        X, columns = read(text)
    assert X.tolist() == [[0.5, 2], [0.25, 3]]
    assert (columns.places, columns.names) == ((1, 2), ("x", "y"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read(text, wanted="y")[0].tolist() == [[2], [3]]


@pytest.mark.parametrize(
    "text", ["value\n1,5\n2,5\n3,5\n", "a,b\n1,5,2\n2,5,3\n", '"2019"\n1,2\n3,4\n']
)
def test_decimal_commas_are_no_names_of_rows(text):
    assert "cells where the first row has" in refusal(text)
    assert refusal("value\n1 234\n2 345\n").endswith("give thousands=' ', or write 1234.")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("sep=;\na;b\n1;2\n", [[1, 2]]),
        ("sep=;\r\n1;2\r\n", [[1, 2]]),
        ('"sep=,"\n1,2\n', [[1, 2]]),
        ("SEP=|\na|b\n1|2\n", [[1, 2]]),
        ("sep=\t\n1\t2\n", [[1, 2]]),
        ("\ufeffsep=;\n1;2\n", [[1, 2]]),
    ],
)
def test_the_separator_that_excel_names(text, rows):
    assert read(text)[0].tolist() == rows
    assert read(text, suffix=".csv")[0].tolist() == rows


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le with a mark"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_characters_and_line_ends(encoding, end):
    text = end.join(["größe,b", "1,2  ", "", "3,4.5", ""])
    if encoding == "utf-16-le with a mark":
        data = b"\xff\xfe" + text.encode("utf-16-le")
    else:
        data = text.encode(encoding)
    X, columns = read(data)
    assert columns.names == ("größe", "b")
    assert X.tolist() == [[1, 2], [3, 4.5]]


def test_bytes_that_are_no_utf8_matter_where_they_are_read():
    table = "a,b,stadt\n1,2,Zürich\n3,4,Bern\n".encode("latin-1")
    assert read(table, wanted="a,b")[0].tolist() == [[1, 2], [3, 4]]
    assert "t is not UTF-8 text in line 1" in refusal("größe\n1\n".encode("latin-1"))
    assert "not UTF-8 text" in refusal(b"a,b\n1,2\n3,\xb54\n")
    assert "UTF-16" in refusal("a,b\n1,2\n".encode("utf-16-le"))


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ('"a, b"', (0,)),
        ('"a, b",c', (0, 1)),
        ('c , "a, b"', (1, 0)),
        ("2", (3,)),
        ('"2"', (3,)),
        ("1", (0,)),
        ("1-3", (2,)),
        ("3-4", (2, 3)),
        ('"say ""x"""', (4,)),
        ("50%", (5,)),
        ("[red]x[/]", (6,)),
    ],
)
def test_names_of_columns_of_all_kinds(wanted, places):
    text = '"a, b",c,1-3,2,"say ""x""",50%,[red]x[/]\n' + "1,2,3,4,5,6,7\n" * 2
    assert read(text, wanted=wanted)[1].places == places


def test_choices_that_are_wrong():
    assert "a quote is not closed" in refusal("a,b\n1,2\n", wanted='"a')
    assert "write a name with commas in double quotes" in refusal('"a, b",c\n1,2\n', wanted="a")
    assert "is outside its columns 1 to 2" in refusal("a,b\n1,2\n", wanted="1-" + "9" * 5000)


def test_order_of_columns():
    X, _ = read("a,b,c,d\n1,2,3,4\n5,6,7,8\n", wanted="1,3,2,4")
    assert np.array_equal(X, [[1, 3, 2, 4], [5, 7, 6, 8]])


pieces = st.lists(
    st.sampled_from(['"', '""', ",", " ", "\t", "a", "1", "\n", "\r\n", ";", "x y", "é", "'"]),
    max_size=16,
)


@given(pieces, st.sampled_from(",;\t "))
def test_both_ways_of_splitting_lines_agree(pieces, separator):
    def cells(marked):
        lines = iter(io.StringIO("".join(pieces), newline=""))
        try:
            found = list(rows(lines, separator, marked=marked))
        except QuoteError as error:
            return str(error)
        return [(line, [cell.strip() for cell in cells]) for line, cells, _ in found]

    assert cells(True) == cells(False)


@given(st.binary(max_size=60), st.sampled_from(["", ".csv", ".tsv"]))
def test_any_bytes_are_a_table_or_an_error(data, suffix):
    with warnings.catch_warnings(), suppress(DataError):
        warnings.simplefilter("ignore")
        X, columns = read(data, suffix=suffix)
        assert X.shape[1] == len(columns.places)
        assert np.isfinite(X).all()


OTHER_LAYOUTS = {
    "1 1:0.5 3:2\n0 2:1.5\n": "is a LibSVM file",
    "+1 1:0.5 3:2 # a\n-1\n-1 2:1.5 4:2\n": "is a LibSVM file",
    "3 qid:1 1:0.5 2:10\n1 qid:1 2:12\n": "is a LibSVM file",
    "2,7 1:10 3:2e-3\n\n0 2:15\n": "is a LibSVM file",
    "a|b\n1|2\n3|4\n": r"has \| between its cells",
    "1|2\n3|4\n": r"has \| between its cells",
    "| a | b |\n|---|---|\n| 1 | 2 |\n": r"is a table drawn with \| and -",
    "+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n": r"is a table drawn with \| and -",
    "@relation x\n@attribute a numeric\n@data\n1,2\n": "is an ARFF file",
}


@pytest.mark.parametrize("text", OTHER_LAYOUTS)
def test_other_layouts_are_named(text):
    with pytest.raises(DataError, match=f"t {OTHER_LAYOUTS[text]}.*(write|save)"):
        read(text)


def test_a_bar_or_a_colon_in_a_cell_is_no_layout():
    assert read("a|b,c\n1,2\n")[1].names == ("a|b", "c")
    for text in ("1,2|3\n4,5\n", "12:30 5\n12:31 6\n"):
        assert re.search("LibSVM|between its cells", refusal(text)) is None


SPACED = [
    'name,age,income\nAnn Lee,30,"1,200"\nBo Po,40,"2,300"\nCy Do,50,"12,300"\n',
    'name,age,income\n"Lee, Ann",30,"1,200"\n"Po, Bo",40,"2,300"\n"Do, Cy",50,"12,300"\n',
    'when,age,income\n2024-01-01 10:00,30,"1,200"\n2024-01-02 10:00,40,"2,300"\n'
    '2024-01-03 11:00,50,"12,300"\n',
    "name,age,income\nAnn Lee,30,1200\nBo Po,40,2300\nCy Do,50,12300\n",
    'name,age,income\nAnn Lee,"30","1200"\nBo Po,"40","2300"\nCy Do,"50","12300"\n',
    "name,age,income\n\nAnn,30,1200\n\nBo,40,2300\nCy,50,12300\n",
]


@pytest.mark.parametrize("text", SPACED)
@pytest.mark.parametrize("wanted", ["age,income", "2-3"])
def test_a_comma_in_numbers_separates_cells_in_spite_of_blanks(text, wanted):
    X, columns = read(text, wanted=wanted, grammar=Grammar(thousands=","))
    assert (columns.names, columns.places) == (("age", "income"), (1, 2))
    assert X.tolist() == [[30, 1200], [40, 2300], [50, 12300]]


def test_decimal_commas_in_quotes_between_commas():
    text = 'name,a,b\nAnn Lee,"1,5",2\nBo Po,"2,5",3\n'
    X, _ = read(text, wanted="a,b", grammar=Grammar(decimal=","))
    assert X.tolist() == [[1.5, 2], [2.5, 3]]


@pytest.mark.parametrize(
    ("text", "marks", "rows"),
    [
        ("a b\n1,200 3,400\n5,600 7,800\n", {"thousands": ","}, [[1200, 3400], [5600, 7800]]),
        ("1,200 3,400\n5,600 7,800\n", {"thousands": ","}, [[1200, 3400], [5600, 7800]]),
        ("1,5 2,5\n", {"decimal": ","}, [[1.5, 2.5]]),
        ("a;b\n1,5;2,5\n3,5;4,5\n", {"decimal": ","}, [[1.5, 2.5], [3.5, 4.5]]),
        ('a b\n"1,5" "2,5"\n3,5 4,5\n', {"decimal": ","}, [[1.5, 2.5], [3.5, 4.5]]),
        ('a,b\n5, "1 234"\n6, "2 345"\n', {"thousands": " "}, [[5, 1234], [6, 2345]]),
        ("weight\n1,5\n2,5\n", {"decimal": ","}, [[1.5], [2.5]]),
        ('"weight, kg"\n1,5\n2,5\n', {"decimal": ","}, [[1.5], [2.5]]),
        ('"a","b"\n1,5\n2,5\n', {"decimal": ","}, [[1, 5], [2, 5]]),
    ],
)
def test_other_separators_of_numbers_with_commas(text, marks, rows):
    assert read(text, grammar=Grammar(**marks))[0].tolist() == rows


@pytest.mark.parametrize("marks", [{"thousands": ","}, {"decimal": ","}])
def test_a_header_of_several_cells_above_one_number_is_unclear(marks):
    name, _ = next(iter(marks.items()))
    said = refusal("age,income\n30,200\n40,300\n", grammar=Grammar(**marks))
    assert said.startswith("t: ',' divides the header into 'age' and 'income', and not '30,200'")
    assert f"leave out {name}=',' if ',' separates columns" in said
    assert "has a header but no rows" in refusal("age,income\n", grammar=Grammar(**marks))


@pytest.mark.parametrize(
    "text",
    [
        "time;value;a\n01.02.2024 10:00;30,5;1\n01.02.2024 10:00;31,5;7\n",
        "5 12:30\n6 12:31\n",
        "5 10:00 17:30\n6 11:00 18:30\n",
        "5 3:1.5 2:0.5\n6 1:2\n",
        "5 a:b\n",
        "x 1:2.5\n",
    ],
)
def test_what_is_no_libsvm_file(text):
    assert "LibSVM" not in refusal(text)


def test_quotes_keep_the_spaces_of_a_name():
    text = '" pad ",  b , "c" ," "\n1,2,3,4\n'
    assert read(text)[1].names == (" pad ", "b", "c", "")
    assert read(text, wanted='" pad "')[1].names == (" pad ",)
    assert read(text, wanted=[" pad ", "b"])[0].tolist() == [[1, 2]]
    with pytest.raises(DataError, match=r"no column 'pad'.*did you mean ' pad '"):
        read(text, wanted="pad")
