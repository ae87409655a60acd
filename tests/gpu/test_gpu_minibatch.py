"""Mini batches on a real GPU against the CPU, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import MiniBatchKMeans
from lloydia.data.arrays import on_host
from table import blobs, weights_of

torch = pytest.importorskip("torch")

# Few features, some, many; a batch that is all rows, and some that do not divide them.
SHAPES = ((20_011, 2, 9, 1024), (9_973, 33, 200, 4096), (3_001, 770, 40, 3_001))


def answer(model):
    arrays = model.labels_, model.cluster_centers_, model.counts_
    return *(on_host(array).tobytes() for array in arrays), model.inertia_, model.n_steps_


@pytest.mark.parametrize("weighting", ["none", "wide"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "d", "k", "size"), SHAPES)
def test_a_fit_has_the_bits_of_the_cpu(n, d, k, size, dtype, weighting):
    X, weights = blobs(n, d, dtype), weights_of(weighting, n)
    options = {"batch_size": size, "random_state": 3, "max_iter": 4, "n_init": 2}
    expected = MiniBatchKMeans(k, device="cpu", **options).fit(X, sample_weight=weights)
    for rows in (X, torch.from_numpy(X).cuda()):
        model = MiniBatchKMeans(k, device="cuda", **options).fit(rows, sample_weight=weights)
        assert answer(model) == answer(expected)
    assert model.cluster_centers_.is_cuda


@pytest.mark.parametrize("d", [3, 40])
def test_partial_fits_have_the_bits_of_the_cpu(d):
    X = blobs(9_000, d, "float32")
    models = [MiniBatchKMeans(20, random_state=1, device=device) for device in ("cpu", "cuda")]
    for rows in np.array_split(X, 7):
        for model in models:
            model.partial_fit(rows)
    centers = [on_host(model.cluster_centers_).tobytes() for model in models]
    assert centers[0] == centers[1]
    assert np.array_equal(*(on_host(model.predict(X)) for model in models))
