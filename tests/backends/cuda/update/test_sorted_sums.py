"""Rows moved between clusters on the device, against exact.sums.limbs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.device_functions.run_state import N_CHANGED, SIZE
from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid, gather
from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.cuda.update.sorted_sums import queue_sorted_sums
from lloydia.backends.cuda.update.sorted_updates import HISTOGRAM_BINS, SortedUpdates
from lloydia.exact import sums
from lloydia.exact.means import carry
from nasty import rows_of

D = 11


@pytest.mark.parametrize(("flavour", "dtype", "weighted", "n", "k"), [
    ("gauss", "float32", False, 150, 5), ("gauss", "float64", True, 150, 5),
    ("outlier", "float32", True, 150, 5), ("outlier", "float64", False, 150, 5),
    ("wide", "float64", True, 150, 5), ("gauss", "float32", False, 2500, 1),
    # Some numbers need more than the first limb, some do not.
    ("wide", "float32", False, 150, 5), ("outlier", "float32", False, 150, 5),
    ("gauss", "float32", False, 1500, 300), ("gauss", "float32", False, 150, HISTOGRAM_BINS + 1),
    # Long runs of rows that join one cluster, or leave it.
    ("gauss", "float32", False, 1500, 2), ("gauss", "float32", True, 1500, 2),
    ("gauss", "float64", False, 1500, 2), ("gauss", "float64", True, 1500, 2),
])  # fmt: skip
def test_sums_follow_the_labels(flavour, dtype, weighted, n, k):
    check_sums(flavour, dtype, weighted, n, D, k)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [65, 129])
def test_blocks_of_columns_add_the_weights_once(d, dtype, weighted):
    check_sums("gauss", dtype, weighted, 60, d, 3)


def check_sums(flavour, dtype, weighted, n, d, k):
    X = rows_of(flavour, n, d, dtype, seed=1)
    rng = np.random.default_rng(0)
    weights = 10.0 ** rng.uniform(-6, 6, size=n) if weighted else None
    rows = place_rows(X, weights, "cuda")
    fixed_point_grid = FixedPointGrid.of(rows, rows.grid, rows.weights)
    device = place("cuda")
    updates = SortedUpdates(n, k, device)
    totals = torch.zeros((1, rows.grid.n_limbs, k, d + 1), dtype=torch.int64, device=device)
    old = np.full(n, -1, dtype=np.int32)
    limbs = sums.limbs(X, weights, rows.grid)
    for share in (1.0, 0.4, 0.0):
        new = np.where(rng.random(n) < share, rng.integers(0, k, size=n), old).astype(np.int32)
        changed = rng.permutation(np.flatnonzero(new != old)).astype(np.int32)
        run_state = torch.zeros(SIZE, dtype=torch.int32, device=device)
        run_state[N_CHANGED.value] = len(changed)
        listed = torch.zeros((2, n), dtype=torch.int32, device=device)
        listed[0, : len(changed)] = torch.from_numpy(changed)
        listed[1, : len(changed)] = torch.from_numpy(old[changed])
        labels = torch.from_numpy(new.copy()).to(device)
        updates.sort(LabelChanges(labels, *listed, run_state))
        queue_sorted_sums(rows.X, fixed_point_grid, updates, run_state, totals)
        expected = sums.accumulate(limbs, new, k)
        assert np.array_equal(totals[0].cpu().numpy(), expected)
        old = new


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_rows_together(dtype):
    X = rows_of("outlier", 70, 9, dtype, seed=2)
    rows = place_rows(X, None, "cuda")
    found = gather(rows.X, FixedPointGrid.of(rows, rows.grid, None))[0].cpu().numpy()
    limbs = sums.limbs(X, None, rows.grid)
    expected = sums.accumulate(limbs, np.zeros(70, dtype=int), 1)
    # A sum of all rows may be cut into limbs in other ways.
    assert np.array_equal(carry(found, rows.grid.bits), carry(expected, rows.grid.bits))
