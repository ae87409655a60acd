"""The same numbers in every kind of container are the same rows, in the same type."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import lloydia
from lloydia import KMeans, MiniBatchKMeans, assign, k_means, kmeans_plusplus
from lloydia.metrics import silhouette_samples

pa = pytest.importorskip("pyarrow")

# Halves, so that half precision holds them as well.
F = (np.random.default_rng(0).integers(-20, 20, size=(30, 3)) / 2).astype("float32")
I16 = (2 * F[:, 1]).astype("int16")
MIXED = np.column_stack([F[:, 0], I16, F[:, 2] > 0]).astype("float32")
NAMES = list("abc")
DECIMALS = [Decimal(n).scaleb(-2) for n in range(-29, 61, 3)]


def pandas(rows=F, dtype=None):
    frame = pd.DataFrame(rows, columns=NAMES)
    return frame if dtype is None else frame.astype(dtype)


def polars():
    return pytest.importorskip("polars").DataFrame(F, schema=NAMES)


def polars_mixed():
    columns = {"a": F[:, 0], "b": I16, "c": F[:, 2] > 0}
    return pytest.importorskip("polars").DataFrame(columns)


def polars_of(kind):
    module = pytest.importorskip("polars")
    dtype = module.List(module.Float32) if kind == "list" else module.Array(module.Float32, 3)
    return module.DataFrame({"e": F.tolist()}, schema={"e": dtype})


def torch(dtype):
    module = pytest.importorskip("torch")
    return module.tensor(F).to(getattr(module, dtype))


def arrow():
    return pa.table(dict(zip(NAMES, F.T)))


SINGLE = {
    "big-endian": lambda: F.astype(">f4"),
    "half": lambda: F.astype("f2"),
    "big-endian half": lambda: F.astype(">f2"),
    "list of rows": lambda: list(F),
    "memoryview": lambda: memoryview(F),
    "tensor": lambda: torch("float32"),
    "half tensor": lambda: torch("float16"),
    "bfloat16 tensor": lambda: torch("bfloat16"),
    "list of tensors": lambda: list(torch("float32")),
    "list of bfloat16 tensors": lambda: list(torch("bfloat16")),
    "list of tensors with gradients": lambda: list(torch("float32").requires_grad_()),
    "pandas": pandas,
    "pandas half": lambda: pandas(dtype="float16"),
    "pandas big-endian": lambda: pandas(F.astype(">f4")),
    "pandas Float32": lambda: pandas(dtype="Float32"),
    "pandas float[pyarrow]": lambda: pandas(dtype="float[pyarrow]"),
    "pandas halffloat[pyarrow]": lambda: pandas(dtype=pd.ArrowDtype(pa.float16())),
    "polars": polars,
    "arrow": arrow,
    "arrow batch": lambda: arrow().to_batches()[0],
    "vectors in pandas": lambda: pd.DataFrame({"e": list(F)}),
    "vectors in pandas[pyarrow]": lambda: pd.DataFrame(
        {"e": pd.Series(list(F), dtype=pd.ArrowDtype(pa.list_(pa.float32())))}
    ),
    "vectors in arrow": lambda: pa.table({"e": list(F)}),
    "vectors of fixed size in arrow": lambda: pa.table(
        {"e": pa.array(list(F), pa.list_(pa.float32(), 3))}
    ),
    "vectors in polars": lambda: polars_of("list"),
    "vectors of fixed size in polars": lambda: polars_of("array"),
}
# Integers of at most 16 bits beside float32 are exact in float32.
MIXTURES = {
    "pandas": lambda: pd.DataFrame({"a": F[:, 0], "b": I16, "c": F[:, 2] > 0}),
    "pandas nullable": lambda: pd.DataFrame(
        {
            "a": pd.array(F[:, 0], dtype="Float32"),
            "b": pd.array(I16, dtype="Int16"),
            "c": pd.array(F[:, 2] > 0, dtype="boolean"),
        }
    ),
    "polars": polars_mixed,
    "arrow": lambda: pa.table({"a": F[:, 0], "b": I16, "c": F[:, 2] > 0}),
    "arrow vectors": lambda: pa.table({"e": list(MIXED[:, :2]), "c": F[:, 2] > 0}),
}
DOUBLE = {
    "list": F.tolist,
    "integers": lambda: (2 * F).astype("int16"),
    "big-endian integers": lambda: (2 * F).astype(">i4"),
    "unsigned": lambda: np.abs(F).astype("uint8"),
    "bool": lambda: F > 0,
    "objects": lambda: F.astype(object),
    "big-endian": lambda: F.astype(">f8"),
    "pandas and bool": lambda: pd.DataFrame({"a": F[:, 0].astype("f8"), "c": F[:, 2] > 0}),
    "pandas int32": lambda: pd.DataFrame({"a": F[:, 0], "b": I16.astype("int32")}),
    "pandas Int64": lambda: pandas(dtype="Float32").assign(d=pd.array(I16, dtype="Int64")),
    "pandas decimals": lambda: pd.DataFrame({"a": DECIMALS}),
    "pandas decimals[pyarrow]": lambda: pd.DataFrame(
        {"a": pd.Series(DECIMALS, dtype=pd.ArrowDtype(pa.decimal128(5, 2)))}
    ),
    "pandas categories": lambda: pd.DataFrame({"a": pd.Categorical(I16.astype(int)), "b": F[:, 0]}),
    "arrow decimals": lambda: pa.table({"a": DECIMALS, "b": F[:, 0]}),
    "bool tensor": lambda: torch("bool"),
    "integer tensor": lambda: torch("int32"),
}


def expected(given):
    """Return what NumPy makes of a container, in float64."""
    if hasattr(given, "to_pydict"):
        given = pd.DataFrame(given.to_pydict())
    return np.asarray(given, dtype=object if isinstance(given, pd.DataFrame) else None).astype("f8")


def fitted(X, **options):
    return KMeans(3, random_state=0, n_init=1, **options).fit(X)


def check(given, rows):
    """Compare everything that takes rows with what it gives for an array."""
    model, ours = fitted(rows), fitted(given)
    for found, wanted in [
        (ours.cluster_centers_, model.cluster_centers_),
        (ours.transform(given), model.transform(rows)),
        (k_means(given, 3, random_state=0)[0], model.cluster_centers_),
        (kmeans_plusplus(given, 3, random_state=0)[0], kmeans_plusplus(rows, 3, random_state=0)[0]),
        (assign(given, rows[:3])[0], assign(rows, rows[:3])[0]),
        (
            MiniBatchKMeans(3, random_state=0, n_init=1).fit(given).cluster_centers_,
            MiniBatchKMeans(3, random_state=0, n_init=1).fit(rows).cluster_centers_,
        ),
        (silhouette_samples(given, model.labels_), silhouette_samples(rows, model.labels_)),
    ]:
        assert found.dtype == wanted.dtype
        assert found.tobytes() == wanted.tobytes()
    assert ours.n_features_in_ == rows.shape[1]
    assert ours.score(given) == model.score(rows)


def test_a_view_of_memory_stays_float32_where_torch_is_loaded():
    pytest.importorskip("torch")
    assert fitted(memoryview(F)).cluster_centers_.dtype == np.float32


@pytest.mark.parametrize("kind", SINGLE)
def test_float32_stays_float32(kind):
    check(SINGLE[kind](), F)


@pytest.mark.parametrize("kind", MIXTURES)
def test_columns_that_are_exact_in_float32(kind):
    check(MIXTURES[kind](), MIXED)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DOUBLE)
def test_all_else_is_float64(kind):
    given = DOUBLE[kind]()
    check(given, expected(given))


def test_sparse_frames_stay_sparse_and_float32():
    columns = {name: pd.arrays.SparseArray(x, fill_value=0) for name, x in zip(NAMES, F.T)}
    model = fitted(pd.DataFrame(columns))
    assert model.cluster_centers_.tobytes() == fitted(sp.csr_array(F)).cluster_centers_.tobytes()
    assert model.cluster_centers_.dtype == np.float32
    assert model.feature_names_in_.tolist() == NAMES


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_names_of_frames_are_kept_and_compared(kind):
    frame = {"pandas": pandas, "polars": polars, "arrow": arrow}[kind]()
    model = fitted(frame)
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "a", "b"]] if kind != "arrow" else frame.select([2, 0, 1]))
    assert np.array_equal(model.predict(frame), model.labels_)


@pytest.mark.parametrize("kind", [name for name in SINGLE if name.startswith("vectors")])
def test_names_of_vectors_are_those_that_files_give(kind):
    assert fitted(SINGLE[kind]()).feature_names_in_.tolist() == ["e[0]", "e[1]", "e[2]"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (lambda: {"e": [[1.0, 2], [3.0], [4.0, 5]]}, "row 2, column 'e' holds a vector of 1 "),
        (
            lambda: {"e": [[1.0, 2], None, [4.0, 5]]},
            "row 2, column 'e' is None, and other rows are vec",
        ),
        (lambda: {"e": [[1.0, 2], [np.nan, 1], [4.0, 5]]}, "NaN"),
        (lambda: {"e": [[1.0, 2]] * 3, "e[1]": [1, 2, 3]}, r"two columns named 'e\[1\]'"),
        (lambda: {"e": [[1.0, 2], [3.0, 1], [4.0, 5]], "w": list("abc")}, "."),
        (lambda: {"e": [["x"], ["y"], ["z"]]}, "."),
        (
            lambda: {"d": pd.to_datetime(["2020-01-01"] * 3)},
            r"column 'd' holds datetime64\[.*\], not real numbers",
        ),
        (lambda: {"a": pd.array([1, None, 2], dtype="Int16")}, "NaN"),
        (lambda: {"a": pd.array([1, None, 2], dtype="Float32")}, "NaN"),
    ],
)
def test_frames_that_make_no_table_are_refused(frame, message):
    with pytest.raises((ValueError, TypeError), match=message):
        KMeans(2).fit(pd.DataFrame(frame()))


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[s]"])
def test_dates_are_no_numbers(kind):
    with pytest.raises(ValueError, match=r"X holds (date|time).*, not real numbers"):
        KMeans(2).fit(np.arange(6).reshape(3, 2).astype(kind))


def test_what_has_no_rows_of_numbers_is_refused():
    records = np.array([(1.0, 2.0), (3.0, 4.0)], dtype=[("a", "f4"), ("b", "f4")])
    with pytest.raises(ValueError, match=r"X holds .* not real numbers"):
        KMeans(2).fit(records)
    with pytest.raises(ValueError, match=r"X is a LazyFrame.*pass X.collect\(\)"):
        KMeans(2).fit(polars().lazy())
    with pytest.raises(ValueError, match=r"sparse: convert it by to_dense\(\)"):
        KMeans(2).fit(torch("float32").to_sparse())


@pytest.mark.parametrize("kind", [">f4", ">f8", ">i4", "f2", "bool", "uint8"])
def test_weights_and_starts_of_any_type(kind):
    weights, start = np.abs(F[:, 0]).astype(kind), F[:3].astype(kind)
    given = KMeans(3, init=start).fit(F, sample_weight=weights)
    plain = KMeans(3, init=start.astype("f8")).fit(F, sample_weight=weights.astype("f8"))
    assert given.cluster_centers_.tobytes() == plain.cluster_centers_.tobytes()


FRAMES = {
    "pandas Float32": lambda: pandas(dtype="Float32"),
    "pandas half": lambda: pandas(dtype="float16"),
    "polars": polars,
    "arrow": arrow,
    "arrow batch": lambda: arrow().to_batches()[0],
    "big-endian": lambda: F.astype(">f4"),
    "list of rows": lambda: list(F),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("columns", [None, "3,1"])
def test_blocks_of_any_kind(kind, columns):
    frame = FRAMES[kind]()
    source = lloydia.chunks(lambda: iter([frame, frame]), columns=columns, memory="2GB", block=7)
    X = source.load(source.plan(False, 1))
    rows = F if columns is None else F[:, [2, 0]]
    assert X.tobytes() == np.vstack([rows, rows]).tobytes()
    if hasattr(frame, "columns"):
        assert source.columns.names == (("a", "b", "c") if columns is None else ("c", "a"))


@pytest.mark.parametrize("columns", [None, "e[2],1"])
def test_blocks_of_vectors(columns):
    frame = pd.DataFrame({"e": list(F), "b": I16})
    source = lloydia.chunks(
        lambda: iter([frame, frame[:0], frame[:3]]), columns=columns, memory="2GB"
    )
    rows = np.column_stack([F, I16.astype("f4")])
    rows = (
        np.vstack([rows, rows[:3]]) if columns is None else np.vstack([rows, rows[:3]])[:, [2, 0]]
    )
    assert source.load(source.plan(False, 1)).tobytes() == np.ascontiguousarray(rows).tobytes()
    names = ("e[0]", "e[1]", "e[2]", "b")
    assert source.columns.names == (names if columns is None else ("e[2]", "e[0]"))
    other = pd.DataFrame({"e": list(F[:, :2]), "b": I16})
    source = lloydia.chunks(lambda: iter([frame, other]), columns=columns, memory="2GB")
    with pytest.raises(ValueError, match="a block has 3 features, and those before have 4"):
        source.load(source.plan(False, 1))


def test_text_in_blocks_is_named():
    frame = pd.DataFrame({"word": ["x", "y"], "b": [1, 2]})
    with pytest.raises(ValueError, match=r"column 1 \('word'\) holds text; choose"):
        lloydia.chunks(lambda: iter([frame]))


def test_blocks_of_float64_beside_bool():
    def frames():
        yield pd.DataFrame({"a": [1.5, 2], "b": [True, False]})
        yield pd.DataFrame({"a": pd.array([1, 3], dtype="Int64"), "b": [0, 1]})

    source = lloydia.chunks(frames, memory="2GB")
    assert source.load(source.plan(False, 1)).tolist() == [[1.5, 1], [2, 0], [1, 0], [3, 1]]


@pytest.mark.parametrize("kind", ["Float32", "float[pyarrow]", "float16"])
def test_dask_frames_stay_float32(kind):
    dd = pytest.importorskip("dask.dataframe")
    given = dd.from_pandas(pandas(dtype=kind), npartitions=3, sort=False)
    source = lloydia.chunks(given, memory="2GB")
    assert source.load(source.plan(False, 1)).tobytes() == F.tobytes()
    model = fitted(source)
    found = model.transform(given)
    assert found.dtype == np.float32
    assert np.asarray(found.compute()).tobytes() == model.transform(pandas()).tobytes()


@pytest.mark.parametrize("index", ["id", None, ["id", "b"]])
@pytest.mark.parametrize("batch", [False, True])
def test_the_index_of_pandas_in_an_arrow_table_is_no_feature(index, batch):
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"id": [1000, 5, 2000, 7], "b": [1, 2, 3, 4], "a": [0.0, 0, 9, 9]})
    frame = frame.set_index(index) if index else frame[["a"]].iloc[::-1]
    X = pa.Table.from_pandas(frame)
    X = X.to_batches()[0] if batch else X
    model = KMeans(2, random_state=0).fit(X)
    assert model.n_features_in_ == frame.shape[1]
    assert model.labels_.tolist() == KMeans(2, random_state=0).fit(frame).labels_.tolist()
    assert model.predict(X).tolist() == model.labels_.tolist()


def test_the_index_of_pandas_in_blocks_of_arrow_is_no_feature():
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"id": [1000, 5, 2000, 7], "b": [1.0, 2, 3, 4], "a": [0.0, 0, 9, 9]})
    table = pa.Table.from_pandas(frame.set_index("id")).select(["id", "b", "a"])
    for columns, own in ((None, ["b", "a"]), (["a"], ["a"])):
        X = lloydia.chunks(lambda: iter([table]), columns=columns)
        expected = KMeans(2, random_state=0).fit(frame[own].to_numpy())
        model = KMeans(2, random_state=0).fit(X)
        assert model.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()


NO_NUMBERS = {
    "structs": (lambda pa: pa.array([{"a": 1}, {"a": 2}]), "row 1, column 'y' is {'a': 1}, not a"),
    "nested": (lambda pa: pa.array([[[1.0]], [[2.0]]]), r"row 1, column 'y' is \[\[1.0\]\], not a"),
    "empty": (lambda pa: pa.array([[], []], pa.list_(pa.float64())), r"column 'y' is \[\], not a"),
    "words": (lambda pa: pa.array([["a"], ["b"]]), r"row 1, column 'y' is \['a'\], not a"),
    "text below": (lambda pa: pa.array(["1", "b"]), "row 2, column 'y' is 'b', not a number"),
    "union": (
        lambda pa: pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
        "column 'y' holds sparse_union.*, not real numbers",
    ),
    "dates": (lambda pa: pa.array([1, 2], pa.date32()), r"column 'y' holds datetime64\[D\]"),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_arrow_columns_that_hold_no_numbers_are_shown(kind):
    pa = pytest.importorskip("pyarrow")
    make, message = NO_NUMBERS[kind]
    table = pa.table({"x": [1.0, 2.0], "y": make(pa)})
    for X in (table, table.to_batches()[0]):
        with pytest.raises(ValueError, match=message):
            KMeans(1).fit(X)
    with pytest.raises(ValueError, match="init"):
        KMeans(2, init=table).fit(np.ones((3, 2)))


def test_one_arrow_column_that_holds_no_rows_is_refused():
    pa = pytest.importorskip("pyarrow")
    for column, message in (
        (pa.array([[1.0, 2.0], None]), "X: row 2 is None, and other rows are vectors"),
        (NO_NUMBERS["union"][0](pa), "X holds sparse_union"),
    ):
        with pytest.raises(ValueError, match=message):
            KMeans(1).fit(column)
    with pytest.raises(TypeError, match="X does not hold real numbers only"):
        KMeans(1).fit(NO_NUMBERS["structs"][0](pa))


def test_two_arrow_columns_of_one_name_are_refused():
    pa = pytest.importorskip("pyarrow")
    table = pa.table([pa.array([1.0, 2.0]), pa.array([3.0, 4.0])], names=["a", "a"])
    with pytest.raises(ValueError, match="X has two columns named 'a': rename one"):
        KMeans(1).fit(table)
