"""Scores of rows on a device against those of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia import metrics
from lloydia.metrics import calinski_harabasz_score, davies_bouldin_score, silhouette_samples

NAMES = sorted(metrics.__all__)
SHAPES = [(3, 1, 2), (12, 2, 11), (60, 5, 3)]
X = np.arange(12.0).reshape(6, 2)
BAD = {
    "one label": (X, [0] * 6),
    "as many labels as rows": (X, list(range(6))),
    "too few labels": (X, [0, 1, 0]),
    "no rows": (X[:0], []),
    "one dimension": (X[:, 0], [0, 0, 0, 1, 1, 1]),
    "labels in two columns": (X, np.eye(6, 2, dtype=int)),
    "a missing label": (X, [0, 0, 1, 1, np.nan, 0]),
    "NaN": (np.where(X == 5, np.nan, X), [0, 0, 0, 1, 1, 1]),
    "infinity": (np.where(X == 5, np.inf, X), [0, 0, 0, 1, 1, 1]),
    "overflow": (X * 1e160, [0, 0, 0, 1, 1, 1]),
}


def data(n, d, k, dtype="float64"):
    rng = np.random.default_rng(n)
    labels = rng.permutation(np.concatenate([np.arange(k), rng.integers(0, k, n - k)]))
    return (rng.normal(size=(n, d)) + 1e3 + labels[:, None]).astype(dtype), labels


CASES = [(shape, dtype) for shape in SHAPES for dtype in ("float16", "float32", "float64")]
# Integers become float64 before anything is computed.
CASES += [(SHAPES[1], "int64"), (SHAPES[1], "uint16")]


@pytest.mark.parametrize(("shape", "dtype"), CASES, ids=str)
def test_the_scores_of_the_cpu(shape, dtype, device):
    rows, labels = data(*shape, dtype)
    there = torch.as_tensor(rows, device=device)
    for name in NAMES:
        score = getattr(metrics, name)
        for same in (labels, torch.as_tensor(labels, device=device)):
            ours, theirs = score(there, same), score(rows, labels)
            if name == "silhouette_samples":
                assert ours.device.type == torch.device(device).type
                ours = ours.cpu().numpy()
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_truths(device):
    bits = torch.tensor(np.arange(12).reshape(6, 2) % 3 == 0, device=device)
    labels = [0, 0, 1, 1, 2, 2]
    for name in NAMES:
        score = getattr(metrics, name)
        ours, theirs = (score(rows, labels) for rows in (bits, bits.double()))
        np.testing.assert_array_equal(
            *(np.asarray(torch.as_tensor(x).cpu()) for x in (ours, theirs))
        )


@pytest.mark.parametrize("score", [calinski_harabasz_score, davies_bouldin_score])
@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (np.zeros((4, 2)), [0, 0, 1, 1]),
        ([[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1]),
        ([[-1.0], [1.0], [-1.0], [1.0]], [0, 0, 1, 1]),
        ([[-1.0], [1.0], [-2.0], [2.0], [9.0]], [0, 0, 1, 1, 2]),
        ([[0.0], [1e-9], [5e-9], [6e-9]], [0, 0, 1, 1]),
        ([[0.0], [2], [-1], [3], [9], [10]], [0, 0, 1, 1, 2, 2]),
        ([[1e6], [1e6 + 2], [1e6 - 1], [1e6 + 3 + 1e-9], [1e6 + 9], [0.0]], [0, 0, 1, 1, 2, 2]),
        ([[0.1]] * 3 + [[1.1]] * 3, [0, 0, 0, 1, 1, 1]),
        ([[1e-20], [2e-20], [1.0], [1.0]], [0, 0, 1, 1]),
    ],
)
def test_degenerate_data(score, rows, labels, device):
    there = torch.as_tensor(rows, dtype=torch.float64, device=device)
    assert score(there, labels) == pytest.approx(score(np.array(rows), labels), rel=1e-12)


def test_singletons_and_coinciding_rows_score_zero(device):
    rows = torch.tensor([[0.0], [0.0], [0.0], [0.0], [5.0]], device=device)
    assert silhouette_samples(rows, [0, 0, 1, 1, 2]).tolist() == [0.0] * 5
    assert silhouette_samples(rows[2:], [1, 1, 2]).tolist() == [1.0, 1.0, 0.0]


def test_a_sample_is_that_of_the_cpu(device):
    rows, labels = data(60, 2, 3)
    there = torch.as_tensor(rows, device=device)
    arguments = {"sample_size": 30, "random_state": 5}
    expected = metrics.silhouette_score(rows, labels, **arguments)
    for same in (labels, torch.as_tensor(labels, device=device)):
        ours = metrics.silhouette_score(there, same, **arguments)
        assert ours == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", BAD)
def test_the_errors_of_the_cpu(name, case, device):
    rows, labels = BAD[case]
    score = getattr(metrics, name)
    with pytest.raises(ValueError, match=r".") as theirs:
        score(rows, labels)
    with pytest.raises(ValueError, match=r".") as ours:
        score(torch.as_tensor(rows, device=device), labels)
    if case in ("NaN", "infinity"):
        # The place is a column on a GPU, and the advice is for torch.
        assert str(ours.value).startswith(f"Input X contains {case} in 1 of 2 columns, ")
        assert str(theirs.value).startswith(f"Input X contains {case} in 1 of 6 rows, ")
        assert "X.isfinite()" in str(ours.value)
    else:
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(
    "arguments", [{"metric": "cosine"}, {"n_threads": 0}, {"sample_size": 0}], ids=str
)
def test_parameters_out_of_range(arguments, device):
    rows = torch.as_tensor(X, device=device)
    with pytest.raises(ValueError, match=f"{next(iter(arguments))}="):
        metrics.silhouette_score(rows, [0, 0, 0, 1, 1, 1], **arguments)
