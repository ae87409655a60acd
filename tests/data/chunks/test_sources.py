"""Every kind of source gives the same rows, and says where something is wrong."""

from __future__ import annotations

import os
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import lloydia
from lloydia import KMeans, MiniBatchKMeans
from lloydia.data.chunks.reader import Reader
from lloydia.data.columns import DataError
from lloydia.metrics import silhouette_score
from tight import for_fit, tight

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = np.random.default_rng(0).normal(size=(1000, 3)).astype("float32")
NAMES = ["a", "b", "c"]
# Rows of each block, with two that have none.
CUTS = [0, 0, 137, 400, 400, 1000]


def blocks(rows=X):
    return [rows[a:b] for a, b in pairwise(CUTS)]


def table(rows):
    return pa.table(dict(zip(NAMES, rows.T)))


def npy(folder):
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def fortran(folder):
    np.save(folder / "f.npy", np.asfortranarray(X))
    return folder / "f.npy"


def memmap(folder):
    return np.load(npy(folder), mmap_mode="r")


def parquet(folder):
    pq.write_table(table(X), folder / "x.parquet", row_group_size=130)
    return str(folder / "x.parquet")


def parquet_folder(folder):
    for i, rows in enumerate(blocks()):
        (folder / "parts" / "sub").mkdir(parents=True, exist_ok=True)
        pq.write_table(table(rows), folder / "parts" / f"part-{i}.parquet")
    (folder / "parts" / "_SUCCESS").write_bytes(b"")
    return folder / "parts"


def zarr(folder):
    module = pytest.importorskip("zarr")
    module.open_group(folder / "x.zarr", mode="w").create_array("X", data=X, chunks=(90, 2))
    return folder / "x.zarr"


def hdf5(folder):
    with pytest.importorskip("h5py").File(folder / "x.h5", "w") as file:
        file["data"], file["other"] = X, np.arange(3)
    return folder / "x.h5"


def iterable(folder):
    return lambda: iter(blocks())


def frames(folder):
    return lambda: (pd.DataFrame(rows, columns=NAMES) for rows in blocks())


def dask_array(folder):
    return pytest.importorskip("dask.array").from_array(X, chunks=(170, 2))


def dask_array_of_unknown_lengths(folder):
    array = dask_array(folder)
    return array[array[:, 0] > -100]


def dask_frame(folder):
    pytest.importorskip("dask.dataframe")
    from dask.dataframe import from_pandas

    return from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=6, sort=False)


SOURCES = [
    *(npy, fortran, memmap, parquet, parquet_folder, zarr, hdf5, iterable, frames),
    *(dask_array, dask_array_of_unknown_lengths, dask_frame),
]


@pytest.mark.parametrize("made", SOURCES, ids=lambda made: made.__name__)
def test_all_kinds_give_the_same_rows(made, tmp_path):
    source = lloydia.chunks(made(tmp_path), columns="3,1", memory="2GB")
    assert source.shape == (1000, 2)
    assert source.dtype == np.float32
    for rows in (1, 64, 1000) if made is npy else (97,):
        reader = Reader(source, rows)
        wanted = range(len(reader.lengths))
        found = [block.copy() for _, block in reader.blocks(wanted)]
        np.testing.assert_array_equal(np.vstack(found), X[:, [2, 0]])
        # Some blocks, not all of them beside each other.
        for i, block in reader.blocks([i for i in (2, 3, 7) if i in wanted]):
            np.testing.assert_array_equal(block, found[i])


@pytest.mark.parametrize("made", [npy, parquet, iterable], ids=lambda made: made.__name__)
def test_fits_of_sources(made, tmp_path):
    model = KMeans(4, random_state=0)
    labels = model.fit(X).labels_
    found = model.fit(tight(made(tmp_path), for_fit(model), 2, block=97)).labels_
    np.testing.assert_array_equal(found, labels)


def test_types_are_those_of_rows_in_memory(tmp_path):
    for given, expected in (("float16", "f4"), ("int32", "f8"), (">f4", "f4"), ("bool", "f8")):
        assert lloydia.chunks(X.astype(given), memory="2GB").dtype == np.dtype(expected)
    mixed = pa.table({"a": X[:, 0], "b": np.arange(1000, dtype="int64")})
    pq.write_table(mixed, tmp_path / "m.parquet")
    source = lloydia.chunks(tmp_path / "m.parquet", memory="2GB")
    assert source.dtype == np.float64
    assert source.astype("float32").dtype == np.float32


def test_names_are_those_of_the_features(tmp_path):
    source = lloydia.chunks(parquet(tmp_path), columns=["c", "a"], memory="2GB")
    model = KMeans(2, random_state=0).fit(source)
    assert model.feature_names_in_.tolist() == ["c", "a"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(lloydia.chunks(parquet(tmp_path), columns="a,b", memory="2GB"))
    with pytest.raises(ValueError, match="X has 3 features, but KMeans is expecting 2"):
        model.predict(lloydia.chunks(X, memory="2GB"))


def with_nan(row, column):
    wrong = X.copy()
    wrong[row, column] = np.nan
    return wrong


def parquet_with_null(folder):
    rows = table(X).to_pandas()
    rows.loc[777, "b"] = None
    pq.write_table(pa.Table.from_pandas(rows), folder / "n.parquet", row_group_size=300)
    return folder / "n.parquet"


def nan_in_block_5(folder):
    return lambda: blocks(with_nan(500, 1))


def infinite(folder):
    return lambda: blocks(X * np.float32(1e39))


READING = [
    (nan_in_block_5, r"block 5, row 101 \(row 501 of all\), column 2 is NaN"),
    (lambda f: with_nan(999, 2), r"the array: row 1,000, column 3 is NaN"),
    (parquet_with_null, r"row group 3, row 178 \(row 778 of all\), column 2 \('b'\) is missing"),
    (infinite, r"is (-?)inf; remove the row"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(("made", "message"), READING)
def test_values_that_are_not_finite_are_named(made, message, tmp_path):
    with pytest.raises(DataError, match=message):
        KMeans(2).fit(lloydia.chunks(made(tmp_path), memory="2GB"))


def other_type(folder):
    path = parquet_folder(folder)
    pq.write_table(table(X.astype("float64")), path / "part-3.parquet")
    return path


def other_columns(folder):
    path = parquet_folder(folder)
    pq.write_table(table(X).drop_columns(["b"]), path / "part-3.parquet")
    return path


def more_columns(folder):
    path = parquet_folder(folder)
    pq.write_table(table(X).append_column("z", [X[:, 0]]), path / "part-3.parquet")
    return path


def no_zarr(folder):
    pytest.importorskip("zarr")
    (folder / "x.zarr").mkdir()
    return folder / "x.zarr"


OPENING = [
    (
        more_columns,
        "part-3.parquet has a column 'z' that .*part-0.parquet does not have: choose",
    ),
    (no_zarr, "x.zarr is damaged or no Zarr array"),
    (other_type, "part-3.parquet holds double in column 'a', and .*part-0.parquet holds float"),
    (other_columns, "part-3.parquet has no column 'b', and .*part-0.parquet has one"),
    (lambda f: f, "is a folder without .parquet files"),
    (lambda f: f / "gone.npy", "no such file"),
    (lambda f: "", "'' is not a path: name a file or a folder"),
    (lambda f: None, "None is not a path"),
    (lambda f: list, "is empty: 0 blocks without rows"),
    (lambda f: lambda: [X[0]], r"block 1 has shape \(3,\); rows have two dimensions"),
    (lambda f: lambda: 3, "returned int, not an iterator"),
    (lambda f: X[0], r"has shape \(3,\); a table has two dimensions"),
    (lambda f: X[:0], r"is empty: its shape is \(0, 3\)"),
    (lambda f: X.astype(complex), "holds complex64, not real numbers|holds complex128, not real"),
    (lambda f: 3, "cannot read int by blocks"),
    (lambda f: pd.DataFrame(X, columns=NAMES), "cannot read DataFrame by blocks.* to fit without"),
    (lambda f: sp.csr_matrix(X), "cannot read csr_matrix by blocks.* to fit without"),
]


@pytest.mark.parametrize(("made", "message"), OPENING)
def test_what_cannot_be_read_is_refused(made, message, tmp_path):
    with pytest.raises(DataError, match=message):
        lloydia.chunks(made(tmp_path), memory="2GB")


@pytest.mark.parametrize("columns", [["a"], [1, 2], (0, 1), np.array([1, 2]), []], ids=repr)
@pytest.mark.parametrize("made", [lambda f: X, lambda f: blocks, npy], ids=["X", "blocks", "npy"])
def test_names_are_refused_where_there_are_none(made, columns, tmp_path):
    message = "has no names of columns: instead of columns=.* give their numbers"
    with pytest.raises(DataError, match=message):
        lloydia.chunks(made(tmp_path), columns=columns, memory="2GB")


def test_what_is_no_choice_of_columns_is_refused(tmp_path):
    with pytest.raises(DataError, match="columns=5 must be a text such as 'a,b,3-5', or a seq"):
        lloydia.chunks(npy(tmp_path), columns=5, memory="2GB")


def test_an_iterator_that_is_the_same_each_time_is_refused():
    blocks = iter([X[:600], X[600:]])
    source = lloydia.chunks(lambda: blocks, memory="2GB")
    with pytest.raises(
        DataError, match=r"2 blocks at first, and none .*: .* a new iterator at each"
    ):
        list(source.rows_from(0))


def test_columns_beside_what_is_chosen_may_differ(tmp_path):
    source = lloydia.chunks(more_columns(tmp_path), columns=NAMES, memory="2GB")
    np.testing.assert_array_equal(np.concatenate([*source.rows_from(0)])[400:1400], X)
    assert repr(source).endswith(f"parts: {source.shape[0]:,} rows of 3 features, float32>")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (np.ones((9, 2), "float32"), "block 6 has 2 columns, and those before have 3"),
        (np.ones((9, 3)), "block 6 holds float64, and those before hold float32"),
    ],
)
def test_blocks_that_differ_are_named(other, message):
    with pytest.raises(DataError, match=message):
        KMeans(2).fit(lloydia.chunks(lambda: [*blocks(), other], memory="2GB"))


def frame(rows, names=NAMES):
    return pd.DataFrame(rows, columns=names).assign(note="text")


def test_columns_of_frames_that_are_not_chosen_may_hold_text():
    model = KMeans(3, random_state=0)
    expected = clone(model).fit(X[:, :2])
    source = lloydia.chunks(lambda: map(frame, blocks()), columns="a,b", memory="2GB")
    assert source.dtype == np.float32
    assert model.fit(source).cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()


def test_frames_with_columns_in_another_order_are_refused():
    other = pd.DataFrame(X[:9], columns=NAMES[::-1])
    source = lloydia.chunks(
        lambda: [pd.DataFrame(X, columns=NAMES), other[:0], other], memory="2GB"
    )
    with pytest.raises(DataError, match=r"block 3 has the columns c, b, a, and .* a, b, c"):
        KMeans(3).fit(source)


def test_partitions_of_frames_may_hold_text_beside_what_is_chosen():
    dd = pytest.importorskip("dask.dataframe")
    frames = dd.from_pandas(frame(X), npartitions=3)
    source = lloydia.chunks(frames, columns="a,b", memory="2GB")
    assert source.load(source.plan(False, 1)).tobytes() == X[:, :2].tobytes()
    with pytest.raises(DataError, match=r"NumPy.s numbers|not real numbers"):
        lloydia.chunks(frames, memory="2GB")


@pytest.mark.parametrize("labels", [[0, 1, 2], [1999, 1998, 1997]])
def test_frames_with_numbers_as_labels_in_another_order_are_refused(labels):
    first, other = (pd.DataFrame(X, columns=names) for names in (labels, labels[::-1]))
    with pytest.raises(DataError, match=f"block 2 has the columns {labels[2]}, {labels[1]}"):
        KMeans(3).fit(lloydia.chunks(lambda: [first, other], memory="2GB"))
    unnamed = other.set_axis(range(3), axis=1)
    assert KMeans(3).fit(lloydia.chunks(lambda: [first, unnamed], memory="2GB")).n_iter_ > 0


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "coo_matrix"])
def test_sparse_blocks_are_refused(kind):
    sparse = getattr(sp, kind)(X)
    for made, i in (([sparse, sparse], 1), ([X, sparse], 2)):
        with pytest.raises(DataError, match=rf"block {i} is sparse, a {kind}: give dense"):
            lloydia.chunks(lambda made=made: made, memory="2GB")


@pytest.mark.parametrize("library", ["arrow", "bfloat16"])
def test_blocks_of_other_libraries(library):
    if library == "arrow":
        block = pytest.importorskip("pyarrow").Tensor.from_numpy(X)
    else:
        block = pytest.importorskip("torch").from_numpy(X).bfloat16()
    source = lloydia.chunks(lambda: [block], memory="2GB")
    found = KMeans(3, random_state=0).fit(source)
    assert source.dtype == np.float32
    assert found.inertia_ == KMeans(3, random_state=0).fit(block).inertia_


class Changing:
    """Blocks that are others from a pass on."""

    def __init__(self, later, passes):
        self.later, self.left = later, passes

    def __call__(self):
        self.left -= 1
        return blocks() if self.left >= 0 else self.later


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (blocks()[:-1], "changed while it was read: it has 400 rows, and had 1,000"),
        ([], "5 blocks at first, and none the next time"),
        ([*blocks(), X[:1]], "more than 5 blocks"),
        ([*blocks()[:-1], X[400:-1]], "it has 999 rows, and had"),
        (blocks(X[::-1]), "rows 1 to 97 have other values than before"),
        (blocks(X + np.float32(1e-3)), "rows 1 to 97 have other values than before"),
    ],
)
@pytest.mark.parametrize("passes", [2, 6])
def test_a_source_that_changes_is_found_out(later, message, passes):
    model = KMeans(3, random_state=0, init="first")
    source = tight(Changing(later, passes), for_fit(model), block=97)
    with pytest.raises(DataError, match=message):
        model.fit(source)


def test_a_file_that_is_written_to_is_found_out(tmp_path):
    path = npy(tmp_path)
    model = KMeans(3, random_state=0)
    source = tight(path, for_fit(model), block=97)
    reader = Reader(source, 97)
    list(reader.blocks(range(11)))
    os.utime(path, ns=(1, 1))
    with pytest.raises(DataError, match="its modification time is another"):
        list(reader.blocks(range(11)))


def test_too_little_memory_is_refused_with_what_is_needed():
    model = KMeans(3)
    source = lloydia.chunks(X, memory="10MB")
    with pytest.raises(
        MemoryError, match=r"needs at least .* give memory='(\d+)MB' or more"
    ) as told:
        model.fit(source)
    needed = str(told.value).rsplit("'", 2)[1]
    model.fit(lloydia.chunks(X, memory=needed))


def test_mini_batches_refuse_chunks_and_predict_them():
    source = lloydia.chunks(X, memory="2GB")
    model = MiniBatchKMeans(3, random_state=0)
    with pytest.raises(ValueError, match="needs rows in memory, and X is a lloydia Slices"):
        model.fit(source)
    labels = model.fit(X).predict(source)
    np.testing.assert_array_equal(labels, model.predict(X))
    one_by_one = clone(model)
    for rows in source.rows_from(0):
        one_by_one.partial_fit(rows)
    expected = clone(model).partial_fit(X)
    assert one_by_one.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()


def test_scores_refuse_chunks():
    with pytest.raises(TypeError, match=r"rows in memory, and X is read in blocks .<Slices the ar"):
        silhouette_score(lloydia.chunks(X, memory="2GB"), np.arange(1000) % 3)


@pytest.mark.parametrize(
    ("text", "count"),
    [(10**9, 10**9), ("1e9", 10**9), ("1.5e3 kB", 1_500_000), (1e16, 10**16), ("2 GiB", 2**31)],
)
def test_amounts_of_memory(text, count):
    assert lloydia.chunks(X, memory=text).memory == count


@pytest.mark.parametrize("text", ["much", "", "0", "-1GB", "1e", True])
def test_amounts_of_memory_that_mean_nothing(text):
    with pytest.raises(ValueError, match="is not an amount of memory"):
        lloydia.chunks(X, memory=text)


def test_results_are_written_block_by_block(tmp_path):
    model = KMeans(3, random_state=0).fit(X)
    source = lloydia.chunks(X, memory="2GB", block=97)
    source.write(model.predict, tmp_path / "labels.parquet")
    found = pq.read_table(tmp_path / "labels.parquet")["label"].to_numpy()
    np.testing.assert_array_equal(found, model.labels_)
    source.write(model.transform, tmp_path / "distances.npy")
    assert np.load(tmp_path / "distances.npy").tobytes() == model.transform(X).tobytes()
    source.write(model.predict, tmp_path / "labels.csv")
    assert (tmp_path / "labels.csv").read_text().splitlines() == ["label", *map(str, model.labels_)]
    with pytest.raises(DataError, match=r"row 501.* is NaN"):
        lloydia.chunks(with_nan(500, 0), memory="2GB").write(model.predict, tmp_path / "x.npy")
    assert not (tmp_path / "x.npy").exists()


def test_results_of_a_model_that_knows_names(tmp_path):
    model = KMeans(3, random_state=0).fit(lloydia.chunks(parquet(tmp_path), memory="2GB"))
    assert model.feature_names_in_.tolist() == NAMES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = lloydia.chunks(parquet(tmp_path), memory="2GB", block=97)
        source.write(model.predict, tmp_path / "labels.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), model.labels_)
    turned = lloydia.chunks(parquet(tmp_path), columns="c,b,a", memory="2GB")
    with pytest.raises(ValueError, match="feature names should match those of the fit, a, b, c"):
        turned.write(model.predict, tmp_path / "turned.npy")
    with pytest.raises(TypeError, match=r"needs a function of rows, .* got ndarray"):
        turned.write(model.labels_, tmp_path / "turned.npy")
    assert not (tmp_path / "turned.npy").exists()
    # Of what is no method of a model nobody knows what names it wants.
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        turned.write(lambda rows: model.predict(rows), tmp_path / "turned.npy")


def test_a_later_file_may_have_an_index_that_has_a_name(tmp_path):
    rows = pd.DataFrame(X, columns=NAMES)
    rows.to_parquet(tmp_path / "0.parquet")
    rows.set_index(pd.Index(range(1000), name="id")).to_parquet(tmp_path / "1.parquet")
    assert lloydia.chunks(tmp_path, memory="2GB").shape == (2000, 3)


def test_nothing_is_kept_of_the_rows_that_results_are_made_of(tmp_path):
    n = 10**10
    rows = np.broadcast_to(np.float32(1), (n, 32))
    source = lloydia.chunks(rows, memory="2GB")
    with pytest.raises(MemoryError, match=r" 29\d\.\d\d GB for what is kept of 10,000,000,000"):
        source.meant_for(KMeans(3), reset=True).plan(False, 1)
    plan = source.block_by_block().plan(False, 1)
    assert plan.peak < 2e9
    assert str(plan).endswith("0 bytes rows): the data are read once")
    # 112 MB would be kept of all of them.
    source = lloydia.chunks(rows[: 4 * 10**6, :1], memory=550_000_000)
    source.write(lambda some: some[:, 0], tmp_path / "one.npy")
    assert np.load(tmp_path / "one.npy").sum() == 4 * 10**6


def test_results_never_replace_their_source_nor_join_it(tmp_path):
    pq.write_table(pa.table(dict(zip("ab", X.T))), tmp_path / "0.parquet")
    np.save(tmp_path / "x.npy", X)

    def compute(rows):
        raise AssertionError("rows were read")

    for source, to, match in (
        ("x.npy", "x.npy", "uses that file already"),
        (".", "labels.parquet", "would become a part"),
    ):
        with pytest.raises(DataError, match=match):
            lloydia.chunks(tmp_path / source, memory="2GB").write(compute, tmp_path / to)


def test_what_is_made_of_a_block_is_no_larger_than_one(tmp_path):
    rows = np.random.default_rng(1).normal(size=(6000, 2)).astype("float32")
    model = KMeans(20, random_state=0, max_iter=2).fit(rows)
    lengths = []

    def transform(some):
        lengths.append(len(some))
        return model.transform(some)

    lloydia.chunks(rows, memory="2GB", block=5000).write(transform, tmp_path / "d.npy")
    assert np.load(tmp_path / "d.npy").tobytes() == model.transform(rows).tobytes()
    assert max(lengths[1:]) == 500


def test_masked_values_of_a_dask_array_are_refused_where_they_are():
    dask = pytest.importorskip("dask.array")
    some = np.ma.masked_equal(np.arange(40.0).reshape(10, 4), 13.0)
    source = lloydia.chunks(dask.from_array(some, chunks=(2, 4), asarray=False))
    with pytest.raises(ValueError, match="partition 2: 1 value is masked"):
        KMeans(2).fit(source)
    KMeans(2).fit(lloydia.chunks(dask.from_array(some, chunks=(2, 4), asarray=False), columns="3"))
