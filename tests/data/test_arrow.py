"""Parquet as other programs write it: an index of pandas, DECIMALs, columns of vectors."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import lloydia
from lloydia import KMeans
from lloydia.data.arrow import features_of
from lloydia.data.columns import DataError
from lloydia.data.files import read_table
from lloydia.data.labels import read_labels

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

E = np.random.default_rng(0).normal(size=(50, 4)).astype("float32")


def whole(path, columns=None):
    found = read_table(path, columns=columns)
    return found.X, found.names


def by_blocks(path, columns=None):
    source = lloydia.chunks(path, columns=columns, memory="2GB", block=7)
    return source.load(source.plan(False, 1)), source.columns.names


READERS = pytest.mark.parametrize("read", [whole, by_blocks], ids=lambda read: read.__name__)


def frame():
    return pd.DataFrame(
        {"id": [1000, 5, 2000, 7], "a": [0, 0, 9, 9.0], "year": [1, 2, 3, 4], "b": [1, 2, 3, 4.0]}
    )


INDICES = {
    "named": (frame().set_index("id"), ["a", "year", "b"]),
    "several": (frame().set_index(["id", "year"]), ["a", "b"]),
    "a range": (frame().rename_axis("a"), ["id", "a", "year", "b"]),
    "without a name": (frame().set_index(pd.Index([3, 1, 4, 1])), ["id", "a", "year", "b"]),
    "the name of a column": (
        frame().set_index(pd.Index([3, 1, 4, 1], name="a")), ["id", "a", "year", "b"]
    ),
    "one without a name": (
        frame().set_index(pd.MultiIndex.from_arrays([[1, 2, 3, 4], list("abcd")])),
        ["id", "a", "year", "b"],
    ),
}  # fmt: skip


@READERS
@pytest.mark.parametrize("case", INDICES)
def test_the_index_of_a_data_frame_is_no_feature(case, read, tmp_path):
    given, names = INDICES[case]
    try:
        given.to_parquet(tmp_path / "t.parquet")
    except ValueError as error:  # pandas refuses a level that is named like a column
        pytest.skip(str(error))
    X, found = read(tmp_path / "t.parquet")
    assert list(found) == names
    np.testing.assert_array_equal(X, frame()[names].to_numpy())


@READERS
def test_an_index_can_be_chosen_by_its_name(read, tmp_path):
    frame().set_index("id").to_parquet(tmp_path / "t.parquet")
    for columns in ("id,b", ["id", "b"]):
        X, names = read(tmp_path / "t.parquet", columns)
        assert list(names) == ["id", "b"]
        np.testing.assert_array_equal(X, frame()[["id", "b"]].to_numpy())
    assert read(tmp_path / "t.parquet", "1-3")[1] == ("a", "year", "b")


def test_the_index_of_files_in_a_folder(tmp_path):
    for i in range(3):
        frame().set_index("id").to_parquet(tmp_path / f"{i}.parquet")
    X, names = by_blocks(tmp_path)
    assert names == ("a", "year", "b")
    assert X.shape == (12, 3)


def test_the_index_of_labels(tmp_path):
    labels = pd.DataFrame({"label": ["x", "y", "x"]}, index=pd.Index([7, 8, 9], name="id"))
    labels.to_parquet(tmp_path / "l.parquet")
    assert read_labels(tmp_path / "l.parquet", 3).tolist() == ["x", "y", "x"]
    labels.reset_index().to_parquet(tmp_path / "l.parquet")
    with pytest.raises(DataError, match="has 2 columns; labels are one column"):
        read_labels(tmp_path / "l.parquet", 3)


def test_metadata_of_pandas_that_cannot_be_read_name_no_index(tmp_path):
    for damaged in (b"{", b"[]", b"\xff", b'{"index_columns": 3}', b'{"index_columns": [{}, 1]}'):
        table = pa.table({"a": [1.0, 2.0]}).replace_schema_metadata({b"pandas": damaged})
        pq.write_table(table, tmp_path / "t.parquet")
        assert whole(tmp_path / "t.parquet")[1] == ("a",)


def lists(kind):
    return pa.array(list(E), kind)


def ipc_extension(values):
    tensor = pa.fixed_shape_tensor(pa.float32(), [4])
    return pa.ExtensionArray.from_storage(tensor, values.cast(pa.list_(pa.float32(), 4)))


VECTORS = {
    "list": lists(pa.list_(pa.float32())),
    "large list": lists(pa.large_list(pa.float32())),
    "fixed size": lists(pa.list_(pa.float32(), 4)),
    "tensor": ipc_extension(lists(pa.list_(pa.float32()))),
}


@READERS
@pytest.mark.parametrize("kind", VECTORS)
def test_a_column_of_vectors_is_a_feature_for_each_number(kind, read, tmp_path):
    pq.write_table(pa.table({"e": VECTORS[kind]}), tmp_path / "t.parquet", row_group_size=13)
    X, names = read(tmp_path / "t.parquet")
    assert names == ("e[0]", "e[1]", "e[2]", "e[3]")
    assert X.dtype == np.float32
    assert X.tobytes() == E.tobytes()


def table_of_vectors(**more):
    return pa.table(
        {
            "age": pa.array(range(50), pa.int16()),
            "e": VECTORS["list"],
            "word": ["x"] * 50,
            "f": pa.array(list(E[:, :2]), pa.list_(pa.float32())),
            **more,
        }
    )


@READERS
@pytest.mark.parametrize(
    ("columns", "names", "taken"),
    [
        ("age,e,f", ["age", *(f"e[{i}]" for i in range(4)), "f[0]", "f[1]"], [6, *range(4), 0, 1]),
        ("1-2", ["age", *(f"e[{i}]" for i in range(4))], [6, *range(4)]),
        ("f[1],e[2],1", ["f[1]", "e[2]", "age"], [1, 2, 6]),
        (["e[3]", "age"], ["e[3]", "age"], [3, 6]),
        ("4", ["f[0]", "f[1]"], [0, 1]),
    ],
)
def test_vectors_beside_numbers(columns, names, taken, read, tmp_path):
    pq.write_table(table_of_vectors(), tmp_path / "t.parquet", row_group_size=13)
    X, found = read(tmp_path / "t.parquet", columns)
    assert list(found) == names
    every = np.column_stack([E, E[:, :2], np.arange(50)]).astype("float32")
    np.testing.assert_array_equal(X, every[:, taken])
    assert X.dtype == np.float32


def replaced(row, value):
    rows = [list(map(float, vector)) for vector in E]
    rows[row] = value
    return pa.array(rows, pa.list_(pa.float32()))


@READERS
@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (
            replaced(30, [1.0, 2.0]),
            r"31.*, column 1 \('e'\) holds a vector of 2 numbers, and .* first row has 4",
        ),
        (replaced(30, None), r"31.*, column 1 \('e'\) is missing; fill it in or remove the row"),
        (replaced(0, None), r"row 1.*, column 1 \('e'\) is missing"),
        (
            replaced(30, [1.0, 2.0, None, 3.0]),
            r"31.*, column 1 \('e'\): number 3 of the vector is missing",
        ),
        (replaced(30, [1.0, 2.0, np.nan, 3.0]), r"31.*, column 1 \('e\[2\]'\) is"),
        (pa.array([[]] * 50, pa.list_(pa.float32())), r"column 1 \('e'\) holds empty vectors"),
        (pa.array([["a"]] * 50), r"column 1 \('e'\) holds list<"),
    ],
)
def test_vectors_that_make_no_table_are_refused(vectors, message, read, tmp_path):
    pq.write_table(pa.table({"e": vectors}), tmp_path / "t.parquet", row_group_size=13)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "t.parquet")


@READERS
def test_names_of_vectors_that_are_those_of_columns_are_refused(read, tmp_path):
    table = table_of_vectors(**{"f[1]": pa.array(E[:, 0])})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"two columns named 'f\[1\]'; rename"):
        read(tmp_path / "t.parquet", "e")
    pq.write_table(table_of_vectors(), tmp_path / "t.parquet")
    for twice in ("e,e[1]", "2,e"):
        with pytest.raises(DataError, match=r"column 2 \('e\[[01]\]'\) is chosen twice"):
            read(tmp_path / "t.parquet", twice)


def test_a_model_of_vectors_takes_them_by_name(tmp_path):
    pq.write_table(table_of_vectors().select(["e"]), tmp_path / "t.parquet")
    source = lloydia.chunks(tmp_path / "t.parquet", memory="2GB")
    model = KMeans(3, random_state=0).fit(source)
    assert model.feature_names_in_.tolist() == [f"e[{i}]" for i in range(4)]
    assert (
        model.cluster_centers_.tobytes()
        == KMeans(3, random_state=0).fit(E).cluster_centers_.tobytes()
    )
    pq.write_table(table_of_vectors(), tmp_path / "more.parquet")
    again = lloydia.chunks(tmp_path / "more.parquet", columns=list(source.columns.names))
    np.testing.assert_array_equal(model.predict(again), model.labels_)


DECIMALS = [Decimal(n).scaleb(-2) for n in (57, -29, 7, 999_999_999, 0, 115)]


@READERS
@pytest.mark.parametrize("kind", ["decimal128", "decimal256", "decimal64", "decimal32", "vectors"])
def test_a_decimal_is_the_nearest_float64(kind, read, tmp_path):
    if not hasattr(pa, kind) and kind != "vectors":
        pytest.skip(f"pyarrow {pa.__version__} has no {kind}")
    expected = [[float(value)] for value in DECIMALS]
    if kind == "vectors":
        column = pa.array([[value] for value in DECIMALS], pa.list_(pa.decimal128(9 + 2, 2)))
    else:
        column = pa.array(DECIMALS, getattr(pa, kind)({"decimal32": 9}.get(kind, 18), 2))
    pq.write_table(pa.table({"d": column}), tmp_path / "t.parquet")
    X, _ = read(tmp_path / "t.parquet")
    assert X.dtype == np.float64
    assert X.tolist() == expected


@READERS
def test_a_decimal_of_many_digits_is_rounded_once(read, tmp_path):
    given = [Decimal("12345678901234567890123456789.123456789"), Decimal("9007199254740993.5")]
    pq.write_table(pa.table({"d": pa.array(given, pa.decimal128(38, 9))}), tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet")[0].tolist() == [[float(value)] for value in given]


def test_files_whose_types_differ_are_compared_as_they_are_read(tmp_path):
    column = {"int64": np.arange(5), "float64": np.arange(5) + 0.5, "decimal": DECIMALS[:5]}
    for i, values in enumerate(column.values()):
        pq.write_table(pa.table({"a": values}), tmp_path / f"{i}.parquet")
    X, _ = by_blocks(tmp_path)
    expected = [float(value) for values in column.values() for value in values]
    assert X.ravel().tolist() == expected
    pq.write_table(pa.table({"a": pa.array([1.0], pa.float32())}), tmp_path / "9.parquet")
    with pytest.raises(DataError, match=r"9.parquet holds float in column 'a'.* float32 and float"):
        by_blocks(tmp_path)
    pq.write_table(pa.table({"a": [[1.0]]}), tmp_path / "9.parquet")
    with pytest.raises(DataError, match=r"9.parquet holds vectors in column 'a', not numbers"):
        by_blocks(tmp_path)


def test_blocks_whose_types_differ_are_compared_as_they_are_read():
    def frames():
        yield pd.DataFrame({"a": [1, 2], "b": [3, 4]})
        yield pd.DataFrame({"a": [1.5, 2], "b": [1.5, 0]})
        yield np.array([[7, 8]], np.uint8)

    source = lloydia.chunks(frames, memory="2GB")
    assert source.dtype == np.float64
    X = source.load(source.plan(False, 1))
    assert X.tolist() == [[1, 3], [2, 4], [1.5, 1.5], [2, 0], [7, 8]]


def test_categories_that_are_numbers_are_numbers():
    kinds = pa.array([7, 9, 7, 8], pa.int16()).dictionary_encode()
    table = pa.table({"a": kinds, "b": pa.array([1, 2, 3, 4], pa.float32())})
    features = features_of(table.schema, None, "it", lambda names: table.select(names))
    rows = features.table_rows(table, "it")
    assert rows.dtype == np.float32
    assert rows.tolist() == [[7, 1], [9, 2], [7, 3], [8, 4]]
    table = pa.table({"a": pa.array(["x"]).dictionary_encode(), "n": pa.nulls(1)})
    with pytest.raises(DataError, match=r"'a'\), column 2 \('n'\) hold text and only missing val"):
        features_of(table.schema, None, "it", lambda names: table.select(names))


FRAMES = {
    "float32": lambda: pd.DataFrame(E),
    "nullable": lambda: pd.DataFrame(E).astype("Float32"),
    "arrow": lambda: pd.DataFrame(E).astype("float[pyarrow]"),
    "mixed": lambda: pd.DataFrame(
        {0: E[:, 0], 1: np.arange(50, dtype="int16"), 2: pd.array([True, False] * 25)}
    ),
    "int32 beside float32": lambda: pd.DataFrame({0: E[:, 0], 1: np.arange(50, dtype="int32")}),
    "int16 alone": lambda: pd.DataFrame({0: np.arange(50, dtype="int16")}),
    "float64 beside bool": lambda: pd.DataFrame({0: np.arange(50) / 7, 1: [True, False] * 25}),
    "decimals": lambda: pd.DataFrame({0: [Decimal(n).scaleb(-2) for n in range(50)], 1: E[:, 0]}),
    "vectors": lambda: pd.DataFrame({0: list(E), 1: np.arange(50, dtype="int16")}),
    "index": lambda: pd.DataFrame(E, index=pd.Index(range(50, 100), name="id")),
}


@READERS
@pytest.mark.parametrize("case", FRAMES)
def test_a_data_frame_and_its_file_are_the_same_rows(case, read, tmp_path):
    given = FRAMES[case]().rename(columns="c{}".format)
    given.to_parquet(tmp_path / "t.parquet")
    X, names = read(tmp_path / "t.parquet")
    model, same = (KMeans(3, random_state=0).fit(rows) for rows in (given, X))
    assert model.cluster_centers_.dtype == X.dtype
    assert model.cluster_centers_.tobytes() == same.cluster_centers_.tobytes()
    assert model.feature_names_in_.tolist() == list(names)


def test_columns_in_the_names_of_folders_are_told(tmp_path):
    frame = pd.DataFrame({"a": [0.0, 1, 8, 9], "b": [1, 1, 2, 2]})
    frame.to_parquet(tmp_path / "d", partition_cols=["b"])
    with pytest.warns(UserWarning, match=r"d: the values of b are in the names of folders, wh"):
        X = lloydia.chunks(tmp_path / "d")
    assert X.shape == (4, 1)
