"""Centres from integer sums on the device, against exact.means."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.device_functions.iteration_report import CHANGED, EMPTY, HEAD, MOVE
from lloydia.backends.cuda.device_functions.run_state import ITERATION, N_CHANGED, SIZE, STOPPED
from lloydia.backends.cuda.matmul.fp16_centers import Fp16Centers
from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.runtime.launching import EXACT, next_power, place
from lloydia.backends.cuda.runtime.relocation import replay
from lloydia.backends.cuda.update.means import NOT_PACKED, finish_kernel
from lloydia.exact import distance, sums
from lloydia.exact.means import means

K, D, SLOTS = 6, 5, 4
NO_LIMIT = torch.zeros(1, dtype=torch.float64)


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
    history = torch.full((SLOTS, K, D), torch.nan, dtype=current.dtype, device=device)
    report = torch.zeros((SLOTS, HEAD.value + K), dtype=torch.int64, device=device)
    run_state = torch.zeros(SIZE, dtype=torch.int32, device=device)
    run_state[ITERATION.value], run_state[N_CHANGED.value] = 7, 9
    finish_kernel[(2,)](
        torch.from_numpy(totals).to(device), n_limbs, bits,
        torch.from_numpy(grid.exponents).to(device), K, D, current, history, SLOTS, report,
        run_state, 1, 0, NO_LIMIT.to(device), *NOT_PACKED,
        FEW=n_limbs <= 2, LEVELS=2, ALL=1, **EXACT,
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
    assert int(run_state[STOPPED.value]) == int(empty.any())
    assert int(run_state[ITERATION.value]) == 8
    assert int(run_state[N_CHANGED.value]) == 0


def test_nothing_happens_after_a_halt():
    rng = np.random.default_rng(0)
    totals = totals_of(rng, 2)
    grid = grid_of(2, 39, rng)
    device = place("cuda")
    current = torch.ones((K, D), dtype=torch.float32, device=device)
    history = torch.zeros((SLOTS, K, D), dtype=torch.float32, device=device)
    report = torch.zeros((SLOTS, HEAD.value + K), dtype=torch.int64, device=device)
    run_state = torch.zeros(SIZE, dtype=torch.int32, device=device)
    run_state[STOPPED.value] = 1
    finish_kernel[(1,)](
        torch.from_numpy(totals).to(device), 2, 39, torch.from_numpy(grid.exponents).to(device),
        K, D, current, history, SLOTS, report, run_state, 1, 0, NO_LIMIT.to(device), *NOT_PACKED,
        FEW=True, LEVELS=2, ALL=1, **EXACT,
    )  # fmt: skip
    assert bool((current == 1).all())
    assert not report.any()
    assert run_state.tolist() == [1] + [0] * (SIZE - 1)


PACKED = (
    "high", "half_norm", "half_norm_f32", "square", "norm", "residual", "score_bias",
    "bound_coefficients", "typical",
)  # fmt: skip


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize(
    ("k", "d", "dtype"), [(6, 12, "float32"), (40, 150, "float32"), (70, 9, "float64")]
)
def test_centres_are_packed_as_before_a_first_assignment(k, d, dtype, stopped):
    rng = np.random.default_rng(k)
    rows = place_rows(rng.normal(size=(50, d)).astype(dtype), None, "cuda")
    fp16_rows, device = Fp16Rows(rows), rows.device
    replay(*fp16_rows.storing)
    old = rng.normal(size=(k, d)).astype(dtype)
    # Far ones come near, near ones go far, some stay far; cluster 4 is empty.
    old[[0, 3]] = 1e4
    totals = rng.integers(-(2**20), 2**20, size=(1, k, d + 1))
    totals[0, :, d] = rng.integers(1, 9, size=k) << 18
    totals[0, [2, 3], :d] <<= 16
    totals[0, 4] = 0
    run_state = torch.zeros(SIZE, dtype=torch.int32, device=device)
    current = torch.from_numpy(old.copy()).to(device)
    history = torch.full((SLOTS, k, d), torch.nan, dtype=current.dtype, device=device)
    report = torch.zeros((SLOTS, HEAD.value + k), dtype=torch.int64, device=device)
    centers, expected = (Fp16Centers(fp16_rows, k, 64) for _ in range(2))
    centers.pack(fp16_rows, current, run_state)
    run_state[STOPPED.value], run_state[N_CHANGED.value] = int(stopped), 1
    finish_kernel[(3,)](
        torch.from_numpy(totals).to(device), 1, 30,
        torch.zeros(d + 1, dtype=torch.int64, device=device), k, d, current, history, SLOTS,
        report, run_state, 0, 0, NO_LIMIT.to(device), *centers.arguments(fp16_rows), FEW=True,
        LEVELS=min(7, next_power(d).bit_length() - 1), ALL=256, num_warps=1, **EXACT,
    )  # fmt: skip
    new, told = current.cpu().numpy(), report[1].cpu().numpy()
    assert stopped == np.array_equal(new, old)
    shift, move = (0.0, 0.0) if stopped else distance.movement(old, new)
    assert distance.in_order(told[HEAD.value :].view(np.float64)) == shift
    assert told[MOVE.value : MOVE.value + 1].view(np.float64)[0] == move
    expected.pack(fp16_rows, current, torch.zeros_like(run_state))
    for name in PACKED:
        assert torch.equal(getattr(centers, name), getattr(expected, name)), name
    assert torch.equal(centers.columns[:, :, :k], expected.columns[:, :, :k])
    far = [0, 3] if stopped else [2, 3]
    assert torch.nonzero(centers.square[:k] < 0)[:, 0].tolist() == far
    assert float(centers.score_bias.max()) > 0
