"""Centres from integer sums on the device, against exact.means."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.flow import HALT, ITERATION, N_CHANGED, SIZE
from lloydia.backends.cuda.launching import EXACT, place
from lloydia.backends.cuda.means import CHANGED, EMPTY, HEAD, MOVE, finish_kernel
from lloydia.exact import distance, sums
from lloydia.exact.means import means

K, D, SLOTS = 6, 5, 4


def totals_of(rng, n_limbs):
    """Return sums whose numbers begin at any limb, of either sign, and weights; cluster 2 empty."""
    totals = rng.integers(-(2**60), 2**60, size=(n_limbs, K, D + 1))
    for j in range(K):
        for f in range(D + 1):
            totals[: rng.integers(0, n_limbs), j, f] = 0
            totals[0, j, f] >>= int(rng.integers(0, 60))
    totals[:, 3, 1] = 0
    totals[:, :, D] = np.abs(totals[:, :, D])
    totals[0, :, D] |= 1
    totals[:, 2] = 0
    return totals


def grid_of(n_limbs, bits, rng):
    exponents = np.append(rng.integers(-40, 40, size=D), 0)
    return sums.Grid(bits, n_limbs, exponents, 0, False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_limbs", "bits"), [(1, 51), (2, 39), (5, 30)])
def test_centres_and_report_are_those_of_the_oracle(n_limbs, bits, dtype):
    rng = np.random.default_rng(n_limbs + 1)
    totals = totals_of(rng, n_limbs)
    grid = grid_of(n_limbs, bits, rng)
    device = place("cuda")
    old = rng.normal(size=(K, D)).astype(dtype)
    empty = (totals[:, :, -1] == 0).all(axis=0)
    expected = np.where(empty[:, None], old, means(totals, grid, dtype))
    current = torch.from_numpy(old.copy()).to(device)
    history = torch.zeros((SLOTS, K, D), dtype=current.dtype, device=device)
    history[3] = current
    report = torch.zeros((SLOTS, HEAD.value + K), dtype=torch.int64, device=device)
    flow = torch.zeros(SIZE, dtype=torch.int32, device=device)
    flow[ITERATION.value], flow[N_CHANGED.value] = 7, 9
    finish_kernel[(2,)](
        torch.from_numpy(totals).to(device), bits,
        torch.from_numpy(grid.exponents).to(device), K, D, current, history, SLOTS, report, flow, 1,
        LIMBS=n_limbs, COLUMNS=4, LEVELS=2, **EXACT,
    )  # fmt: skip
    assert np.array_equal(current.cpu().numpy(), expected)
    assert torch.equal(history[0], current)
    told = report[0].cpu().numpy()
    shift, move = distance.movement(old, expected)
    assert told[CHANGED.value] == 9
    assert told[EMPTY.value] == empty.sum()
    assert told[MOVE.value : MOVE.value + 1].view(np.float64)[0] == move
    assert distance.in_order(told[HEAD.value :].view(np.float64)) == shift
    # An empty cluster is for the host to settle.
    assert int(flow[HALT.value]) == int(empty.any())
    assert int(flow[ITERATION.value]) == 8
    assert int(flow[N_CHANGED.value]) == 0


def test_nothing_happens_after_a_halt():
    rng = np.random.default_rng(0)
    totals = totals_of(rng, 2)
    grid = grid_of(2, 39, rng)
    device = place("cuda")
    current = torch.ones((K, D), dtype=torch.float32, device=device)
    history = torch.zeros((SLOTS, K, D), dtype=torch.float32, device=device)
    report = torch.zeros((SLOTS, HEAD.value + K), dtype=torch.int64, device=device)
    flow = torch.zeros(SIZE, dtype=torch.int32, device=device)
    flow[HALT.value] = 1
    finish_kernel[(1,)](
        torch.from_numpy(totals).to(device), 39, torch.from_numpy(grid.exponents).to(device),
        K, D, current, history, SLOTS, report, flow, 1, LIMBS=2, COLUMNS=4, LEVELS=2, **EXACT,
    )  # fmt: skip
    assert bool((current == 1).all())
    assert not report.any()
    assert flow.tolist() == [1] + [0] * (SIZE - 1)
