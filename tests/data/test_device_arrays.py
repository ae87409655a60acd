"""Arrays on a GPU, stood in for by tensors on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.data import device_arrays

torch = pytest.importorskip("torch")


def test_tensors_are_copied_where_kernels_would_have_another_form(monkeypatch):
    monkeypatch.setattr(device_arrays, "on_gpu", lambda X: isinstance(X, torch.Tensor))
    every = torch.arange(64, dtype=torch.float32)
    for first in range(8):
        X = every[first : first + 20]
        found = device_arrays.aligned_to_16(X)
        assert found.data_ptr() % 16 == 0
        assert (found is X) == (first % 4 == 0)
        assert torch.equal(found, X)
    rows = np.zeros(3)
    assert device_arrays.aligned_to_16(rows) is rows
