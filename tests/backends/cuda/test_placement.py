"""How many rows a GPU takes."""

from __future__ import annotations

import pytest
import torch

from lloydia.backends.cuda import placement


@pytest.mark.parametrize(("n", "d"), [(2**31 - 2**20, 2), (2**30, 9), (2**30, 2_000)])
def test_more_rows_than_kernels_can_count(n, d):
    X = torch.empty((n, d), device="meta")
    with pytest.raises(
        ValueError,
        match=rf"^X has {n:,} rows of {d:,} features, and a GPU takes at most [\d,]+ of them: ",
    ):
        placement.place_rows(X, None, "cuda")


@pytest.mark.parametrize(("n", "d"), [(2**31 - 2**22, 2), (2**30 - 2**21, 9)])
def test_as_many_rows_as_kernels_can_count(n, d, monkeypatch):
    monkeypatch.setattr(placement, "check_memory", lambda needed, device: None)
    assert placement.place_rows(torch.empty((n, d), device="meta"), None, "cuda").n_samples == n
