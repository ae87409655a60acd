"""What a run ends with: the inertia of weighted rows, and whether every cluster has a row."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.rows.distinct import ROWS_PER_MARK
from lloydia.backends.cuda.rows.ending import Ending
from lloydia.backends.cuda.runtime.launching import place
from lloydia.exact import distance, sums

D, K = 11, 5


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "last", "full"), [
    (40, 4, True), (40, 3, False),
    # The last label comes late: long after those that are looked at first.
    (ROWS_PER_MARK.value * K + 3000, 4, True), (ROWS_PER_MARK.value * K + 3000, 0, False),
])  # fmt: skip
def test_the_inertia_and_what_is_empty(n, last, full, weighted):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, D)).astype(np.float32)
    labels = (np.arange(n) % (K - 1)).astype(np.int32)
    labels[-1] = last
    weights = rng.uniform(0.5, 2, size=n) if weighted else None
    rows, device = place_rows(X, weights, "cuda"), place("cuda")
    centers = X[:K] / 3
    ending = Ending(rows, torch.from_numpy(labels).to(device), torch.from_numpy(centers).to(device))
    own = distance.squared_distances(X, centers)[np.arange(n), labels]
    assert float(ending) == sums.total(own if weights is None else weights * own)
    assert ending.full() is full
