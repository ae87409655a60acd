"""k_means_batched on the host: each member has the bits of its own fit."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, k_means_batched, stopping
from lloydia.loop.empty import EmptyClusterError
from lloydia.loop.several_runs import interleave
from table import blobs, some_rows, weights_of

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)

SIZE, N, D, K = 3, 60, 4, 5
X = np.stack([blobs(N, D, "float64", seed=b) for b in range(SIZE)])


def agree(rows, seeds, k=K, weights=None, init="k-means++", **options):
    found = k_means_batched(rows, k, sample_weight=weights, init=init, **options)
    centers, labels, inertia, n_iter = found
    assert labels.dtype == np.int32
    options.pop("random_state", None)
    for b in range(len(rows)):
        one = KMeans(
            k, n_init=1, random_state=seeds[b], init=init if callable(init) else start(init, b),
            **options,
        ).fit(rows[b], sample_weight=None if weights is None else weights[b])  # fmt: skip
        assert centers[b].tobytes() == one.cluster_centers_.tobytes()
        assert (labels[b] == one.labels_).all()
        assert inertia[b] == one.inertia_
        assert n_iter[b] == one.n_iter_
    return found


def start(init, b):
    return init if isinstance(init, str) else init[b]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_member_has_the_bits_of_its_own_fit(device, dtype):
    centers, *_ = agree(X.astype(dtype), range(7, 10), random_state=7, device=device)
    assert centers.dtype == dtype


@pytest.mark.parametrize(
    "options",
    [
        {"max_iter": 2},
        {"tol": 0},
        {"stop": stopping.Inertia(drop=1.0)},
        {"empty": "keep", "init": np.concatenate([X[:, :4], X[:, :1] + 1e3], axis=1)},
        {"init": np.concatenate([X[:, :4], X[:, :1] + 1e3], axis=1)},
        {"init": "random"},
        {"init": some_rows},
        {"weights": np.stack([weights_of("wide", N), np.ones(N), np.arange(N)])},
    ],
    ids=lambda options: next(iter(options)),
)
def test_parameters_mean_what_they_mean_for_one(options):
    agree(X, range(SIZE), random_state=0, **options)


def test_seeds_may_be_a_sequence():
    agree(X, [5, 5, 0], random_state=[5, 5, 0])
    agree(X, [5, 5, 0], random_state=np.array([5, 5, 0]))


def test_members_draw_from_a_random_state_one_after_the_other():
    agree(X, [np.random.RandomState(3)] * SIZE, random_state=np.random.RandomState(3))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (X[0], {}, r"X has shape \(60, 4\) and must have .* or pass X\[None\]"),
        (X[:, :0], {}, r"X has shape \(3, 0, 4\)"),
        (X[:0], {}, r"X has shape \(0, 60, 4\)"),
        (X[:, :3], {}, "n_samples=3 should be >= n_clusters=5"),
        (X, {"init": X[0, :5]}, r"init has shape \(5, 4\) and must have shape \(3, 5, 4\)"),
        (X, {"init": X[:, :4]}, r"init has shape \(3, 4, 4\) and must have"),
        (
            X,
            {"init": [[[1.0], [2.0, 3.0]]] * 3},
            "init holds 3 rows of different lengths: give all",
        ),
        (X, {"sample_weight": np.ones(N)}, r"sample_weight has shape \(60,\) and must have"),
        (X, {"random_state": 2**32 - 2}, r"random_state=4294967294 must be from 0 to 2\*\*32 - 3"),
        (X, {"random_state": -1}, "random_state=-1 must be from 0 to"),
        (X, {"random_state": "a"}, "random_state='a' must be None, an integer from 0 to"),
        (X, {"random_state": [1, 2.5, 3]}, r"random_state\[1\]=2.5 must be None, an integer"),
        (X, {"random_state": [1, 2]}, "2 seeds for 3 members: give one seed for each"),
        (X, {"max_iter": 0}, "max_iter=0"),
        (X, {"init": "none"}, "init='none'"),
        (np.where(X > 5, np.nan, X), {}, "contains NaN"),
    ],
)
def test_what_is_wrong_is_said(rows, options, message):
    with pytest.raises(ValueError, match=message):
        k_means_batched(rows, K, **options)


def test_sparse_rows_are_refused():
    with pytest.raises(TypeError, match="dense data is required"):
        k_means_batched(sp.csr_matrix(X[0]), K)


def test_an_error_says_which_member_it_is_about():
    init = X[:, :K].copy()
    init[2, 4] = 1e3
    with pytest.raises(EmptyClusterError) as caught:
        k_means_batched(X, K, init=init, empty="error")
    assert caught.value.__notes__ == ["This is member 2 of the batch."]


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_member_that_is_not_finite_is_named(device, value, name):
    rows = X.copy()
    rows[1, 5, 2] = value
    with pytest.raises(ValueError, match=rf"Input X\[1\] contains {name}") as caught:
        k_means_batched(rows, K, device=device)
    assert caught.value.__notes__ == ["This is member 1 of the batch."]


def test_members_whose_values_add_up_to_infinity_are_finite():
    rows = X.astype(np.float32)
    rows[:, ::2] *= np.float32(1e36)
    rows[:, 0] = np.float32(3e38)
    agree(rows, range(SIZE), random_state=0)


def test_work_of_several_lanes_takes_turns():
    seen = []

    class Late:
        def __init__(self, name):
            self.name = name

        def begin(self):
            seen.append(f"begin {self.name}")

    def turns(name, waits):
        for i in range(waits):
            seen.append(f"{name}{i}")
            yield Late(name) if i == 0 else None
        seen.append(f"{name} ends")

    interleave([(nullcontext, turns("a", 2)), (nullcontext, turns("b", 1))])
    assert seen == ["a0", "begin a", "b0", "begin b", "a1", "b ends", "a ends"]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_members_with_fewer_clusters_are_told(device):
    few = np.repeat([[0.0, 0], [1, 1]], 20, axis=0)
    many = np.arange(80.0).reshape(40, 2)
    X = np.stack([many, few, few])
    message = r"n_clusters=4 were found in 2 of 3 members, first in X\[1\] \(2\)"
    with pytest.warns(ConvergenceWarning, match=message):
        k_means_batched(X, 4, random_state=0, device=device)
