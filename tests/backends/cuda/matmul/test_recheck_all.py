"""D of ambiguous rows to every centre against the canonical labels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.device_functions import run_state as state
from lloydia.backends.cuda.dispatch import Kernels, Stage, Work, chosen
from lloydia.backends.cuda.matmul import recheck_all as contests
from lloydia.backends.cuda.matmul.recheck_all import recheck_all
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.runtime.launching import place
from lloydia.exact import distance
from nasty import FLAVOURS, rows_of

device = place("cuda")


def columns_of(C: np.ndarray) -> SimpleNamespace:
    """Return centres of shape (batch_size, k, d) as they are packed, with what is none between."""
    batch_size, k, d = C.shape
    size = -(-k // 32) * 32
    columns = np.full((batch_size, d, size), np.nan, C.dtype)
    columns[:, :, :k] = C.swapaxes(1, 2)
    return SimpleNamespace(columns=torch.as_tensor(columns).to(device), size=size, k=k)


class Contested:
    """Rows of shape (batch_size, n, d), of which each item's `listed` are ambiguous."""

    def __init__(self, X: np.ndarray, C: np.ndarray, listed: list, old=-1, stopped=()) -> None:
        batch_size, n, _ = X.shape
        rows = SimpleNamespace(
            X=torch.as_tensor(X).to(device), n_samples=n, batch_size=batch_size, device=device
        )
        labels = np.broadcast_to(np.int32(old), (batch_size, n)).copy()
        ambiguous = np.full((batch_size, n), -1, np.int32)
        run_state = np.zeros((batch_size, state.SIZE), np.int32)
        for m, own in enumerate(listed):
            ambiguous[m, : len(own)] = m * n + np.asarray(own)
            run_state[m, state.N_AMBIGUOUS.value] = len(own)
            run_state[m, state.STOPPED.value] = m in stopped
        tensors = [
            torch.as_tensor(x).to(device) for x in (ambiguous, labels, ambiguous - 1, ambiguous - 1)
        ]
        run_state_there = torch.as_tensor(run_state).to(device)
        changes = LabelChanges(*tensors[1:], run_state_there)
        recheck_all(rows, columns_of(C), tensors[0], changes)
        _, self.labels, changed, before = (x.cpu().numpy() for x in tensors)
        counts = run_state_there.cpu().numpy()
        self.rechecked = counts[:, state.N_RECHECKED.value]
        n_changed = counts[:, state.N_CHANGED.value]
        # In order, as (row, label before) of all items.
        self.changed = sorted(
            (int(row), int(was))
            for m in range(batch_size)
            for row, was in zip(changed[m, : n_changed[m]], before[m, : n_changed[m]])
        )


def check(X: np.ndarray, C: np.ndarray, old: int = -1, dtype=None) -> int:
    """Compare every other row's label; return how many rows were checked again."""
    listed = np.arange(len(X))[::2][::-1]
    expected = np.full(len(X), old)
    with np.errstate(all="ignore"):
        expected[listed] = distance.nearest(X.astype(C.dtype), C)[0][listed]
    found = Contested((X if dtype is None else X.astype(dtype))[None], C[None], [listed], old)
    np.testing.assert_array_equal(found.labels[0], expected)
    assert found.changed == [(int(row), old) for row in np.flatnonzero(expected != old)]
    return int(found.rechecked[0])


def blobs(n: int, d: int, k: int, dtype: str = "float32"):
    rng = np.random.default_rng(n + d + k)
    C = rng.normal(size=(k, d)) * 2
    return (C[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(dtype), C.astype(dtype)


def close_calls(n: int, d: int, dtype: str):
    """Return rows as far from two of six centres but for some roundings, and those centres."""
    rng = np.random.default_rng(d)
    C = rng.normal(size=(6, d))
    C[[0, 2, 3, 5]] += 50
    C = C.astype(dtype)
    part = rng.integers(-1000, 1000, size=(n, 1)) ** 3 / 500**2 * np.finfo(dtype).eps / 16
    return (C[1] + (C[4].astype(float) - C[1]) * (0.5 + part)).astype(dtype), C


@pytest.mark.parametrize("k", [1, 2, 63, 64, 65, 200, 256])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_labels_are_the_canonical_ones(k, dtype):
    assert check(*blobs(90, 20, k, dtype)) == 0


@pytest.mark.parametrize("d", [9, 15, 16, 17, 24, 33, 64, 128])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_any_number_of_features(d, dtype):
    X, C = blobs(70, d, 13, "float64" if dtype == "float64" else "float32")
    check(X.astype(dtype), C, dtype=dtype)


def test_bfloat16_rows():
    X, C = blobs(40, 12, 5)
    rows = torch.as_tensor(X).bfloat16()
    expected, _ = distance.nearest(rows.float().numpy(), C)
    labels = torch.full((40,), -1, dtype=torch.int32, device=device)
    run_state = torch.zeros(state.SIZE, dtype=torch.int32, device=device)
    run_state[state.N_AMBIGUOUS.value] = 40
    there = SimpleNamespace(X=rows.to(device), n_samples=40, batch_size=1, device=device)
    ambiguous = torch.arange(40, dtype=torch.int32, device=device)
    spare = torch.empty_like(labels)
    changes = LabelChanges(labels, spare, spare.clone(), run_state)
    recheck_all(there, columns_of(C[None]), ambiguous, changes)
    np.testing.assert_array_equal(labels.cpu().numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [9, 40])
def test_close_calls_are_decided_canonically_and_others_are_not(d, dtype):
    X, C = close_calls(400, d, dtype)
    gaps = X[:, None] - C[None]
    quick = np.einsum("ijf,ijf->ij", gaps, gaps).argmin(axis=1)
    # Differences in float32 do not tell which is nearer.
    assert dtype == "float64" or (quick != distance.nearest(X, C)[0])[::2].any()
    assert 40 < check(X, C) < 160


def test_duplicated_centres_tie_and_the_lowest_gets_the_row():
    X, C = blobs(60, 18, 40)
    assert check(X, np.concatenate([C, C[::-1], C])) == 30


def test_one_last_bit_between_centres():
    X, C = blobs(60, 18, 9)
    check(X, np.concatenate([np.nextafter(C, np.float32(np.inf)), C]))


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nasty_rows(flavour, dtype):
    X = rows_of(flavour, 60, 12, dtype, seed=3)
    check(X, np.ascontiguousarray(X[::9]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("k", [3, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_are_not_finite_keep_their_labels(value, k, dtype):
    X, C = blobs(40, 12, k, dtype)
    expected, _ = distance.nearest(X, C)
    X[::4, 5] = value
    expected[::4] = -1
    found = Contested(X[None], C[None], [np.arange(40)])
    np.testing.assert_array_equal(found.labels[0], expected)
    assert found.rechecked == [10]


def test_only_rows_that_change_are_listed():
    X, C = blobs(80, 10, 4)
    assert 0 < sum(distance.nearest(X, C)[0][::2] == 2) < 40
    check(X, C, old=2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_members_of_a_batch_and_one_that_has_halted(dtype):
    made = [blobs(50 + m, 11, 35, dtype) for m in range(4)]
    X, C = np.stack([X[:50] for X, _ in made]), np.stack([C for _, C in made])
    X[1, 7] = (C[1, 3] + C[1, 30]) / 2
    listed = [np.arange(50), np.arange(50)[::-1], np.arange(0), np.arange(30)]
    found = Contested(X, C, listed, stopped=[3])
    expected = np.full((4, 50), -1)
    for m in range(2):
        expected[m] = distance.nearest(X[m], C[m])[0]
    np.testing.assert_array_equal(found.labels, expected)
    assert [row for row, _ in found.changed] == [*range(100)]


def test_more_blocks_than_programs():
    """A program goes on with another block of rows."""
    X, C = blobs(40 * contests.ROWS, 9, 33)
    check(X, C)


@pytest.mark.parametrize(
    ("d", "k", "dtype", "small"),
    [
        (16, 64, torch.float32, True), (64, 128, torch.float32, True),
        (64, 129, torch.float32, False), (64, 128, torch.float64, False),
        (128, 2, torch.float64, True), (129, 2, torch.float32, False),
        (9, 512, torch.float32, True), (9, 513, torch.float32, False),
    ],
)  # fmt: skip
def test_which_shapes_it_is_for(d, k, dtype, small):
    found = chosen(Stage.RECHECK, Work(1000, d, k, dtype.itemsize)).kernels
    assert (found is Kernels.ALL) is small
