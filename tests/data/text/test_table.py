from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lloydia.data.columns import DataError
from lloydia.data.numbers import Grammar
from lloydia.data.text import TextForm, read_pairs, read_text

X = np.array([[1.5, -2.0, 3e10], [4.0, 5.25, 6.0]])


def read(text, header=None, decimal=".", thousands=None, n_rows=None, **options):
    stream = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    form = TextForm(header, Grammar(decimal, thousands), n_rows)
    return read_text(stream, "t", form=form, **options)


@pytest.mark.parametrize(
    "text",
    [
        "1.5,-2,3e10\n4,5.25,6\n",
        "1.5;-2;3e10\n4;5.25;6\n",
        "1.5\t-2\t3e10\n4\t5.25\t6\n",
        "1.5 -2 3e10\n4 5.25 6\n",
        "  1.5   -2 \t 3e10  \n 4\t5.25  6",
        "1.5,-2,3e10\r\n4,5.25,6\r\n\r\n\r\n",
        "# made by hand\n#\n\n1.5, -2, 3e10\n4 ,5.25 ,6\n   \n",
        '"1.5","-2","3e10"\n"4",5.25,6\n',
        "x,y,z\n1.5,-2,3e10\n4,5.25,6",
        "# note\n\n'x','y','z'\n1.5,-2,3e10\n\n4,5.25,6\n",
        '"a, b",y,z\n1.5,-2,3e10\n4,5.25,6\n',
        ",y,z\n1.5,-2,3e10\n4,5.25,6\n",
        "x,2019,z\n1.5,-2,3e10\n4,5.25,6\n",
        "x y z\n1.5 -2 3e10\n4 5.25 6\n",
        '"a b" "c" d\n1.5 -2 3e10\n4 5.25 6\n',
    ],
)
def test_layouts(text):
    found, columns = read(text)
    assert found.dtype == np.float64
    assert np.array_equal(found, X)
    assert columns.places == (0, 1, 2)


def test_header_is_kept_and_can_be_forced():
    assert read("a, b ,c\n1,2,3\n")[1].names == ("a", "b", "c")
    assert read("1,2,3\n4,5,6\n")[1].names is None
    forced, columns = read("2019,2020\n1,2\n", header=True)
    assert columns.names == ("2019", "2020")
    assert forced.tolist() == [[1, 2]]
    assert read("1,x\n2,y\n", header=False, wanted="1")[0].tolist() == [[1], [2]]


def test_a_single_column_with_a_header_of_two_words():
    found, columns = read("petal length\n1\n2\n", suffix=".csv")
    assert (columns.names, found.tolist()) == (("petal length",), [[1], [2]])


def test_tsv_keeps_white_space_within_cells():
    assert read("a b\tc\n1\t2\n", suffix=".tsv")[1].names == ("a b", "c")


def test_columns_by_name_number_and_range():
    text = "a,word,c,d,2\n1,x,3,4,5\n6,y,8,9,10\n"
    assert read(text, wanted="d,a")[0].tolist() == [[4, 1], [9, 6]]
    assert read(text, wanted="3-4,1")[0].tolist() == [[3, 4, 1], [8, 9, 6]]
    assert read(text, wanted="2")[0].tolist() == [[5], [10]]  # a name beats a number
    assert read(text, wanted=["c"])[0].tolist() == [[3], [8]]


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("1,a", "column 1 ('a') is chosen twice"),
        ("b", "2 columns are named 'b'; choose one by its number"),
        ("0", "'0' is outside its columns 1 to 3"),
        ("3-2", "columns='3-2': the range runs backwards; write 2-3"),
        ("2-4", "'2-4' is outside its columns 1 to 3"),
        ("", "there is no column ''"),
    ],
)
def test_bad_choices(wanted, says):
    with pytest.raises(DataError) as caught:
        read("a,b,b\n1,2,3\n", wanted=wanted)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n# x\n1,2\n", "row 1 (line 2) has 1 cell where the first row has 2"),
        ("1,2\n\n\n3,4\n5,oops\n", "row 3 (line 5), column 2 is 'oops', not a number"),
        ("#\n1,2\n3,4\n5,\n", "row 3 (line 4), column 2 is missing"),
        ('a,b\n"1\n",2\n3,x\n4,5\n', "row 2 (line 4), column 2 ('b') is 'x', not a number"),
        ("1,5;2,5\n3,5;4,5\n", "'1,5'"),
        ("a,b,c,d\n1,x,2,y\n3,z,4,w\n", "('b'), column 4 ('d') hold text; choose numeric columns, "
         "such as columns='1,3'"),
        ("a,b\nx,y\n", "no column holds numbers alone"),
        ("1,2\n3,\0\n", "not a number"),
    ],
)  # fmt: skip
def test_errors_name_the_place(text, says):
    with pytest.raises(DataError) as caught:
        read(text)
    assert says in str(caught.value)


def test_bad_cells_beyond_the_sample_are_found():
    lines = [f"{i},{i}\n" for i in range(5000)]
    lines[4321] = "1,bad\n"
    with pytest.raises(DataError, match=r"row 4322 \(line 4323\), column 2 \('b'\) is 'bad'"):
        read("a,b\n" + "".join(lines))
    lines[4321] = "1,nan\n"
    with pytest.raises(DataError, match=r"row 4322 \(line 4323\), column 2 \('b'\) is NaN"):
        read("a,b\n" + "".join(lines))


tables = st.integers(1, 5).flatmap(
    lambda d: st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=d, max_size=d),
        min_size=1,
        max_size=8,
    )
)


@given(
    tables,
    st.sampled_from([",", ";", "\t", " "]),
    st.booleans(),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_every_table_reads_back(rows, delimiter, header, quoting, end):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=end)
    if header:
        writer.writerow([f"c{j}" for j in range(len(rows[0]))])
    writer.writerows([[repr(value) for value in row] for row in rows])
    found, columns = read(text.getvalue())
    assert found.tobytes() == np.array(rows).tobytes()
    assert (columns.names is not None) == header


def test_pairs_ignore_line_breaks_and_comments():
    text = io.BytesIO(b"# samples\n1 2 3\n4, 5\n\n6\n")
    assert read_pairs(text, "t").tolist() == [[1, 2], [3, 4], [5, 6]]


def test_a_finite_table_whose_sum_overflows_is_accepted():
    assert read("1e308,1e308\n1e308,1e308\n")[0].max() == 1e308
