"""Columns that errors propose."""

from __future__ import annotations

import io

import pytest

from lloydia.data.columns import DataError, choose
from lloydia.data.proposals import proposed
from lloydia.data.text import read_text


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["id", "age", "income"], "columns='2-3'"),
        (["PassengerId", "Survived", "Age"], "columns='2-3'"),
        (["customer_id", "age", "ID"], "columns='2'"),
        (["Unnamed: 0", "age", ""], "columns='2'"),
        (["uuid", "x1", "x2", "No."], "columns='2-3'"),
        (["idle", "paid", "width"], "columns='1-3'"),
        (["id"], "columns='1'"),
        (None, "columns='1-3'"),
    ],
)
def test_names_that_identify_rows_are_not_proposed(names, says):
    places = range(len(names) if names else 3)
    assert proposed(places, names) == says


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["1", "2", "3"], "columns='1'"),
        (["1001", "1002", "1003"], "columns='1'"),
        (["1", "2"], "columns='1-2'"),
        (["1", "3", "4"], "columns='1-2'"),
        (["1.5", "2.5", "3.5"], "columns='1-2'"),
    ],
)
def test_numbers_of_rows_are_not_proposed(cells, says):
    columns = [["5", "0", "7"], cells]
    assert proposed([0, 1], None, columns.__getitem__) == says


def test_nothing_is_proposed_where_there_is_nothing():
    assert proposed([], ["a"]) == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,name,age\n7,ann,33\n3,bob,44\n", "such as columns='3' ("),
        ("n,name,age\n1,ann,33\n2,bob,22\n3,joe,44\n", "such as columns='3' ("),
        ("id,name,age,rate\n7,ann,33,\n3,bob,44,n/a\n4,joe,9,5\n", "such as columns='3' ("),
        (
            "name,rate\nann,\nbob,5\n",
            "holds text, and no column holds numbers alone (the first text is 'ann' in row 1, "
            "line 2): fill in missing cells, and turn text into numbers.",
        ),
        (
            'name,age,income\nann,33,"1,200"\nbob,44,\njoe,9,"2,300"\n',
            "column 3 ('income') holds numbers such as '1,200': give thousands=','",
        ),
        (
            "time;value;a\n1.2.2024 10:00;30,5;1\n1.2.2024 11:00;31,5;7\n",
            "such as columns='3' (the first text is '1.2.2024 10:00' in row 1, line 2); "
            "column 2 ('value') holds numbers such as '30,5': give decimal=','",
        ),
        ("id,age,,sum\n7,33,,1\n4,44,,2\n", "leave it out with columns='2,4'"),
    ],
)
def test_a_text_proposes_features(text, says):
    with pytest.raises(DataError) as caught:
        read_text(io.BytesIO(text.encode()), "x.csv")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("Age,incme", "no column 'Age' (did you mean 'age'?) or 'incme' (did you mean 'income'?);"),
        ("Age", "; its columns are 'id', 'age', 'income', 'shoe size'."),
        ("SHOE_SIZE", "no column 'SHOE_SIZE' (did you mean 'shoe size'?);"),
        ("height", "no column 'height'; its columns are"),
        ("age income", "write a comma between columns: columns='age,income'."),
        ("id,age;income", "write a comma between columns: columns='id,age,income'."),
        ("2:3", "no column '2:3' (did you mean 2-3?);"),
        ("age,", "columns; write columns='age'."),
        (["Age"], "no column 'Age' (did you mean 'age'?);"),
    ],
)
def test_names_that_may_be_meant(wanted, says):
    with pytest.raises(DataError) as caught:
        choose(["id", "age", "income", "shoe size"], 4, wanted, "x.csv")
    assert says in str(caught.value)


def test_a_table_without_names_is_chosen_from_by_numbers():
    with pytest.raises(DataError, match="as it has no header; choose columns by their numbers"):
        choose(None, 3, "age", "x.csv")
