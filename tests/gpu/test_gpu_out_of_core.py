"""Rows that exceed the memory of a real GPU, or what it may take: against the CPU, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, assign, kmeans_plusplus, stopping
from table import answer, blobs, weights_of
from tight import for_fit, tight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)

MEGABYTE = 10**6


# Bytes that clusters take for each number of a centre, at most, of few features and of more.
CLUSTERS = 4096, 512


@pytest.fixture
def free(monkeypatch):
    """Return a function that leaves room for a share of the rows beside k clusters and blocks.

    A GPU then does not hold all rows in any case, however few there are.
    """
    from lloydia.backends.cuda.out_of_core import group as out_of_core
    from lloydia.backends.cuda.out_of_core.room import Room
    from lloydia.backends.cuda.rows import memory

    monkeypatch.setattr(memory, "fits", lambda *rows: False)

    def limit(X, k, share, weighted=False):
        n, d = X.shape
        wanted = share * X.nbytes + CLUSTERS[d > 8] * k * (d + 1)
        low, high = 0, 1 << 50
        while high - low > 1000:
            middle = (low + high) // 2
            try:
                enough = Room.of(n, d, X.itemsize, weighted, middle).left >= wanted
            except MemoryError:
                enough = False
            low, high = (low, middle) if enough else (middle, high)
        monkeypatch.setattr(out_of_core, "free_bytes", lambda device, needed: high)

    return limit


def rows_as(kind, n, d):
    """Return rows on the host, and the type of theirs that half precision may hold exactly."""
    X = blobs(n, d, "float64")
    if kind in ("float16", "bfloat16"):
        return torch.from_numpy(X).to(getattr(torch, kind)).float().numpy()
    return X.astype(kind)


def agree(X, k, weights=None, **parameters):
    expected = KMeans(k, device="cpu", **parameters).fit(X, sample_weight=weights)
    model = KMeans(k, device="cuda", **parameters).fit(X, sample_weight=weights)
    assert answer(model) == answer(expected)
    return model


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [
        (600_000, 3, 9),
        (400_000, 8, 100),
        (300_000, 33, 300),
        (100_000, 128, 257),
        (20_000, 770, 40),
    ],
    ids=str,
)
def test_blocks_give_the_bits_of_the_cpu(n, d, k, kind, free, capsys):
    X, weights = rows_as(kind, n, d), weights_of("wide", n)
    common = {"init": X[:: n // k][:k], "max_iter": 6, "tol": 0}
    expected = [
        answer(KMeans(k, **common).fit(X, sample_weight=given)) for given in (None, weights)
    ]
    # Next to nothing; some rows, or copies of some; copies of all; all rows, if they are narrow.
    for share in (0, 0.3, 0.55, 0.8):
        free(X, k, share)
        # Watched runs measure every row in every iteration; the others send few rows.
        found = KMeans(k, device="cuda", **common).fit(X)
        assert answer(found) == expected[0]
        free(X, k, share, weighted=True)
        found = KMeans(k, device="cuda", verbose=1, **common).fit(X, sample_weight=weights)
        assert answer(found) == expected[1]
        assert "out of core on cuda:0" in capsys.readouterr().out


@pytest.mark.parametrize("d", [3, 40])
def test_another_gpu_than_the_current_one(d, free, capsys):
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    X = blobs(200_000, d, "float32")
    free(X, 12, 0.3)
    expected = KMeans(12, init=X[:12], max_iter=5, device="cpu").fit(X)
    model = KMeans(12, init=X[:12], max_iter=5, device="cuda:1", verbose=1).fit(X)
    assert "out of core on cuda:1" in capsys.readouterr().out
    assert answer(model) == answer(expected)
    assert (model.transform(X[:1000]) == expected.transform(X[:1000])).all()


@pytest.mark.parametrize("init", ["k-means++", "random", "farthest", "k-means||"])
@pytest.mark.parametrize("d", [3, 40])
def test_seedings(init, d, free):
    X = blobs(400_000, d, "float32")
    for weights in (weights_of("wide", len(X)), None):
        free(X, 12, 0.55, weights is not None)
        agree(X, 12, weights, init=init, n_init=2, random_state=4, max_iter=5)
    seeds = [kmeans_plusplus(X, 9, random_state=0, device=name)[1] for name in ("cuda", "cpu")]
    assert (seeds[0] == seeds[1]).all()


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("empty", ["relocate", "keep"])
def test_empty_clusters_and_stop_rules(empty, d, free):
    X = blobs(400_000, d, "float32")
    free(X, 16, 0.55)
    far = np.vstack([X[:9], np.full((7, d), 1e3, dtype=X.dtype)])
    for rule in (stopping.Labels(0.01), stopping.Inertia(drop=1.0), stopping.Centers(1e-3)):
        agree(X, 16, init=far, empty=empty, stop=rule)


def test_prediction_distances_and_score(free):
    X = blobs(400_000, 40, "float32")
    expected = KMeans(20, init=X[:20], max_iter=2).fit(X)
    model = KMeans(20, init=X[:20], max_iter=2, device="cuda").fit(X)
    free(X, 20, 0.3)
    assert (model.predict(X) == expected.predict(X)).all()
    assert (model.transform(X) == expected.transform(X)).all()
    assert model.score(X) == expected.score(X)
    labels, inertia = assign(X, X[:7], device="cuda")
    assert inertia == assign(X, X[:7])[1]
    assert (labels == assign(X, X[:7])[0]).all()


def test_chunks_and_memory_maps(free, tmp_path):
    X = blobs(400_000, 40, "float32")
    np.save(tmp_path / "X.npy", X)
    free(X, 20, 0.55)
    model = KMeans(20, init="k-means||", random_state=0, max_iter=4, device="cuda")
    expected = answer(KMeans(20, init="k-means||", random_state=0, max_iter=4).fit(X))
    assert answer(model.fit(np.load(tmp_path / "X.npy", mmap_mode="r"))) == expected
    source = tight(tmp_path / "X.npy", for_fit(model), 3, block=50_000)
    assert answer(model.fit(source)) == expected


@pytest.mark.parametrize(
    ("n", "d", "sizes"),
    # Copies of 128 features; of 120 one and a bit would fit into the place of rows.
    [(1_200_000, 128, (350, 600, 900)), (2_400_000, 120, (900,))],
)
def test_what_a_process_may_take_is_not_exceeded(n, d, sizes):
    X = blobs(n, d, "float32")
    start, whole = X[:100], torch.cuda.get_device_properties(0).total_memory
    expected = answer(KMeans(100, init=start, max_iter=4).fit(X))
    torch.cuda.empty_cache()
    try:
        for size in sizes:
            used = torch.cuda.memory_reserved()
            torch.cuda.set_per_process_memory_fraction((used + size * MEGABYTE) / whole)
            torch.cuda.reset_peak_memory_stats()
            model = KMeans(100, init=start, max_iter=4, device="cuda")
            assert answer(model.fit(X)) == expected
            assert torch.cuda.max_memory_reserved() <= used + size * MEGABYTE
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_the_same_bits_again_and_again(free):
    X = blobs(300_000, 64, "float32")
    free(X, 100, 0.6)
    found = {answer(KMeans(100, init=X[:100], max_iter=8, device="cuda").fit(X)) for _ in range(10)}
    assert len(found) == 1
