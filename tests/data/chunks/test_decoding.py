"""A row group is decoded bit by bit, and what that takes is in the plan."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import lloydia
from lloydia import KMeans
from tight import for_fit, tight

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.thread_unsafe(reason="the memory that Arrow holds is the process's")

N = 400_000
X = np.random.default_rng(0).normal(size=(N, 8)).astype("float32")
WIDE = X.reshape(-1, 200)


def named(rows):
    return pa.table({f"c{j}": x for j, x in enumerate(rows.T)})


def with_text():
    text = pa.array(np.arange(N).astype("U").astype(object))
    return named(X).add_column(0, "text", text)


def one_page():
    if "max_rows_per_page" not in inspect.signature(pq.ParquetWriter.__init__).parameters:
        pytest.skip(f"pyarrow {pa.__version__} limits the rows of a page")
    return {"data_page_size": 1 << 30, "max_rows_per_page": N, "use_dictionary": False}


# Tables, options of the writer, columns that are read.
CASES = {
    "numbers": (lambda: named(X), dict, None),
    "not compressed": (lambda: named(X), lambda: {"compression": "none"}, None),
    "without dictionaries": (lambda: named(X), lambda: {"use_dictionary": False}, None),
    "dictionaries": (lambda: named(np.round(X, 1)), dict, None),
    "zstd": (lambda: named(X), lambda: {"compression": "zstd"}, None),
    "float64": (lambda: named(X.astype("float64")), dict, None),
    "decimals": (
        lambda: pa.table({"d": pa.array(np.arange(N)).cast(pa.decimal128(20, 0))}),
        dict,
        None,
    ),
    "text beside": (with_text, dict, "c0,c1"),
    "vectors": (lambda: pa.table({"e": list(X[:100_000])}), dict, None),
    "wide": (lambda: named(WIDE), dict, None),
    "one page": (lambda: named(X[:, :2]), one_page, None),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_held_while_a_row_group_is_read_is_planned(case, tmp_path):
    table, options, columns = CASES[case]
    table = table()
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=len(table), **options())
    del table
    source = lloydia.chunks(path, columns=columns, memory="2GB")
    allowed = source.overhead
    pool = pa.default_memory_pool()
    before, held = pool.bytes_allocated(), 0
    for _ in source.read(0):
        held = max(held, pool.bytes_allocated() - before)
    assert 0 < held <= allowed
    if case not in ("wide", "one page", "dictionaries", "vectors", "decimals", "text beside"):
        # Of each column a buffer, a page and a dictionary: at most 1 MB or so each.
        assert allowed < 8 * 4_500_000
        assert held <= 8 * 3_500_000
    plan = source.block_by_block().plan(False, 1)
    assert plan.flow >= allowed + 2 * source.at_once * source.shape[1] * source.raw.itemsize


def test_the_bytes_of_a_row_group_are_not_fetched_at_once(tmp_path):
    rows = np.random.default_rng(0).normal(size=(3_000_000, 2)).astype("float32")
    pq.write_table(named(rows), tmp_path / "t.parquet", row_group_size=len(rows))
    source = lloydia.chunks(tmp_path / "t.parquet", memory="2GB")
    pool = pa.default_memory_pool()
    before, held = pool.bytes_allocated(), 0
    for _ in source.read(0):
        held = max(held, pool.bytes_allocated() - before)
    assert held < rows.nbytes / 2
    assert source.overhead < rows.nbytes / 2


def test_too_little_memory_to_decode_is_refused(tmp_path):
    pq.write_table(named(WIDE), tmp_path / "t.parquet", row_group_size=len(WIDE))
    model = KMeans(2, random_state=0)
    source = tight(tmp_path / "t.parquet", for_fit(model), block=1000)
    source.memory -= source.overhead // 2
    with pytest.raises(MemoryError, match=r"needs at least .* for blocks\), and may take"):
        model.fit(source)


def test_row_groups_are_all_the_same_rows(tmp_path):
    found = []
    for size in (N, 7_777):
        pq.write_table(named(X), tmp_path / "t.parquet", row_group_size=size)
        source = lloydia.chunks(tmp_path / "t.parquet", memory="2GB", block=50_000)
        found.append(source.load(source.plan(False, 1)))
        assert found[-1].tobytes() == X.tobytes()
