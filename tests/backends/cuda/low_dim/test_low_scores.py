"""Scores of rows by the table of centres: what is certain is so, and most rows are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.low_dim.center_table import frame_at, table_size, tabulate
from lloydia.backends.cuda.low_dim.scores import CENTERS_PER_STEP, certify, framed, line_of
from lloydia.backends.cuda.runtime.launching import EXACT, place

ROWS = 128


@triton.jit(do_not_specialize=["n", "k"])
def certify_all(
    X, n, centers, k, numbers, table, found, certain,
    d: tl.constexpr, ONE_GROUP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    kind: tl.constexpr = tl.float64 if X.dtype.element_ty == tl.float64 else tl.float32
    frame = frame_at(numbers, kind, d)
    tabulate(centers, frame, table, k, d)
    tl.debug_barrier()
    for first in range(0, n, ROWS):
        rows = first + tl.arange(0, ROWS)
        y = framed(features(X, rows * d, rows < n, d), frame, d)
        label, sure = certify(y, table, line_of(table), k, d, ONE_GROUP)
        tl.store(found + rows, label, mask=rows < n)
        tl.store(certain + rows, sure.to(tl.int32), mask=rows < n)


def certified(X, centers, origin, scale):
    there = place("cuda")
    (n, d), k = X.shape, len(centers)
    numbers = torch.zeros(5 * (d + 1), dtype=torch.float64, device=there)
    numbers[3 * (d + 1) : 4 * (d + 1)] = torch.tensor([*origin, scale], dtype=torch.float64)
    found, certain = torch.full((2, n), -9, dtype=torch.int32, device=there)
    table = torch.full((table_size(k, d),), float("nan"), device=there)
    certify_all[(1,)](
        torch.from_numpy(X).to(there), n, torch.from_numpy(centers).to(there), k, numbers, table,
        found, certain, d=d, ONE_GROUP=k <= CENTERS_PER_STEP.value, ROWS=ROWS, **EXACT,
    )  # fmt: skip
    return found.cpu().numpy(), certain.cpu().numpy() > 0


def nearest_is_certain(X, centers, found, sure):
    """Assert by rational arithmetic that rows that are `sure` have their only nearest centre."""
    exact = [[Fraction(float(v)) for v in c] for c in centers]
    for x, label in zip(X[sure], found[sure]):
        row = [Fraction(float(v)) for v in x]
        D = [sum((a - b) ** 2 for a, b in zip(row, c)) for c in exact]
        assert all(D[label] < other for j, other in enumerate(D) if j != label)


def place_centers(kind, rng, k, d):
    if kind == "usual":
        return rng.normal(size=(k, d))
    if kind == "one at the origin":
        centers = rng.normal(size=(k, d))
        centers[k // 2] = 0.0
        return centers
    if kind == "one far away":
        centers = rng.normal(size=(k, d))
        centers[-1] = 1e6
        return centers
    # All on one side of the rows, which makes most scores negative.
    return rng.normal(scale=0.1, size=(k, d)) + 3.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("d", "k"), [(1, 32), (1, 1), (2, 5), (3, 16), (3, 17), (7, 8), (8, 20), (3, 50)]
)
@pytest.mark.parametrize("kind", ["usual", "one at the origin", "one far away", "on one side"])
def test_what_is_certain_is_nearest(kind, d, k, dtype):
    """Among others rows between two centres, off by a few last places."""
    rng = np.random.default_rng(d * 100 + k)
    centers = place_centers(kind, rng, k, d).astype(dtype)
    X = rng.normal(scale=1.5, size=(200, d)).astype(dtype)
    pairs = rng.integers(k, size=(100, 2))
    between = (centers[pairs[:, 0]].astype(np.float64) + centers[pairs[:, 1]]) / 2
    off = 2.0 ** rng.uniform(-26, -14, size=(100, 1))
    X[:100] = between * (1 + off * rng.normal(size=(100, d)))
    # A frame that other rows might have led to, too.
    found, sure = certified(X, centers, rng.normal(scale=0.1, size=d), 0.5)
    nearest_is_certain(X, centers, found, sure)
    if kind != "on one side":
        assert sure[100:].mean() > 0.95


@pytest.mark.parametrize("k", [3, 30])
def test_rows_that_are_not_finite_are_never_certain(k):
    X = np.array([[np.inf, 0], [np.nan, 1], [-np.inf, np.inf], [1e30, 1e30], [1, 1]], np.float32)
    centers = np.array([[1, 1], [-1, -1], [3, -2]], np.float32)
    centers = np.concatenate([centers, 50 + np.arange(2 * (k - 3)).reshape(-1, 2)])
    _, sure = certified(X, centers.astype(np.float32), (0.0, 0.0), 1.0)
    assert sure.tolist() == [False, False, False, False, True]


def test_centers_of_one_place_are_never_certain():
    centers = np.array([[1, 1], [2, 0], [1, 1]] * 7, np.float32)
    _, sure = certified(np.array([[1.1, 1.0], [5, 5]], np.float32), centers, (0.0, 0.0), 1.0)
    assert not sure.any()
