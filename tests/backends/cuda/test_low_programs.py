"""Several programs measure rows, label them and move them: without cells none waits for another."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.low_dim import stored as low_stored
from lloydia.backends.cuda.low_dim import summed as low_summed
from lloydia.backends.cuda.low_dim import sums as low_sums
from lloydia.backends.cuda.low_dim.grid import measure
from lloydia.backends.cuda.low_dim.lists import entry_size
from lloydia.backends.cuda.low_dim.moves import move_rows
from lloydia.backends.cuda.low_dim.scan import label_rows
from lloydia.backends.cuda.low_dim.scores import group_of, kept_of
from lloydia.backends.cuda.low_dim.stored import lists_of
from lloydia.backends.cuda.low_dim.summed import label_and_sum
from lloydia.backends.cuda.low_dim.sums import WORDS, clear, is_summed, table_of
from lloydia.backends.cuda.rows.frame import frame_of
from lloydia.backends.cuda.runtime.launching import INTERPRETED, ceil_div, next_power
from lloydia.exact import sums

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="compiled, low_kernel is tested")

POISON = -(1 << 30)
# Entries behind a list that nobody may write to.
GUARD = 256


@triton.jit(do_not_specialize=["n", "k", "labelled", "moves", "n_limbs", "bits", "room"])
def label_and_move(
    X, n, k, numbers, labels, labelled, moves, sums, n_limbs, bits, current, listed, doubts, room,
    table, own, stored, counts, d: tl.constexpr, EACH: tl.constexpr, COLUMNS: tl.constexpr,
    GROUP: tl.constexpr, KEPT: tl.constexpr, HELD: tl.constexpr, ENTRIES: tl.constexpr,
    COPIES: tl.constexpr, SUMMED: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    fixed_point_grid = numbers.to(tl.pointer_type(tl.float64))
    kind: tl.constexpr = tl.float64 if X.dtype.element_ty == tl.float64 else tl.float32
    frame = ()
    for f in tl.static_range(d + 1):
        frame = frame + (tl.load(fixed_point_grid + 3 * (d + 1) + f).to(kind),)  # noqa: RUF005
    if COPIES > 0:
        clear(own, k, ENTRIES, COPIES)
    limb_size = k.to(tl.int64) * (d + 1)
    if SUMMED:
        own_doubts = doubts + program.to(tl.int64) * (room // EACH + room)
        n_changed, _ = label_and_sum(
            X, n, k, labels, stored, labelled, current, frame, table,
            lists_of(listed, room, stored, kind, d),
            own_doubts, own_doubts + room // EACH, sums, own, fixed_point_grid, bits, n_limbs,
            limb_size, moves > 0,
            d, EACH, 128, GROUP, KEPT, COLUMNS, HELD, ENTRIES, COPIES,
        )  # fmt: skip
    else:
        rows = listed + 2 * program.to(tl.int64) * room
        old = rows + room
        each, _ = label_rows(
            X, n, k, labels, labelled, current, frame, table, rows, old, doubts + program * room,
            None, 0, None, 0, d, EACH, 128, GROUP, KEPT, COLUMNS,
        )  # fmt: skip
        n_changed = tl.sum(each, 0)
        if moves:
            move_rows(
                X, n, k, labels, labelled, rows, old, doubts + program * room, each, None,
                fixed_point_grid, sums, own, bits, n_limbs, limb_size, d, False, False, EACH, HELD,
                ENTRIES, COPIES,
            )  # fmt: skip
    tl.store(counts + program, n_changed)


def nearest(X, centers):
    D = np.zeros((len(X), len(centers)))
    for x, c in zip(X.T.astype(np.float64), centers.T.astype(np.float64)):
        D += (x[:, None] - c) ** 2
    return D.argmin(axis=1)


def rows_of(kind, n, d):
    X = np.random.default_rng(n).normal(scale=5, size=(n, d))
    if kind in ("ties", "lists"):
        return np.rint(X)
    if kind == "full":
        # All but a few are one cluster's, and of numbers whose lower parts are as large as can be.
        X[:] = 0.0
        X[:, 0] = 0.5 + 2.0**-23
        X[:30, 1] = np.arange(30) / 30
        return X
    if kind != "normal":
        # Numbers that span more limbs than a table holds, and than float32 can halve.
        X[::5] *= 2.0 ** (-45 if kind == "wide" else -60)
        X[1::7] *= 2.0 ** (25 if kind == "wide" else 112)
    return X


@pytest.mark.parametrize(("kind", "n", "d", "k", "dtype", "each", "programs", "bits"), [
    # One row; less than a block, and programs without one; a block and one row more.
    ("normal", 1, 1, 1, "float32", 1, 1, 45), ("ties", 130, 2, 3, "float32", 4, 3, 45),
    ("ties", 513, 3, 5, "float32", 4, 2, 45),
    # Programs with one block and with two, three and four.
    ("normal", 2900, 3, 16, "float32", 4, 5, 45), ("ties", 3700, 2, 5, "float16", 4, 3, 40),
    ("normal", 3700, 3, 7, "bfloat16", 4, 2, 45), ("normal", 1100, 8, 12, "float64", 4, 2, 45),
    # Tables that are full before all rows were added, more than once; rows that leave limbs.
    ("wide", 4700, 5, 32, "float32", 4, 1, 45), ("vast", 3000, 2, 2, "float32", 4, 2, 45),
    ("wide", 2500, 3, 3, "float64", 4, 2, 51), ("vast", 2100, 2, 4, "float64", 4, 1, 51),
    ("full", 2600, 5, 30, "float32", 4, 1, 45),
    # Lists that are full before all rows were labelled.
    ("lists", 5100, 2, 4, "float32", 4, 1, 39),
    # Tables of rows that are not listed with their features, full more than once; none.
    ("full", 2600, 5, 100, "float32", 4, 1, 45), ("vast", 2100, 6, 3, "float64", 1, 3, 51),
    ("wide", 2100, 2, 40, "float32", 4, 3, 45), ("wide", 2100, 2, 40, "float32", 4, 3, 50),
])  # fmt: skip
def test_labels_and_sums_are_those_of_the_host(
    kind, n, d, k, dtype, each, programs, bits, monkeypatch
):
    if kind == "lists":
        for module in (low_stored, low_summed):
            monkeypatch.setattr(module, "LISTED", tl.constexpr(32))
    if kind == "full" and k < 100:
        # As many copies as there are of a hundred clusters, else.
        monkeypatch.setattr(low_sums, "WORDS", 2048)
    # A table's rows are a block, at least.
    monkeypatch.setattr(low_sums, "LEAST_ROWS", each * THREADS)
    rows = torch.from_numpy(rows_of(kind, n, d)).to(getattr(torch, dtype))
    X = rows.to(torch.float64 if dtype == "float64" else torch.float32).numpy()
    extent = sums.Magnitudes.of(X)
    span = int(sums.span_of(extent.largest, extent.smallest))
    exponents = sums.Grid.choose(extent, X.dtype).exponents
    grid = sums.Grid(bits, int(sums.limbs_for(span, bits, X.dtype)), exponents, 0, False)
    held, entries, copies = table_of(n, d, k, bits, X.itemsize)
    fine = dtype != "float64" and bits > low_sums.MOST_SINGLE
    assert (copies > 0) == (n >= each * THREADS and not fine)
    # Of a program's rows nearly all are one cluster's, which its entries must not hold at once.
    assert kind != "full" or n << (bits + 2) // 2 - 1 > copies << 31
    summed = copies > 0 and is_summed(d, k)
    blocks = ceil_div(n, each * THREADS)
    room = ceil_div(blocks, programs) * each * THREADS
    numbers = torch.zeros(5 * (d + 1), dtype=torch.int64)
    floats = numbers.view(torch.float64)
    floats[: 3 * (d + 1)] = torch.from_numpy(grid.columns)
    floats[3 * (d + 1) : 4 * (d + 1)] = torch.from_numpy(frame_of(rows, extent.largest, X.dtype))
    labels = torch.full((n + GUARD,), POISON, dtype=torch.int32)
    sizes = [2 * programs * room, programs * room]
    if summed:
        listed = programs * min(room, low_summed.LISTED.value * THREADS)
        sizes[1] += sizes[1] // each
        sizes[0] = listed * entry_size(d, X.itemsize) * X.itemsize // 4
    stored = None
    if summed and dtype == "float64":
        sizes[0] = listed * entry_size(1, 4)
        stored = torch.full((blocks * each * THREADS * d + GUARD,), float("nan"))
    lists = [torch.full((size + GUARD,), POISON, dtype=torch.int32) for size in sizes]
    table = torch.full(((k + 7) * next_power(d + 1),), float("nan"))
    own = torch.full((WORDS,), 7, dtype=torch.int32)
    found = torch.zeros((grid.n_limbs, k, d + 1), dtype=torch.int64)
    counts = torch.zeros(programs, dtype=torch.int32)
    limbs = sums.limbs(X, None, grid)
    rng = np.random.default_rng(0)
    centers = X[np.arange(k) if kind == "full" else rng.choice(n, k, replace=False)].copy()
    before, totals = np.full(n, -1), np.zeros(found.shape, dtype=np.int64)
    # All rows are labelled, and sums stay; all move; few do; many do; few are labelled anew.
    steps = (0, 0, 0.0), (0, 1, 0.05), (1, 1, 3.0), (1, 1, 0.05), (1, 0, 0.0)
    for labelled, moves, moved in steps:
        label_and_move[(programs,)](
            rows, n, k, numbers, labels, labelled, moves, found, grid.n_limbs, bits,
            torch.from_numpy(centers), *lists, room, table, own, stored, counts, d=d, EACH=each,
            COLUMNS=next_power(d + 1), GROUP=group_of(k), KEPT=kept_of(k, d), HELD=held,
            ENTRIES=entries, COPIES=copies, SUMMED=summed,
        )  # fmt: skip
        expected = nearest(X, centers)
        assert (labels[:n].numpy() == expected).all()
        if moves:
            totals[:] = 0
            np.add.at(totals, (slice(None), expected), limbs)
            assert counts.sum() == np.count_nonzero(expected != before)
            before = expected
        assert (found.numpy() == totals).all()
        for part, size in ((labels, n), *zip(lists, sizes)):
            assert (part[size:] == POISON).all()
        assert stored is None or stored[-GUARD:].isnan().all()
        centers = (centers + rng.normal(scale=moved, size=centers.shape)).astype(X.dtype)


@triton.jit
def extent_of(X, n, bounds, d: tl.constexpr, ROWS: tl.constexpr):
    measure(X, n, bounds, d, ROWS)


@pytest.mark.parametrize(("n", "d", "dtype", "rows", "programs"), [
    # Less than a block, one, blocks and a row, programs without one.
    (1, 3, "float32", 512, 2), (512, 3, "float32", 512, 3), (1025, 3, "float32", 512, 2),
    (2000, 1, "float16", 256, 3), (700, 5, "float64", 128, 9), (640, 8, "float32", 128, 2),
    (999, 7, "float16", 128, 1), (385, 6, "float64", 128, 2), (300, 2, "float32", 128, 2),
])  # fmt: skip
def test_several_programs_find_the_extent(n, d, dtype, rows, programs):
    rng = np.random.default_rng(n)
    X = (rng.normal(size=(n, d)) * 2.0 ** rng.integers(-10, 10, size=d)).astype(dtype)
    X[rng.random((n, d)) < 0.1] = -0.0
    X[rng.integers(n), 0] = np.finfo(dtype).smallest_subnormal
    X[:, d - 1] = 0
    X[rng.integers(n), rng.integers(d)] = rng.choice([1.0, np.inf, np.nan])
    # What is around them is no row's.
    memory = np.full(n * d + 8 * rows * 8, np.nan, dtype)
    memory[1 : 1 + n * d] = X.ravel()
    bounds = torch.zeros(2 * d, dtype=torch.int64)
    extent_of[(programs,)](torch.from_numpy(memory)[1:], n, bounds, d, rows)
    wide = X if dtype == "float64" else X.astype(np.float32)
    integer = np.int64 if dtype == "float64" else np.int32
    none = np.iinfo(integer).max
    bits = wide.view(integer) & none
    expected = bits.max(axis=0), np.where(bits == 0, 0, none - bits).max(axis=0)
    assert (bounds.view(2, d).numpy() == expected).all()
