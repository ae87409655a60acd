"""Rows moved between clusters by tables in shared memory, against exact.sums.limbs."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from compiling import compiles, said_by
from lloydia.backends import choose
from lloydia.backends.cuda.dataset import Dataset
from lloydia.backends.cuda.device_functions.ptx.limb_overflow import overflow_ptx
from lloydia.backends.cuda.device_functions.ptx.shared_table import update_ptx
from lloydia.backends.cuda.device_functions.run_state import N_CHANGED, SIZE, STOPPED
from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.runtime.launching import INTERPRETED, place
from lloydia.backends.cuda.update import table_sums
from lloydia.backends.cuda.update.bank_swizzle import bank_swizzled, places_of
from lloydia.backends.cuda.update.table_layout import Table, Tiling
from lloydia.backends.cuda.update.table_sums import (
    has_table,
    has_vectors,
    interpreter_table,
    queue_table,
)
from lloydia.exact import sums
from nasty import rows_of
from ptx import evaluate

COMPILE = """
import subprocess
from pathlib import Path

import triton
import triton.backends.nvidia
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lloydia.backends.cuda.update.table_layout import Table, Tiling
from lloydia.backends.cuda.update.table_sums import options_of, table_kernel

itemsize = 8 if KIND == "fp64" else 4
VECTORS = ALIGNED and D % 16 == 0
options = options_of(Table.of(K, itemsize, VECTORS), Tiling.choose(itemsize, VECTORS), LIMBS)
names = table_kernel.arg_names
constants = {n: x for n, x in options.items() if n in names} | {"memory": None}
types = {"X": f"*{KIND}", "fixed_point_grid": "*fp64", "sums": "*i64"}
types |= dict.fromkeys(["labels", "changed_rows", "changed_old", "run_state"], "*i32")
wide = [n for n in types if n != "X" or ALIGNED] + ["d"] * (D % 16 == 0)
source = ASTSource(
    fn=table_kernel,
    signature={n: "constexpr" if n in constants else types.get(n, "i32") for n in names},
    constexprs={(i,): constants[n] for i, n in enumerate(names) if n in constants},
    attrs={(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n in wide},
)
rest = {n: x for n, x in options.items() if n not in names}
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=rest)
print(compiled.metadata.shared, "BYTES")
print(compiled.asm["ptx"])
Path(CUBIN).write_bytes(compiled.asm["cubin"])
tool = Path(triton.backends.nvidia.__file__).parent / "bin" / "cuobjdump"
print("SASS", subprocess.run([tool, "-sass", CUBIN], stdout=-1, text=True, check=True).stdout)
"""


@compiles
@pytest.mark.parametrize(("kind", "k", "d", "limbs", "aligned"), [
    ("fp32", 256, 64, 2, True), ("fp32", 256, 40, 3, True), ("fp32", 10, 64, 1, True),
    ("fp64", 64, 16, 3, True), ("fp64", 256, 64, 2, True), ("fp64", 100, 32, 3, False),
])  # fmt: skip
def test_lower_words_are_waited_for_together(kind, k, d, limbs, aligned, tmp_path):
    case = f"KIND, K, D, LIMBS, ALIGNED = {kind!r}, {k}, {d}, {limbs}, {aligned}"
    case += f"\nCUBIN = {str(tmp_path / 'cubin')!r}"
    shared, rest = said_by(f"{case}\n{COMPILE}", tmp_path).split("BYTES")
    # Nothing goes from thread to thread: tables take what there is.
    assert int(shared) == 0
    ptx, sass = rest.split("SASS")
    itemsize, table_limbs = (8, 2) if kind == "fp64" else (4, 1)
    vectors = aligned and d % 16 == 0
    cut = Tiling.choose(itemsize, vectors)
    # The numbers of a thread are moved together; in each limb, of each tile.
    words = re.findall(r"(atom|red)\.shared\.add\.u32 (?:before|\[[^]]+\+)", ptx)
    # First what clusters gain, then what others lose.
    together = (["atom"] * cut.numbers + ["red"] * cut.numbers) * 2
    assert words == together * table_limbs * cut.prefetch_depth
    stride = re.findall(r"red\.shared\.add\.u32 \[[^]]+\+(\d+)\]", ptx)
    assert {*map(int, stride)} == {4 * Table.of(k, itemsize, vectors).size}
    # No register is spilled between the first addition that is waited for and the last.
    codes = re.findall(r"(ATOMS\.ADD R\d|STL|LDL)", sass)
    atomic = [i for i, code in enumerate(codes) if code.startswith("ATOMS")]
    assert len(atomic) == words.count("atom")
    assert len(atomic) == atomic[-1] - atomic[0] + 1
    # What is left of each goes to memory.
    assert (
        len(re.findall(r"@there red\.relaxed\.gpu", ptx))
        == cut.numbers * (limbs - table_limbs) * cut.prefetch_depth
    )


@pytest.mark.parametrize("each", [1, 2, 4])
def test_what_moves_sums_of_two_words(each):
    """The PTX that no interpreter runs: sums modulo 2**64, whatever is added and taken."""
    size = 100
    rng, ptx = np.random.default_rng(each), update_ptx(each, size)
    shared, expected = {}, dict.fromkeys(range(0, 40, 4), 0)
    nobody = 36
    for _ in range(300):
        to, off = 4 * rng.integers(0, 9, each), 4 * rng.integers(0, 9, each)
        takes = rng.integers(-1, 2, each)
        values = rng.integers(-(2**46), 2**46, each) >> rng.integers(0, 46, each)
        off = np.where(takes < 0, nobody, off)
        halves = values & 0xFFFFFFFF, (values >> 32) & 0xFFFFFFFF
        operands = [0] * each
        for operand in (to, off, *halves, takes):
            operands += [int(x) for x in operand]
        evaluate(ptx, operands, shared)
        for i in range(each):
            expected[to[i]] += int(values[i])
            expected[off[i]] -= int(values[i])
    del expected[nobody]
    for at, total in expected.items():
        assert shared[at] + (shared[at + 4 * size] << 32) == total % 2**64


@pytest.mark.parametrize("each", [1, 2, 4])
@pytest.mark.parametrize("limbs", [1, 3])
def test_what_moves_later_limbs(each, limbs):
    """The PTX that no interpreter runs: each limb goes where it belongs, from -1 comes nothing."""
    rng, ptx = np.random.default_rng(each), overflow_ptx(limbs, each)
    bits, m, k, sums_at = 42, 5, 6, 8 * 10**9
    # Rows that are not there join cluster k, of which there is no sum.
    limb_size = (k + 1) * m
    memory, expected = {}, np.zeros((limbs, k + 1, m), dtype=np.int64)
    quanta = 2.0 ** -rng.integers(3, 9, m)
    for _ in range(200):
        to, off = rng.integers(0, k, each), rng.integers(-1, k, each)
        column = rng.integers(0, m, each)
        quantum = quanta[column]
        left = rng.uniform(-0.5, 0.5, each) * quantum
        left[rng.random(each) < 0.6] = 0.0
        left[rng.random(each) < 0.1] = -0.0
        # Some have a lower word of zeros.
        left = np.where(rng.random(each) < 0.5, np.rint(left * 2.0**20) * 2.0**-20, left)
        absent = (left == 0) & (rng.random(each) < 0.5)
        to, off = np.where(absent, k, to), np.where(absent, -1, off)
        operands = [0] * each
        operands += [sums_at] * each + [8 * limb_size] * each
        operands += [int(x) for x in (*to, *off)] + [m] * each + [int(x) for x in column]
        operands += [float(x) for x in (*left, *(1.5 * 2.0**52 * quantum))] + [bits] * each
        evaluate(ptx, operands, memory=memory)
        rest = left
        for limb in range(limbs):
            quantum = quantum * 2.0**-bits
            whole = np.rint(rest / quantum)
            rest = rest - whole * quantum
            np.add.at(expected[limb], (to, column), whole.astype(np.int64))
            there = off >= 0
            np.subtract.at(expected[limb], (off[there], column[there]), whole[there].astype(int))
    found = np.zeros(limbs * limb_size, dtype=np.uint64)
    for at, total in memory.items():
        place = (at - sums_at) // 8
        assert place % limb_size < k * m
        found[place] = total
    assert (found.view(np.int64) == expected.ravel()).all()


def fixed_point_grid_of(X, n=None):
    """Return rows and the fixed-point grid that they have among n rows."""
    rows = place_rows(X, None, "cuda")
    extent = sums.Magnitudes.of(X)
    if n is not None:
        extent = extent.merge(sums.Magnitudes(n - len(X), extent.largest, extent.smallest))
    return rows, FixedPointGrid.of(rows, sums.Grid.choose(extent, X.dtype), None)


def listed(changed, old):
    """Return the run state and the lists of rows that changed."""
    device = place("cuda")
    run_state = torch.zeros(SIZE, dtype=torch.int32, device=device)
    run_state[N_CHANGED.value] = len(changed)
    lists = torch.full((2, len(old)), 12345, dtype=torch.int32, device=device)
    lists[0, : len(changed)] = torch.from_numpy(changed)
    lists[1, : len(changed)] = torch.from_numpy(old[changed])
    return run_state, lists


def moved(rows, fixed_point_grid, totals, new, old, rng, stopped=False):
    changed = rng.permutation(np.flatnonzero(new != old)).astype(np.int32)
    run_state, lists = listed(changed, old)
    run_state[STOPPED.value] = int(stopped)
    labels = torch.from_numpy(new.copy()).to(run_state.device)
    memory = interpreter_table(rows.device)
    if memory is not None:
        memory.fill_(-1)
    changes = LabelChanges(labels, *lists, run_state)
    queue_table(rows.X, fixed_point_grid, changes, totals, memory)
    return totals[0].cpu().numpy()


@pytest.mark.parametrize(("flavour", "dtype", "n", "d", "k", "among"), [
    ("gauss", "float32", 700, 16, 64, None), ("gauss", "float32", 700, 16, 64, 10**6),
    ("gauss", "float32", 300, 9, 1, 10**6), ("offset", "float32", 300, 17, 5, 10**6),
    ("wide", "float32", 700, 70, 200, 10**6), ("gauss", "float16", 300, 33, 250, None),
    ("grid", "float32", 300, 32, 64, 2**31), ("gauss", "float64", 300, 12, 64, 10**5),
    ("gauss", "float32", 300, 13, 128, None), ("zeros", "float32", 300, 16, 33, 2**15 + 1),
    ("zeros", "float32", 300, 16, 33, 2**15), ("subnormal", "float32", 300, 11, 7, 10**6),
    ("tiny", "float64", 300, 32, 3, None), ("constant", "float64", 60, 10, 4, 10**6),
    ("gauss", "float64", 300, 17, 234, None), ("wide", "float64", 300, 9, 29, 10**6),
    ("gauss", "float64", 300, 16, 348, 10**6), ("outlier", "float32", 300, 17, 348, None),
    ("wide", "float64", 300, 32, 88, 10**6), ("gauss", "float32", 300, 48, 348, 10**6),
    ("gauss", "float64", 300, 21, 150, None), ("gauss", "float64", 2500, 16, 64, 10**5),
    ("wide", "float64", 2500, 16, 348, 10**6),
    ("gauss", "float32", 1, 256, 2, None),
])  # fmt: skip
def test_sums_follow_the_labels(flavour, dtype, n, d, k, among):
    X = rows_of(flavour, n, d, dtype, seed=1)
    rows, fixed_point_grid = fixed_point_grid_of(X, among)
    assert has_table(rows, k)
    rng = np.random.default_rng(0)
    n_limbs = fixed_point_grid.grid.n_limbs
    totals = torch.zeros((1, n_limbs, k, d + 1), dtype=torch.int64, device=place("cuda"))
    limbs = sums.limbs(X, None, fixed_point_grid.grid)
    old = np.full(n, -1, dtype=np.int32)
    # Some join only, then some join and some move; then none changes.
    for share in (0.7, 0.5, 0.0):
        new = np.where(rng.random(n) < share, rng.integers(0, k, size=n), old).astype(np.int32)
        found = moved(rows, fixed_point_grid, totals, new, old, rng)
        there = new >= 0
        assert np.array_equal(found, sums.accumulate(limbs[:, there], new[there], k))
        old = new


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bits", [46, 47, 51])
def test_the_largest_integers_of_a_grid(dtype, bits):
    least = np.finfo(dtype).eps / 2
    X = np.array([[1 - least, -1 + least, 1.0, -1.0, 2.0**-bits, -(2.0**-bits), 0.0, 0.75, -0.5]])
    # With a 1 a column's exponent would be that of numbers below 2, and its integers half as large.
    X = np.concatenate([X, X * 0.5, -X, np.where(np.abs(X) == 1, 1 - least, X)]).astype(dtype)
    X[:, 2:4] *= 1 - least
    n = 2 ** (62 - bits)
    rows, fixed_point_grid = fixed_point_grid_of(X, n)
    assert fixed_point_grid.grid.bits == bits
    limbs = sums.limbs(X, None, fixed_point_grid.grid)
    assert np.abs(limbs[0][:, :-1]).max() == np.rint((1 - float(least)) * 2.0**bits)
    totals = torch.zeros(
        (1, len(limbs), 3, X.shape[1] + 1), dtype=torch.int64, device=place("cuda")
    )
    new, old = np.array([0, 1, 2, 1], dtype=np.int32), np.array([-1, -1, 0, 2], dtype=np.int32)
    found = moved(rows, fixed_point_grid, totals, new, old, np.random.default_rng(0))
    expected = sums.accumulate(limbs, new, 3)
    expected -= sums.accumulate(limbs[:, 2:], old[2:], 3)
    assert np.array_equal(found, expected)


def test_a_run_that_has_halted_adds_nothing():
    X = rows_of("gauss", 50, 9, "float32", seed=0)
    rows, fixed_point_grid = fixed_point_grid_of(X)
    shape = 1, fixed_point_grid.grid.n_limbs, 4, 10
    totals = torch.zeros(shape, dtype=torch.int64, device=place("cuda"))
    new, old = np.zeros(50, dtype=np.int32), np.full(50, -1, dtype=np.int32)
    rng = np.random.default_rng(0)
    assert not moved(rows, fixed_point_grid, totals, new, old, rng, stopped=True).any()
    assert moved(rows, fixed_point_grid, totals, new, old, rng).any()


@pytest.mark.skipif(not INTERPRETED, reason="a GPU has several programs")
@pytest.mark.parametrize(("n", "k", "d", "count", "dtype"), [
    (2_000, 3, 9, 3, "float64"), (1_500, 40, 40, 3, "float32"), (2_000, 5, 40, 1, "float32"),
    (5_000, 40, 32, 5, "float64"), (5_000, 40, 32, 5, "float32"), (5_000, 5, 32, 2, "float64"),
])  # fmt: skip
def test_programs_share_the_rows(n, k, d, count, dtype, monkeypatch):
    """Several programs share the rows that change; those that none are left for add nothing.

    In the third case, and the last, one program for some columns has all rows.
    """
    monkeypatch.setattr(table_sums, "processors", lambda device: count)
    X = rows_of("gauss", n, d, dtype, seed=2)
    rows, fixed_point_grid = fixed_point_grid_of(X, 10**6)
    limbs = sums.limbs(X, None, fixed_point_grid.grid)
    shape = 1, fixed_point_grid.grid.n_limbs, k, d + 1
    totals = torch.zeros(shape, dtype=torch.int64, device=place("cuda"))
    rng = np.random.default_rng(4)
    old = np.full(n, -1, dtype=np.int32)
    for share in (1.0, 0.4, 0.01):
        new = np.where(rng.random(n) < share, rng.integers(0, k, size=n), old).astype(np.int32)
        found = moved(rows, fixed_point_grid, totals, new, old, rng)
        assert np.array_equal(found, sums.accumulate(limbs, new, k))
        old = new


@pytest.mark.parametrize("k", [2, 40])
def test_carries_whatever_the_signs(k):
    """Lower words that go over in nearly every addition, up and down."""
    n, d = 600, 16
    rng = np.random.default_rng(5)
    X = np.where(rng.random((n, d)) < 0.5, -1.0, 1.0) * (1.0 - 2.0 ** -rng.integers(1, 25, (n, d)))
    X = X.astype(np.float32)
    X[:200], X[200:400] = np.abs(X[:200]), -np.abs(X[200:400])
    rows, fixed_point_grid = fixed_point_grid_of(X, 10**6)
    limbs = sums.limbs(X, None, fixed_point_grid.grid)
    totals = torch.zeros((1, len(limbs), k, d + 1), dtype=torch.int64, device=place("cuda"))
    old = np.full(n, -1, dtype=np.int32)
    for _ in range(3):
        new = rng.integers(0, k, size=n).astype(np.int32)
        found = moved(rows, fixed_point_grid, totals, new, old, rng)
        assert np.array_equal(found, sums.accumulate(limbs, new, k))
        old = new


@pytest.mark.parametrize("large", [1e6, 2.0**31])
def test_what_one_limb_leaves_is_in_the_second(large):
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(300, 16)) * 2.0 ** rng.integers(-20, 1, (300, 16))).astype(np.float32)
    X[7] = large
    rows, fixed_point_grid = fixed_point_grid_of(X)
    limbs = sums.limbs(X, None, fixed_point_grid.grid)
    assert len(limbs) == 2
    assert limbs[1].any()
    totals = torch.zeros((1, 2, 5, 17), dtype=torch.int64, device=place("cuda"))
    new, old = rng.integers(0, 5, 300).astype(np.int32), np.full(300, -1, dtype=np.int32)
    found = moved(rows, fixed_point_grid, totals, new, old, rng)
    assert np.array_equal(found, sums.accumulate(limbs, new, 5))


@triton.jit
def layout_kernel(
    x, y, columns, places,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, EACH: tl.constexpr, COPIES: tl.constexpr,
):  # fmt: skip
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    at = row * COLUMNS + column
    tl.store(y + at, bank_swizzled(tl.load(x + at), row, EACH))
    added, place = places_of(row, COLUMNS, EACH, COPIES)
    tl.store(columns + at, added)
    tl.store(places + at, place)


@pytest.mark.parametrize("k", [30, 88, 150, 300])
@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("vectors", [True, False])
def test_numbers_that_are_added_at_a_time_are_in_different_banks(k, itemsize, vectors):
    table = Table.of(k, itemsize, vectors)
    columns, each, copies = table.columns, table.each, table.copies
    assert each == (16 // itemsize if vectors else 1)
    rows = 32 * each // columns
    device = place("cuda")
    x = torch.randn((2 * rows, columns), device=device)
    y, found = torch.empty_like(x), torch.empty((2, *x.shape), dtype=torch.int32, device=device)
    layout_kernel[(1,)](
        x, y, *found, ROWS=2 * rows, COLUMNS=columns, EACH=each, COPIES=copies, num_warps=1
    )
    # Each number is once in its row, and goes where its column is.
    added, places = found.cpu().numpy()
    assert (np.sort(added) == np.arange(columns)).all()
    assert np.array_equal(y.cpu().numpy(), np.take_along_axis(x.cpu().numpy(), added, axis=1))
    assert (places < copies * columns).all()
    assert all(len({*row}) == columns for row in places)
    for c in range(each):
        # What a warp adds at a time, of rows of one cluster: each thread has `each` columns.
        together = places[:rows, c::each].ravel()
        most = max(np.bincount(together % 32))
        # Without copies for all, rows of one cluster meet in the sum of a column: nowhere else.
        assert len({*together}) == copies * columns
        assert most == 32 // (copies * columns)


def test_shared_memory_that_tables_take():
    # Of all clusters that there is room for, a row's columns twice in two words each, and a count.
    assert Table.of(20, 4, True).shared(1) == 4 * 177 * (2 * 2 * 16 + 1) + 1024
    assert Table.of(176, 4, True).shared(1) == Table.of(2, 4, True).shared(1)
    assert Table.of(348, 8, False).shared(3) == 3 * (4 * 349 * (2 * 2 * 8 + 1) + 1024)


@pytest.mark.parametrize("itemsize", [2, 4, 8])
@pytest.mark.parametrize("vectors", [True, False])
def test_programs_have_room_on_a_multiprocessor(itemsize, vectors):
    cut = Tiling.choose(itemsize, vectors)
    # Registers and bytes of a multiprocessor of sm_90.
    assert cut.threads * cut.resident * cut.registers <= 65536
    tables = [Table.of(k, itemsize, vectors) for k in range(2, 349)]
    assert max(table.shared(cut.resident) for table in tables) <= 227 << 10
    # Every thread has numbers of its own in a tile, and tiles are of powers of two.
    for columns in {table.columns for table in tables}:
        rows = cut.threads * cut.numbers // columns
        assert rows * columns == cut.threads * cut.numbers
        assert rows & (rows - 1) == 0


def test_rows_that_begin_anywhere_are_loaded_one_by_one():
    X = torch.zeros(16 * 16 + 1)
    assert has_vectors(X[:256].view(16, 16))
    assert not has_vectors(X[1:].view(16, 16))
    assert not has_vectors(X[:255].view(15, 17))


def test_which_rows_are_added_up_by_tables():
    def copies(k, dtype, d=64):
        X = torch.zeros((1, d), dtype=dtype)
        some = has_table(Dataset(X, None), k)
        return Table.of(k, X.element_size(), has_vectors(X)).copies if some else 0

    assert [copies(k, torch.float32) for k in (2, 176, 177, 348, 349)] == [2, 2, 1, 1, 0]
    assert [copies(k, torch.float64) for k in (2, 88, 89, 176, 177)] == [4, 4, 2, 2, 1]
    assert [copies(k, torch.float64) for k in (348, 349)] == [1, 0]
    assert [copies(k, torch.float16) for k in (176, 348, 349)] == [2, 1, 0]
    assert [copies(2, torch.float32, d) for d in (9, 256, 257)] == [2, 2, 0]
    assert not has_table(Dataset(torch.zeros((1, 9)), torch.ones(1)), 2)


@pytest.mark.parametrize(("weighted", "d"), [(False, 12), (True, 12), (False, 260)])
def test_sums_after_every_iteration_are_those_of_the_host(weighted, d):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, d)).astype(np.float32)
    weights = rng.uniform(0.5, 2.0, size=300) if weighted else None
    engine = choose("cuda", X, weights, None)
    engine.start(X[:7].copy(), "lloyd")
    limbs = sums.limbs(X, weights, sums.Grid.choose(sums.Magnitudes.of(X, weights), X.dtype))
    for _ in range(3):
        engine.iterate(False).result()
        expected = sums.accumulate(limbs, engine.labels().cpu().numpy(), 7)
        assert (engine.run.memory.sums[0].cpu().numpy() == expected).all()
    # Entries take no memory where nobody sorts them.
    by_table = not weighted and d == 12
    assert engine.run.memory.cluster_sums.by_table(engine.data) == by_table
    assert ("sorted_updates" not in vars(engine.run.memory.cluster_sums)) == by_table
