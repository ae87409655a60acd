from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.rows.distances import distances, own_distances
from lloydia.backends.cuda.runtime.launching import place
from lloydia.exact import distance
from nasty import FLAVOURS, rows_of

DEVICE = place("cuda")


def on_device(array):
    return torch.as_tensor(array, device=DEVICE)


def case(flavour, dtype, d, k=19, n=150):
    X = rows_of(flavour, n, d, dtype, seed=d)
    return X, X[np.random.default_rng(d).integers(n, size=k)] * X.dtype.type(1.0 + 2.0**-20)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_distance_is_the_canonical_one(flavour, dtype):
    for d in (1, 3, 17):
        X, centers = case(flavour, dtype, d)
        D = distance.squared_distances(X, centers)
        labels = np.random.default_rng(0).integers(len(centers), size=len(X)).astype(np.int32)
        rows, on = place_rows(X, None, "cuda"), on_device(centers)
        own = own_distances(rows, on_device(labels), on).cpu().numpy()
        assert (own == D[np.arange(len(X)), labels]).all()
        assert (distances(rows, on).cpu().numpy() == np.sqrt(D).astype(dtype)).all()


@pytest.mark.parametrize("d", [2, 8, 20])
def test_half_precision_is_read_exactly(d):
    X = np.random.default_rng(0).normal(size=(200, d)).astype(np.float16)
    centers = X[:7].astype(np.float32) / 3
    labels = np.arange(200, dtype=np.int32) % 7
    D = distance.squared_distances(X.astype(np.float32), centers)
    own = own_distances(place_rows(X, None, "cuda"), on_device(labels), on_device(centers))
    assert (own.cpu().numpy() == D[np.arange(200), labels]).all()


@pytest.mark.parametrize("d", [3, 20])
def test_a_row_without_a_label_reads_and_notes_nothing(d):
    X = rows_of("gauss", 40, d, "float32", seed=0)
    around = on_device(np.full((4, d), 1e30, dtype=np.float32))
    around[1:3] = on_device(X[:2])
    labels = on_device(np.arange(40, dtype=np.int32) % 2)
    labels[7] = -1
    noted = torch.zeros(4, dtype=torch.int32, device=DEVICE)
    largest = torch.zeros(1, dtype=torch.float64, device=DEVICE)
    D = own_distances(
        place_rows(X, None, "cuda"), labels, around[1:3], largest=largest, seen=noted[1:3]
    )
    assert D[7] == 0.0
    assert float(largest) == float(D.max()) < 1e30
    assert noted.tolist() == [0, 1, 1, 0]
