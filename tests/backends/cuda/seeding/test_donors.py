from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.cuda.seeding.donors import counts, farthest
from lloydia.backends.reference import Reference

DEVICE = place("cuda")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7, 40, 200])
def test_the_oracles_rows_whatever_ties(weighted, count):
    rng = np.random.default_rng(count)
    X = rng.integers(-2, 3, size=(120, 2)).astype(np.float32)
    weights = (rng.random(120) < 0.4).astype(float) if weighted else None
    oracle = Reference(X, weights)
    oracle.classify(X[:4] + np.float32(0.25))
    D, labels = (torch.as_tensor(a, device=DEVICE) for a in (oracle.D, oracle.assigned))
    w = None if weights is None else torch.as_tensor(weights, device=DEVICE)
    for ours, theirs in zip(farthest(D, labels, w, count), oracle.farthest(count)):
        assert ours.tolist() == theirs.tolist()
    assert counts(labels, w, 4).tolist() == oracle.counts().tolist()
