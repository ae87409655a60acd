"""Checkpoints of the GPU engine, which any other engine can go on from, and the other way round."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from table import answer, blobs, weights_of

pytest.importorskip("sklearn.callback")
from lloydia.callbacks import Checkpoint


class Break(Exception):
    """What ends a fit early."""


class BreaksAtOnce(Checkpoint):
    """Leaves the first checkpoint alone behind."""

    def write(self, snapshot):
        super().write(snapshot)
        raise Break


@pytest.mark.parametrize(
    ("d", "empty", "first", "then"),
    [
        (2, True, "cuda", "cpu"),
        (2, False, "cpu", "cuda"),
        (10, False, "cuda", "cpu"),
        (10, True, "cpu", "cuda"),
    ],
)
def test_it_goes_on_on_either_side(first, then, empty, d, tmp_path, device):
    X = np.random.default_rng(1).normal(size=(40, d)).astype(np.float32)
    weights = weights_of("wide", 40)
    start = np.vstack([X[:4], np.full((1, d), 1e3 if empty else 0.0, dtype=np.float32)])
    parameters = {"n_clusters": 5, "init": start, "max_iter": 4, "tol": 0}
    expected = KMeans(device="reference", **parameters).fit(X, sample_weight=weights)
    assert expected.n_iter_ > 2
    model = KMeans(device=first, **parameters)
    with pytest.raises(Break):
        model.set_callbacks(BreaksAtOnce(tmp_path / "c.npz", every=1)).fit(X, sample_weight=weights)
    model = KMeans.resume(tmp_path / "c.npz").set_params(device=then)
    model.fit(X, sample_weight=weights)
    assert answer(model) == answer(expected)
    assert not hasattr(model, "inertia_history_")


def test_rows_on_a_gpu(tmp_path, device):
    torch = pytest.importorskip("torch")
    X = blobs(24, 2, "float32")
    there = torch.as_tensor(X, device=device)
    fitted = KMeans(3, random_state=0, n_init=2).set_callbacks(Checkpoint(tmp_path / "c.npz"))
    fitted.fit(there)
    again = KMeans.resume(tmp_path / "c.npz").fit(there)
    assert torch.is_tensor(again.labels_)
    assert answer(again) == answer(fitted) == answer(KMeans(3, random_state=0, n_init=2).fit(X))
