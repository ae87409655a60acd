"""Arrays and frames of text and dates: only what docs/tables.md calls a number is one."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

import lloydia
from lloydia import KMeans, MiniBatchKMeans, assign, k_means_batched, kmeans_plusplus
from lloydia.metrics import davies_bouldin_score

A = np.array([[0, 0], [0, 1], [1, 0], [4, 4], [4, 5], [5, 4.0]])
ONES = np.ones(6)
UNDERSCORED = ["1", "2", "1_2", "4", "5", "6"]
DAY = np.datetime64("2020-01-01")


def polars():
    return pytest.importorskip("polars")


def arrow():
    return pytest.importorskip("pyarrow")


TEXTS = {
    "array": lambda: np.array([[text, "1"] for text in UNDERSCORED]),
    "bytes": lambda: np.array([[text, "1"] for text in UNDERSCORED]).astype("S"),
    "objects": lambda: np.array([[text, 1] for text in UNDERSCORED], dtype=object),
    "list": lambda: [[text, 1] for text in UNDERSCORED],
    "pandas": lambda: pd.DataFrame({"a": UNDERSCORED, "b": ONES}),
    "pandas objects": lambda: pd.DataFrame({"a": pd.Series(UNDERSCORED, dtype=object), "b": ONES}),
    "categories": lambda: pd.DataFrame({"a": pd.Categorical(UNDERSCORED), "b": ONES}),
    "polars": lambda: polars().DataFrame({"a": UNDERSCORED, "b": ONES}),
    "arrow": lambda: arrow().table({"a": UNDERSCORED, "b": ONES}),
    "vectors": lambda: arrow().table({"a": [["1_2", "3"]] * 6}),
}

PERIODS = pd.period_range("2024-01", periods=6, freq="M")


def unregistered():
    """Return the schema that Arrow reads from a file of periods where pandas is not imported."""
    field = arrow().field("a", arrow().int64(), metadata={"ARROW:extension:name": "pandas.period"})
    return arrow().schema([field])


DATES = {
    "objects": lambda: np.array([[DAY, 1]] * 6, dtype=object),
    "spans": lambda: np.array([[DAY - DAY, 1]] * 6, dtype=object),
    "list": lambda: [[DAY, DAY]] * 6,
    "zone": lambda: pd.DataFrame({"a": pd.date_range("2020", periods=6, tz="UTC")}),
    "zone and number": lambda: pd.DataFrame(
        {"a": pd.date_range("2020", periods=6, tz="UTC"), "b": ONES}
    ),
    "times": lambda: polars().DataFrame({"a": [datetime.time(5)] * 6, "b": ONES}),
    "arrow times": lambda: arrow().table({"a": [datetime.time(5)] * 6, "b": ONES}),
    "periods": lambda: pd.DataFrame({"a": PERIODS, "b": ONES}),
    "arrow periods": lambda: arrow().Table.from_pandas(pd.DataFrame({"a": PERIODS, "b": ONES})),
    "arrow periods, by metadata": lambda: arrow().table([[1] * 6], schema=unregistered()),
    "polars intervals": lambda: polars().from_pandas(
        pd.DataFrame({"a": pd.interval_range(0, 6), "b": ONES})
    ),
    "structs": lambda: polars().DataFrame({"a": [{"x": 1}] * 6, "b": ONES}),
}

CALLS = {
    "fit": KMeans(2).fit,
    "mini batches": MiniBatchKMeans(2).fit,
    "plusplus": lambda X: kmeans_plusplus(X, 2),
    "assign": lambda X: assign(X, A[:2]),
    "score": lambda X: davies_bouldin_score(X, [0, 0, 0, 1, 1, 1]),
    "predict": lambda X: KMeans(2).fit(A).predict(X),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_that_is_no_number_is_refused(kind, call):
    with pytest.raises(ValueError, match=r"1_2|column 'a' holds|names"):
        CALLS[call](TEXTS[kind]())


@pytest.mark.parametrize("kind", DATES)
@pytest.mark.parametrize("call", ["fit", "mini batches", "score"])
def test_dates_among_objects_are_refused(kind, call):
    with pytest.raises(ValueError, match=r"real number|column 'a' is {'x': 1}, not a real number"):
        CALLS[call](DATES[kind]())


DAYS = pd.date_range("2024-01-31", periods=6)
DAY_COLUMNS = {
    "dates": (DAYS, "datetime64"),
    "dates with a zone": (DAYS.tz_localize("UTC"), "Timestamp.*2024-01-31"),
    "spans": (DAYS - DAYS[0], "timedelta64"),
    "Python's dates": (pd.Series(list(DAYS.date), dtype=object), r"date\(2024, 1, 31\)"),
    "periods": (PERIODS, "is 2024-01, not a real number"),
}
FRAMES = {
    "pandas": lambda frame: frame,
    "arrow": lambda frame: arrow().Table.from_pandas(frame),
    "polars": lambda frame: polars().from_pandas(frame),
}
USES = {
    "fit": lambda frame: KMeans(2).fit(frame),
    "predict": lambda frame: KMeans(2).fit(pd.DataFrame({"a": ONES, "day": ONES})).predict(frame),
    "init": lambda frame: KMeans(6, init=frame).fit(A),
    "mini batches": lambda frame: MiniBatchKMeans(2).fit(frame),
    "chunks": lambda frame: KMeans(2).fit(lloydia.chunks(lambda: iter([frame]))),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("kind", DAY_COLUMNS)
def test_a_column_of_dates_is_named(kind, library, use):
    column, held = DAY_COLUMNS[kind]
    frame = FRAMES[library](pd.DataFrame({"a": ONES, "day": column}))
    with pytest.raises(
        ValueError, match=r"column 'day' |init\[0, 1\] is|column 2 \('day'\)"
    ) as error:
        USES[use](frame)
    assert "\n" not in str(error.value)
    if library == "pandas" and use == "fit":
        error.match(held)


def test_what_to_do_with_dates_is_said():
    advice = "convert it to numbers, such as days since a date, or leave it out"
    for X in (pd.DataFrame({"day": DAYS}), DAYS.to_numpy()[:, np.newaxis]):
        with pytest.raises(ValueError, match=advice):
            KMeans(2).fit(X)


@pytest.mark.parametrize("make", [np.array, np.ndarray.tolist, pd.DataFrame])
def test_complex_numbers_are_not_printed(make):
    with pytest.raises(
        ValueError, match=r"^Complex data|column 0 is \(1\+1j\), not a real"
    ) as error:
        KMeans(2).fit(make(np.full((600, 2), 1 + 1j)))
    assert len(str(error.value)) < 200


def test_a_file_of_periods_holds_dates(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "periods.parquet"
    pd.DataFrame({"a": ONES, "day": PERIODS}).to_parquet(path)
    with pytest.raises(ValueError, match=r"column 2 \('day'\) holds dates"):
        lloydia.chunks(path)


@pytest.mark.parametrize("kind", ["pandas", "pandas objects", "categories", "polars", "arrow"])
def test_the_first_text_is_named(kind):
    with pytest.raises(ValueError, match="row 3, column 'a' is '1_2', not a number"):
        KMeans(2).fit(TEXTS[kind]())


def test_members_of_a_batch_are_no_texts():
    with pytest.raises(ValueError, match="1_2"):
        k_means_batched(np.array([TEXTS["array"]()]), 2)


def test_texts_of_numbers_are_read():
    expected = KMeans(2, random_state=0).fit(A).cluster_centers_
    for X in (A.astype(str), A.astype(object), A.astype(str).astype(object), A.astype("S")):
        assert np.array_equal(KMeans(2, random_state=0).fit(X).cluster_centers_, expected)
    for X in (pd.DataFrame(A.astype(str)), pd.DataFrame(A.astype(object))):
        assert np.array_equal(KMeans(2, random_state=0).fit(X).cluster_centers_, expected)


def test_what_has_no_type_of_numpy_keeps_float32():
    X = A.astype(np.float32)
    tensor = arrow().Tensor.from_numpy(X)
    series = polars().Series(X, dtype=polars().Array(polars().Float32, 2))
    for rows in (tensor, series):
        model = KMeans(2, random_state=0).fit(rows)
        assert model.cluster_centers_.dtype == np.float32
        assert (
            model.cluster_centers_.tobytes()
            == KMeans(2, random_state=0).fit(X).cluster_centers_.tobytes()
        )


@pytest.mark.parametrize("make", [list, lambda X: list(map(list, X))])
def test_a_column_of_vectors_is_no_table(make):
    with pytest.raises(ValueError, match=r"one column of vectors: give numpy\.stack\(X\)"):
        KMeans(2).fit(pd.Series(make(A)).to_numpy())
    with pytest.raises(ValueError, match="one column of vectors"):
        KMeans(2).fit(arrow().array(A.tolist()))


@pytest.mark.parametrize("fill", [0, 5.0, np.nan])
def test_sparse_columns_of_any_fill_value(fill):
    frame = pd.DataFrame(
        {c: pd.arrays.SparseArray(A[:, j], fill_value=fill) for j, c in enumerate("ab")}
    )
    expected = KMeans(2, random_state=0).fit(A)
    assert np.array_equal(KMeans(2, random_state=0).fit(frame).labels_, expected.labels_)


def test_sparse_columns_of_several_types():
    frame = pd.DataFrame(
        {
            "a": pd.arrays.SparseArray([0, 1, 2, 3, 4, 5]),
            "b": pd.arrays.SparseArray([True, False] * 3),
        }
    )
    dense = frame.astype(float).to_numpy()
    model = KMeans(2, random_state=0)
    labels = model.fit(dense).labels_
    assert np.array_equal(model.fit(frame).labels_, labels)


def test_blocks_with_dates_that_are_not_chosen():
    for zone in (None, "UTC"):
        days = pd.date_range("2020", periods=6, tz=zone)
        frame = pd.DataFrame({"a": A[:, 0], "d": days, "b": A[:, 1]})
        source = lloydia.chunks(lambda frame=frame: iter([frame]), columns=["a", "b"])
        labels = KMeans(2, random_state=0).fit(source).labels_
        assert np.array_equal(labels, KMeans(2, random_state=0).fit(A).labels_)
        with pytest.raises(ValueError, match="column 'd' holds"):
            lloydia.chunks(lambda frame=frame: iter([frame]))


def test_a_frame_without_columns():
    with pytest.raises(ValueError, match="without columns"):
        KMeans(2).fit(pd.DataFrame(index=range(6)))


@pytest.mark.parametrize("vectors", [[[]] * 6, [A] * 6])
def test_vectors_that_are_no_features(vectors):
    with pytest.raises(ValueError, match=r"row 1, column 'v' is .*, not a real number"):
        KMeans(2).fit(pd.DataFrame({"v": vectors, "w": A[:, 0]}))
