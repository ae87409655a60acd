"""When a first row is a header; no row of data is dropped by a guess."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest

from lloydia.data.columns import DataError
from lloydia.data.labels import read_labels
from lloydia.data.models import read_centers
from lloydia.data.text import TextForm, read_text

A = [[0, 0], [0, 1], [1, 0], [4, 4], [4, 5], [5, 4]]
LATE = "5,7\n" + "3.0,4.50\n" * 300


def read(text, header=None, wanted=None, n_rows=None):
    """Return the number of rows, the names, and what is warned of."""
    form = TextForm(header, n_rows=n_rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        X, columns = read_text(io.BytesIO(text.encode()), "t", form=form, wanted=wanted)
    return len(X), columns.names, [str(warning.message) for warning in caught]


def csv(rows, header=None):
    lines = [",".join(map(str, row)) for row in ([header] if header else []) + rows]
    return "\n".join(lines) + "\n"


HEADERS = {
    "0..d-1": csv(A, [0, 1]),
    "0..d-1 over fractions": csv([[0.5, 1.25], [2.5, 3.5]], [0, 1]),
    "0..d-1 with an index": ",0,1\n0,0,0\n1,0,1\n2,1,0\n",
    "0..d-1 beside a word": "id,0,1\n7,0,0\n8,0,1\n",
    "V1..Vd": csv(A, ["V1", "V2"]),
    "0 with an index": ",0\n0,5\n1,6\n",
    "0 over fractions": "0\n5.0\n2.5\n",
    "whole over 3.0": csv([[3.0, 4.5], [2.0, 1.0]], [1, 2]),
    "quoted": '"5","7"\n5,6\n7,8\n',
    "dates": "2019-01-01,2019-01-02\n1,2\n3,4\n",
    "percentiles": "10%,50%\n1,2\n3,4\n",
    "ordinals": "1st,2nd\n1,2\n3,4\n",
    "years beside a word": "id,2019,2020\n1,5,6\n2,5,7\n",
}

DATA = {
    "few": "1,2\n3,4\n5,7\n",
    "first row whole, near": "1,2\n3.5,4.5\n0.5,1.5\n",
    "origin": "0,0\n0.5,0.25\n",
    "initial state": "1,0\n0.9951,0.0998\n0.9803,0.1986\n",
    "mixed kinds": "1.5,-2,3e10\n4,5.25,6\n",
    "one row": "0,1\n",
    "one cell": "0\n",
    "quotes everywhere": '"5","7"\n"5","6"\n',
    "years below": "2019,2020\n2021,2022\n",
}

AMBIGUOUS = {
    "years over whole": csv([[5, 6, 7], [7, 8, 9]], [2019, 2020, 2021]),
    "fractions over fractions": csv([[0.1, 0.2, 0.3]] * 2, ["400.0", "400.5", "401.0"]),
    "far from all below": csv([[0.1, 0.2], [0.7, 0.5]], ["400.0", "400.5"]),
    "fractions over whole": csv([[3, 4], [2, 1]], ["400.5", "410.5"]),
    "large and first": "1e+06,2.5e+06\n5,6\n7,8\n",
    "years over fractions": csv([[0.1, 0.2], [0.4, 0.5]], [2019, 2020]),
    "wavelengths over fractions": csv([[0.1, 0.2, 0.4], [0.4, 0.5, 0.3]], [400, 410, 420]),
    "an outlier over fractions": csv([[0.5, 0.25], [0.1, 0.2]], [10, 20]),
    "a single 0": "0\n5\n6\n",
    "a single 0 over fractions": "0\n0.5\n0.25\n",
    "1..d": csv([[7, 1, 4], [5, 7, 7]], [1, 2, 3]),
    "many that increase": csv([[3, 1, 4, 1, 5]] * 2, [2, 3, 5, 8, 13]),
    "counts on": csv([[3, 4, 5], [6, 7, 8]], [0, 1, 2]),
    "of its kind far below": LATE + "7,8\n",
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers(name):
    text = HEADERS[name]
    n, names, warned = read(text)
    assert n == text.count("\n") - 1
    assert names == tuple(cell.strip('"') for cell in text.splitlines()[0].split(","))
    assert len(warned) <= 1
    assert read(text, header=True) == (n, names, [])


@pytest.mark.parametrize("name", DATA)
def test_data(name):
    assert read(DATA[name]) == (DATA[name].count("\n"), None, [])


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_could_be_a_header_is_data_with_a_warning(name):
    text = AMBIGUOUS[name]
    n, names, (warned,) = read(text)
    assert (n, names) == (text.count("\n"), None)
    for part in ("is read as a row of data", "header=True reads it as one", "header=False"):
        assert part in warned
    assert "--" not in warned
    assert read(text, header=False) == (n, None, [])
    assert read(text, header=True)[0] == n - 1


def test_a_header_of_numbers_is_told():
    (warned,) = read(HEADERS["0..d-1"])[2]
    assert "(0, 1) is taken for a header" in warned
    assert "header=False reads it as a row of data" in warned


def test_the_first_row_taken_back_is_whole():
    form = TextForm()
    with pytest.warns(UserWarning, match="is read as a row"):
        X, _ = read_text(io.BytesIO((LATE + "7,8\n").encode()), "t", form=form)
    assert X[0].tolist() == [5, 7]
    assert X[1].tolist() == [3.0, 4.5]
    assert X[-1].tolist() == [7, 8]


def test_names_that_are_asked_for_make_a_header():
    text = csv(A, [2019, 2020])
    assert read(text, wanted=["2020", "2019"])[:2] == (6, ("2020", "2019"))
    assert read(text, wanted='"2019"')[:2] == (6, ("2019",))


@pytest.mark.parametrize("first", ["n.d.,5", "12_3,4", "A12,5.0"])
def test_a_row_with_a_word_among_numbers_is_not_dropped(first):
    with pytest.raises(DataError, match="cannot tell whether the first row is a header"):
        read(f"{first}\n3,6\n4,7\n")


@pytest.mark.parametrize(("first", "n", "k"), [("0,1", 2, 2), ("0,1", 3, 3), ("5,6", 2, 2)])
def test_the_count_of_centres_tells(tmp_path, first, n, k):
    path = tmp_path / "centers.csv"
    path.write_text(f"{first}\n5,6\n7,8\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centers, names = read_centers(str(path), "float64", k)
    assert centers.shape == (n, 2)
    assert (names is None) == (n == 3)


@pytest.mark.parametrize(
    ("text", "n", "labels"),
    [
        ("0\n2\n1\n", 2, [2, 1]),  # pandas writes 0 above a series without a name
        ("label\n2\n1\n", 2, [2, 1]),
        ('"7"\n2\n1\n', 2, [2, 1]),
        ("7\ncat\ndog\n", 2, ["cat", "dog"]),
        ("class\ncat\ndog\n", 2, ["cat", "dog"]),
        ("0\n2\n1\n", 3, [0, 2, 1]),
        ("cat\ndog\ncat\n", 3, ["cat", "dog", "cat"]),
        ("#1\n#2\n#1\n", 3, ["#1", "#2", "#1"]),
    ],
)
def test_headers_of_labels(tmp_path, text, n, labels):
    (tmp_path / "l.csv").write_text(text)
    assert read_labels(tmp_path / "l.csv", n).tolist() == labels


@pytest.mark.parametrize("text", ["5\n2\n1\n", "cat\ndog\ncat\n", "2\n2\n2\n"])
def test_no_label_is_dropped_by_a_guess(tmp_path, text):
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(DataError, match="holds 3 labels for the 2 rows"):
        read_labels(tmp_path / "l.csv", 2)


def test_a_table_as_pandas_writes_it():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    for d in (2, 5):
        for X in (rng.normal(size=(20, d)), rng.integers(0, 9, size=(20, d))):
            assert read(pandas.DataFrame(X).to_csv(index=False))[0] == 20
            assert read(pandas.DataFrame(X).to_csv())[0] == 20
            assert (
                read(pandas.DataFrame(X).to_csv(index=False, header=False), header=False)[0] == 20
            )
        years = pandas.DataFrame(X.astype(float), columns=range(2000, 2000 + d))
        assert read(years.to_csv(index=False)) == (20, tuple(map(str, years)), [])
