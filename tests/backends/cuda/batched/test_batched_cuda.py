"""Batches on a GPU, and runs of one engine one after the other: kernels are interpreted."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from lloydia import KMeans, k_means_batched, stopping
from lloydia.backends import choose
from lloydia.backends.cuda import run_setup
from lloydia.backends.cuda.batched import streams as lanes
from lloydia.data.arrays import on_host
from lloydia.loop.empty import EmptyClusterError
from lloydia.loop.run import run_iterations, steps
from table import blobs, weights_of

torch = pytest.importorskip("torch")


class Foreign:
    """A batch of another library on the GPU, as CuPy's are: it speaks DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    shape = property(lambda self: self.tensor.shape)

    def __getitem__(self, key):
        return Foreign(self.tensor[key])

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __array_namespace__(self):
        return SimpleNamespace(from_dlpack=lambda array: Foreign(torch.from_dlpack(array)))


def batch(size, n, d, dtype):
    return np.stack([blobs(n, d, dtype, seed=b) for b in range(size)])


def agree(found, X, k, seed=0, weights=None, **options):
    centers, labels, inertia, n_iter = map(on_host, found)
    for b, rows in enumerate(X):
        one = KMeans(k, n_init=1, random_state=seed + b, device="reference", **options)
        one.fit(rows, sample_weight=None if weights is None else weights[b])
        assert centers[b].tobytes() == one.cluster_centers_.tobytes()
        assert (labels[b] == one.labels_).all()
        assert (inertia[b], n_iter[b]) == (one.inertia_, one.n_iter_)


@pytest.mark.parametrize(("d", "dtype"), [(2, "float32"), (10, "float64")])
def test_members_have_the_bits_of_their_own_fits(d, dtype, device, monkeypatch):
    # More members than lanes: some follow others.
    monkeypatch.setattr(lanes, "COUNT", 2)
    X = batch(5 if d == 2 else 3, 20, d, dtype)
    rows = torch.as_tensor(X, device=device)
    init = "k-means++" if d == 2 else "first"
    found = k_means_batched(rows, 3, init=init, random_state=4, max_iter=2)
    for array in found:
        assert isinstance(array, torch.Tensor)
        assert array.device == rows.device
    assert found[0].dtype == rows.dtype
    assert found[1].dtype == torch.int32
    agree(found, X, 3, 4, init=init, max_iter=2)


def test_arrays_on_the_host_go_there_and_back():
    X = batch(3, 24, 2, "float32")
    weights = np.stack([weights_of("wide", 24)] * 3)
    stop = stopping.Inertia(drop=1.0)
    options = {"sample_weight": weights, "stop": stop}
    found = k_means_batched(X, 3, device="cuda", random_state=0, **options)
    assert all(isinstance(array, np.ndarray) for array in found)
    agree(found, X, 3, weights=weights, stop=stop)


def test_layouts_and_half_precision(device):
    X = batch(2, 24, 3, "float32")
    wide = torch.as_tensor(X, device=device).half()
    for rows in (wide, wide.transpose(0, 2).contiguous().transpose(0, 2)):
        found = k_means_batched(rows, 3, random_state=0, max_iter=2)
        assert found[0].dtype == torch.float32
        agree(found, on_host(wide), 3, max_iter=2)


def test_starts_on_the_device_and_empty_clusters(device):
    X = batch(2, 24, 2, "float64")
    init = X[:, :4].copy()
    init[1, 3] = 1e3
    rows, start = torch.as_tensor(X, device=device), torch.as_tensor(init, device=device)
    centers, labels, inertia, n_iter = map(on_host, k_means_batched(rows, 4, init=start))
    for b in range(2):
        one = KMeans(4, init=init[b], device="reference").fit(X[b])
        assert centers[b].tobytes() == one.cluster_centers_.tobytes()
        assert (labels[b] == one.labels_).all()
        assert (inertia[b], n_iter[b]) == (one.inertia_, one.n_iter_)
    with pytest.raises(EmptyClusterError) as caught:
        k_means_batched(rows, 4, init=start, empty="error")
    assert caught.value.__notes__ == ["This is member 1 of the batch."]


@pytest.mark.parametrize("d", [2, 10])
@pytest.mark.parametrize("lone", [False, True])
def test_a_member_that_is_not_finite_is_named(d, lone, device):
    X = batch(3, 24, d, "float32")
    X[1, 5, 1] = np.nan
    # Members with weights are fitted one by one.
    weights = np.ones((3, 24)) if lone else None
    with pytest.raises(ValueError, match="contains NaN") as caught:
        k_means_batched(torch.as_tensor(X, device=device), 3, sample_weight=weights)
    assert caught.value.__notes__ == ["This is member 1 of the batch."]


def test_a_member_with_empty_clusters_begins_where_it_began(device):
    X = batch(2, 10, 9, "float32")
    # Drawn rows are alike: clusters are empty, and each member is fitted again, by itself.
    X[:, :8] = X[:, :1]
    draw_alike(X, 5, device)


def test_members_draw_from_one_generator_in_order(device):
    X = batch(3, 10, 9, "float32")
    # The first and the last one can be fitted together.
    X[1, 0] = 1e30
    draw_alike(X, 2, device)


def draw_alike(X, k, device):
    rows, options = torch.from_numpy(X).to(device), {"init": "random", "max_iter": 1}
    one, other = np.random.RandomState(4), np.random.RandomState(4)
    found = k_means_batched(rows, k, random_state=one, **options)
    expected = k_means_batched(X, k, random_state=other, device="cpu", **options)
    assert (on_host(found[0]) == expected[0]).all()
    # As many numbers were drawn.
    assert one.randint(1 << 30) == other.randint(1 << 30)


def test_another_library_gets_its_own_arrays(device):
    X = torch.as_tensor(batch(2, 24, 2, "float32"), device=device)
    found = k_means_batched(Foreign(X), 3, random_state=0, max_iter=2)
    for array, expected in zip(found, k_means_batched(X, 3, random_state=0, max_iter=2)):
        assert isinstance(array, Foreign)
        assert (array.tensor == expected).all()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X[0], r"X has shape \(24, 2\) and must have the shape"),
        (lambda X: X[:, :0], r"X has shape \(2, 0, 2\)"),
        (lambda X: X + 1j, "Complex data not supported"),
        (lambda X: torch.where(X > 1, torch.nan, X), "Input X contains NaN"),
    ],
)
def test_bad_rows(spoil, message, device):
    X = torch.as_tensor(batch(2, 24, 2, "float32"), device=device)
    with pytest.raises(ValueError, match=message):
        k_means_batched(spoil(X), 3)


@pytest.mark.parametrize("d", [2, 10])
def test_what_is_waited_for_has_been_queued(d, device):
    X = blobs(24, d, "float32")
    engine = choose("cuda", X, None, None)
    options = {"algorithm": "lloyd", "rule": stopping.Labels(), "max_iter": 3, "empty": "keep"}
    run = steps(engine, X[:3], **options)
    late = next(run)
    late.begin()
    assert engine.iterations.launched == engine.iterations.queued == 3
    late.begin()
    assert engine.iterations.launched == 3
    assert late.result().iteration == 1


@pytest.mark.parametrize("d", [2, 12])
def test_a_run_halts_before_each_wait(d, monkeypatch):
    # Few iterations are on their way, and then waited for.
    monkeypatch.setattr(run_setup, "lag_of", lambda data, k: 1)
    X = np.random.default_rng(0).normal(size=(100, d)).astype("float32")
    engine, waits = choose("cuda", X, None, None), []
    rule = stopping.Shift(0.0)
    run = steps(engine, X[:5], algorithm="lloyd", rule=rule, max_iter=9, empty="relocate")
    late, wait = next(run), engine.run.wait_continuing
    monkeypatch.setattr(engine.run, "wait_continuing", lambda *a: waits.append(a) or wait(*a))
    turns = 0
    while late is not None:
        late.begin()
        # What comes next is on its way, and the host has waited for nothing since.
        assert engine.iterations.launched > engine.iterations.reported
        assert len(waits) == turns
        late, turns = next(run), turns + 1
    assert turns >= 4
    oracle = KMeans(5, init=X[:5], max_iter=9, tol=0, device="reference").fit(X)
    assert next(run, None) is None
    assert on_host(engine.centers()).tobytes() == oracle.cluster_centers_.tobytes()


@pytest.mark.parametrize("d", [2, 10])
def test_a_result_stays_when_the_engine_starts_again(d):
    X = blobs(24, d, "float32")
    engine = choose("cuda", X, None, None)
    options = {"algorithm": "lloyd", "rule": stopping.Labels(), "empty": "relocate"}
    first = run_iterations(engine, X[:3], max_iter=1, **options)
    kept = [on_host(array).copy() for array in (first.labels, first.centers)]
    run_iterations(engine, X[5:9], max_iter=1, **options)
    for array, expected in zip((first.labels, first.centers), kept):
        assert (on_host(array) == expected).all()


@pytest.mark.parametrize("where", ["cuda", "cpu", "reference"])
def test_whether_every_cluster_has_a_row_is_known_without_counting(where):
    X = blobs(24, 2, "float32")
    engine = choose(where, X, None, None)
    options = {"algorithm": "lloyd", "rule": stopping.Labels(), "empty": "keep"}
    assert run_iterations(engine, X[10:13], max_iter=50, **options).full
    # Labels of a last assignment are nobody's report; a GPU looks at them with the inertia.
    assert run_iterations(engine, X[10:13], max_iter=1, **options).full == (where == "cuda")
    far = np.concatenate([X[:2], np.full((1, 2), 1e3, dtype=X.dtype)])
    assert not run_iterations(engine, far, max_iter=50, **options).full


def test_labels_for_other_centres_do_not_depend_on_the_run_before():
    X = blobs(24, 10, "float32", seed=0)
    engine, fresh = (choose("cuda", X, None, None) for _ in range(2))
    run_iterations(
        engine, X[:3], algorithm="lloyd", rule=stopping.Labels(), empty="relocate", max_iter=2
    )
    engine.classify(X[3:6])
    fresh.classify(X[3:6])
    assert float(engine.inertia()) == float(fresh.inertia())


def test_rows_are_measured_before_a_run_that_was_begun_is_launched():
    X = blobs(24, 2, "float32", seed=0)
    engine, fresh = (choose("cuda", X, None, None) for _ in range(2))
    engine.start(X[:3], "lloyd")
    assert engine.mean_variance() == fresh.mean_variance()
    assert engine.magnitudes().largest.tolist() == fresh.magnitudes().largest.tolist()
