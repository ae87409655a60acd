"""Frames of half-precision rows against the same choice in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.batched.rows import BatchRows
from lloydia.backends.cuda.rows.fp16_frame import NUMBERS, RADIUS, queue_frame
from lloydia.backends.cuda.runtime.launching import place
from table import blobs


def frame(X: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return ``m s``, s and R; see :mod:`lloydia.backends.cuda.rows.fp16_frame`."""
    n, d = X.shape
    m = min(n, 128, max(64, 2048 // d))
    sample = X[:: n // m][:m].astype(np.float64)
    some = np.sort(sample[np.arange(16) * m // 16], axis=0)
    reach = np.abs(sample - some[8]).max(axis=1)
    away = np.sort(reach[reach > 0])
    typical = away[len(away) // 2] if len(away) else 0.0
    most = 500 if X.dtype == np.float64 else 100
    exponent = max(-2 * most, min(4 - math.frexp(typical)[1], most)) if typical else 0
    scale = math.ldexp(1.0, exponent)
    offset = sample[reach <= 8 * typical].mean(axis=0) * scale
    offset = offset.astype(np.float64 if X.dtype == np.float64 else np.float32).astype(np.float64)
    norms = np.sort(np.sqrt(np.square(sample * scale - offset).sum(axis=1)))
    return offset, scale, max(min(3 * norms[m * 9 // 10], 8192.0), 1.0)


def spread(n, d, dtype):
    return blobs(n, d, dtype) + 7


def far_rows(n, d, dtype):
    X = spread(n, d, dtype)
    X[:: n // 3] *= 1e20
    return X


def mostly_equal(n, d, dtype):
    X = np.full((n, d), 3, dtype)
    X[5::7] = spread(len(X[5::7]), d, dtype)
    return X


def tiny(n, d, dtype):
    return spread(n, d, dtype) * np.finfo(dtype).tiny


def huge(n, d, dtype):
    return spread(n, d, dtype) * np.asarray(1e140 if dtype == "float64" else 1e30, dtype)


@pytest.mark.parametrize("kind", [spread, far_rows, mostly_equal, tiny, huge])
@pytest.mark.parametrize(("n", "d"), [(3, 9), (40, 17), (700, 10), (300, 100)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_frames_are_those_of_numpy(kind, n, d, dtype):
    # Of a batch: every member has its own.
    X = np.stack([kind(n, d, dtype), np.full((n, d), 5, dtype)])
    members = BatchRows(torch.from_numpy(X).to(place("cuda")))
    new = {"dtype": torch.float64, "device": members.device}
    numbers = torch.empty((len(X), NUMBERS.value), **new)
    origin, offsets = torch.empty((2, len(X), d), **new)
    room = numbers, origin, offsets
    queue_frame(members, room)
    for b, rows in enumerate(X):
        offset, scale, radius = frame(rows)
        assert numbers[b, 0] == scale
        assert float(numbers[b, RADIUS.value]) == pytest.approx(radius, rel=1e-6)
        assert not numbers[b, [1, 3, 4, 5]].any()
        found = offsets[b].cpu().numpy()
        np.testing.assert_allclose(found, offset, rtol=1e-6)
        assert (found.astype(dtype) == found).all()
        assert (origin[b].cpu().numpy() * scale == found).all()


def test_rows_that_say_nothing_of_a_frame_have_one():
    X = torch.zeros((2, 40, 9), device=place("cuda"))
    X[1, 3] = 1e30
    numbers = BatchRows(X).fp16_rows.numbers
    assert bool(numbers.isfinite().all())
    assert numbers[0, :3].tolist() == [1.0, 4.53125, 1.0]
