"""Canonical settlement of listed rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.device_functions import run_state as state
from lloydia.backends.cuda.matmul.recheck_exact import RecheckExact
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.runtime.launching import place
from lloydia.exact import distance
from nasty import rows_of


def settled(X: np.ndarray, C: np.ndarray, listed: np.ndarray, by_column: bool) -> np.ndarray:
    device = place("cuda")
    labels, changed_rows, changed_old = (
        torch.full((len(X),), -1, dtype=torch.int32, device=device) for _ in range(3)
    )
    run_state = torch.zeros(state.SIZE, dtype=torch.int32, device=device)
    run_state[state.N_AMBIGUOUS.value] = len(listed)
    centers = torch.as_tensor(C).to(device)
    if by_column:
        centers = centers.T.contiguous().T
    recheck = RecheckExact(device)
    recheck(
        torch.as_tensor(X).to(device), centers[None],
        torch.as_tensor(listed.astype(np.int32)).to(device),
        run_state[state.N_AMBIGUOUS.value :],
        LabelChanges(labels, changed_rows, changed_old, run_state),
    )  # fmt: skip
    assert int(run_state[state.N_RECHECKED.value]) == len(listed)
    assert int(recheck.tickets.abs().sum()) == 0
    n_changed = int(run_state[state.N_CHANGED.value])
    assert sorted(changed_rows[:n_changed].tolist()) == sorted(listed.tolist())
    return labels.cpu().numpy()


@pytest.mark.parametrize("flavour", ["gauss", "grid", "duplicates", "tiny", "wide"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("by_column", [False, True])
def test_listed_rows_get_canonical_labels_and_others_none(flavour, dtype, by_column):
    X = rows_of(flavour, 60, 3, dtype, seed=1)
    C = X[np.random.default_rng(0).integers(60, size=20)]
    listed = np.arange(0, 60, 7)
    expected = np.full(60, -1)
    expected[listed] = distance.nearest(X, C)[0][listed]
    np.testing.assert_array_equal(settled(X, C, listed, by_column), expected)


def test_ties_between_programs_go_to_the_lowest_index():
    """Several tiles of centres, of which each has the same nearest: programs share one block."""
    X = rows_of("gauss", 4, 2, "float32", seed=2)
    C = np.tile(X[:2], (600, 1))
    listed = np.arange(4)
    expected, _ = distance.nearest(X, C)
    np.testing.assert_array_equal(settled(X, C, listed, False), expected)


def test_nothing_listed():
    X = rows_of("gauss", 4, 2, "float32", seed=2)
    assert (settled(X, X, np.arange(0), False) == -1).all()
