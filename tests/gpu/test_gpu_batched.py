"""Batches on a real GPU: members overlap on several streams, and none disturbs another."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans, k_means_batched, stopping
from lloydia.data.arrays import on_host
from lloydia.loop.empty import EmptyClusterError
from table import blobs, weights_of

torch = pytest.importorskip("torch")

TYPES = ("float16", "bfloat16", "float32", "float64")


def batch(size, n, d, dtype="float32"):
    X = np.stack([blobs(n, d, "float32", seed=b) for b in range(size)])
    return torch.as_tensor(X).to(getattr(torch, dtype)).cuda()


def agree(X, k, seed=0, weights=None, init="k-means++", **options):
    found = k_means_batched(X, k, init=init, random_state=seed, sample_weight=weights, **options)
    centers, labels, inertia, n_iter = map(on_host, found)
    for b, rows in enumerate(X):
        one = KMeans(
            k, n_init=1, random_state=seed + b,
            init=init if isinstance(init, str) else init[b], **options,
        ).fit(rows, sample_weight=None if weights is None else weights[b])  # fmt: skip
        assert centers[b].tobytes() == on_host(one.cluster_centers_).tobytes()
        assert (labels[b] == on_host(one.labels_)).all()
        assert (inertia[b], n_iter[b]) == (one.inertia_, one.n_iter_)
    return found


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("n", "d", "k"), [
    (20_011, 2, 30), (9_973, 33, 100), (20_011, 64, 100), (5_003, 300, 257),
])  # fmt: skip
@pytest.mark.parametrize("size", [1, 3, 11])
def test_members_have_the_bits_of_their_own_fits(size, n, d, k, dtype):
    X = batch(size, n, d, dtype)
    for array in agree(X, k, tol=0, max_iter=30):
        assert array.device == X.device


def has_an_empty_cluster(rows, init):
    try:
        KMeans(len(init), init=init, empty="error").fit(rows)
    except EmptyClusterError:
        return True
    return False


@pytest.mark.parametrize("d", [2, 20])
def test_every_parameter(d):
    X = batch(7, 4000, d)
    weights = np.stack([weights_of("wide", 4000)] * 7)
    agree(X, 20, weights=weights, stop=stopping.Inertia(drop=1.0))
    agree(X, 20, init="random")
    init = X[:, :20].clone()
    init[4, 17] = 1e3
    agree(X, 20, init=init)
    agree(X, 20, init=init, empty="keep")
    with pytest.raises(EmptyClusterError) as caught:
        k_means_batched(X, 20, init=init, empty="error")
    refused = [b for b in range(7) if has_an_empty_cluster(X[b], init[b])]
    assert 4 in refused
    assert caught.value.__notes__ == [f"This is member {refused[0]} of the batch."]
    # An error leaves no stream in disorder.
    agree(X, 20)


@pytest.mark.parametrize("empty", ["relocate", "keep"])
def test_members_that_have_little_in_common(empty):
    """They end at different iterations, or need other sums, or have clusters to fill."""
    X = batch(9, 4000, 24) * 2.0 ** torch.arange(-4, 5, device="cuda")[:, None, None]
    X[2, 5] = X[6, 7] = 2.0**-60
    X[7] = X[7, :40].repeat(100, 1)
    init = X[:, :60:2].clone()
    init[3, 17] = 1e5
    n_iter = agree(X, 30, init=init, empty=empty)[3]
    assert len(set(n_iter.tolist())) > 3


def test_arrays_on_the_host_go_there_and_back():
    X = batch(5, 30_000, 20)
    found = k_means_batched(X.cpu(), 30, device="cuda", random_state=0)
    for array, expected in zip(found, agree(X, 30)):
        assert isinstance(array, np.ndarray)
        assert (array == on_host(expected)).all()


def test_work_waits_for_the_stream_that_makes_the_rows_and_is_waited_for():
    X = batch(6, 20_000, 20)
    expected = k_means_batched(X, 30, random_state=0)
    rows = torch.zeros_like(X)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(200_000_000)
        rows.copy_(X)
        found = k_means_batched(rows, 30, random_state=0)
        same = [(a == b).all() for a, b in zip(found, expected)]
        rows.zero_()
    assert all(map(bool, same))


def test_the_same_bits_again_and_again():
    X = batch(16, 10_000, 16)
    answers = {
        tuple(on_host(array).tobytes() for array in k_means_batched(X, 64, random_state=0))
        for _ in range(5)
    }
    assert len(answers) == 1


def test_another_gpu_than_the_current_one():
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    X = batch(5, 20_000, 20)
    for array, expected in zip(k_means_batched(X.to("cuda:1"), 30, random_state=0), agree(X, 30)):
        assert array.device.index == 1
        assert (on_host(array) == on_host(expected)).all()
    assert torch.cuda.current_device() == 0
