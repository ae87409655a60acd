"""Updates of the rows that changed, by cluster."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.device_functions.run_state import N_CHANGED, SIZE
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.cuda.update.sorted_updates import HISTOGRAM_BINS, SortedUpdates


@pytest.mark.parametrize(("n", "k"), [
    (1, 1), (700, 4), (2500, 70), (1500, HISTOGRAM_BINS + 1),
    # A cluster and a place no longer fit 32 bits.
    (50, 2**21 + 7),
])  # fmt: skip
def test_entries_are_those_of_the_rows_by_cluster(n, k):
    rng, device = np.random.default_rng(n), place("cuda")
    labels, old = np.sort(
        k - 1 - rng.integers(0, min(k, 300), size=(2, n)).astype(np.int32), axis=1
    )
    # Of some rows there is nothing to leave.
    old[rng.random(n) < 0.3] = -1
    rows = rng.permutation(n).astype(np.int32)
    run_state = torch.zeros(SIZE, dtype=torch.int32, device=device)
    run_state[N_CHANGED.value] = n
    updates = SortedUpdates(n, k, device)
    put = [torch.from_numpy(x.copy()).to(device) for x in (labels, rows, old[rows])]
    joins = labels.astype(np.int64) << 32 | np.arange(n)
    leaves = (old.astype(np.int64) << 32 | ~np.arange(n) & 0xFFFFFFFF)[old >= 0]
    # Twice: what counts is ready again.
    for _ in range(2):
        updates.sort(LabelChanges(*put, run_state))
        total = int(updates.totals[0])
        found = updates.sorted[:total].cpu().numpy()
        assert sorted(found.tolist()) == sorted([*joins.tolist(), *leaves.tolist()])
        assert (np.diff(found >> 32) >= 0).all()
