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


@pytest.mark.parametrize(("d", "dtype"), [(2, "float32"), (10, "float32"), (3, "float64")])
@pytest.mark.parametrize("weighting", ["none", "wide"])
def test_fit_gives_the_bits_of_the_oracle(weighting, d, dtype, device):
    X, weights = blobs(48, d, dtype), weights_of(weighting, 48)
    common = {"random_state": 0, "batch_size": 16, "max_iter": 1, "max_no_improvement": None}
    oracle = MiniBatchKMeans(3, device="reference", **common).fit(X, sample_weight=weights)
    assert oracle.n_steps_ == 3
    for given, where in ((X, "cuda"), (torch.as_tensor(X, device=device), "auto")):
        model = MiniBatchKMeans(3, device=where, **common).fit(given, sample_weight=weights)
        assert answer(model) == answer(oracle)
        assert torch.is_tensor(model.labels_) == (where == "auto")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_partial_fit_takes_arrays_on_either_side(dtype, device):
    X = blobs(60, 2, "float32").astype(dtype)
    oracle, model = (MiniBatchKMeans(3, random_state=0) for _ in range(2))
    oracle.set_params(device="reference")
    for number, part in enumerate(np.array_split(X, 3)):
        oracle.partial_fit(part)
        model.partial_fit(torch.as_tensor(part, device=device) if number != 1 else part)
        assert answer(model) == answer(oracle)
    assert torch.is_tensor(model.cluster_centers_)
    assert model.counts_.sum() == 60
