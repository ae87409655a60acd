"""Batches on a GPU: the bits of the oracle, arrays of the caller's library."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import MiniBatchKMeans
from lloydia.data.arrays import on_host
from table import blobs, weights_of

torch = pytest.importorskip("torch")


def answer(model):
    return (
        on_host(model.labels_).tobytes(),
        on_host(model.cluster_centers_).tobytes(),
        model.counts_.tobytes(),
        model.inertia_,
        model.n_steps_,
    )


@pytest.mark.parametrize(
    ("d", "dtype", "weighting"),
    [(2, "float32", "wide"), (10, "float32", "none"), (3, "float64", "none")],
)
def test_fit_gives_the_bits_of_the_oracle(weighting, d, dtype, device):
    X, weights = blobs(24, d, dtype), weights_of(weighting, 24)
    common = {"random_state": 0, "batch_size": 12, "max_iter": 1, "max_no_improvement": None}
    oracle = MiniBatchKMeans(3, device="reference", **common).fit(X, sample_weight=weights)
    assert oracle.n_steps_ == 2
    there = d == 10  # the others are copied there, and back
    given = torch.as_tensor(X, device=device) if there else X
    model = MiniBatchKMeans(3, device="auto" if there else "cuda", **common)
    assert answer(model.fit(given, sample_weight=weights)) == answer(oracle)
    assert torch.is_tensor(model.labels_) == there


def test_partial_fit_takes_arrays_on_either_side(device):
    X = blobs(36, 2, "float32").astype(np.float16)
    oracle, model = (MiniBatchKMeans(3, random_state=0) for _ in range(2))
    oracle.set_params(device="reference")
    for number, part in enumerate(np.array_split(X, 3)):
        oracle.partial_fit(part)
        model.partial_fit(torch.as_tensor(part, device=device) if number != 1 else part)
        assert answer(model) == answer(oracle)
    assert torch.is_tensor(model.cluster_centers_)
    assert model.counts_.sum() == 36
