"""Several GPUs of one host against the CPU, bit for bit; with one GPU, two parts share it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, assign, kmeans_plusplus, stopping
from lloydia.data.arrays import on_host
from lloydia.data.device_arrays import n_distinct
from lloydia.loop.run import run_iterations
from lloydia.seeding import SEEDINGS
from nasty import FLAVOURS, rows_of
from table import answer, blobs, weights_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)

TYPES = ("float16", "bfloat16", "float32", "float64")
# For each way to scan: few features, narrow and wide rows, few and many centres.
SHAPES = ((20_011, 2, 9), (20_011, 8, 300), (9_973, 33, 1000), (5_003, 128, 257), (3_001, 770, 40))


@pytest.fixture
def several():
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")


def agree(rows, X, k, weights=None, device="cuda:all", **parameters):
    expected = KMeans(k, device="cpu", **parameters).fit(X, sample_weight=weights)
    model = KMeans(k, device=device, **parameters).fit(rows, sample_weight=weights)
    assert answer(model) == answer(expected)
    return model


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_parts_on_one_gpu_give_the_bits_of_the_cpu(shape, dtype):
    from lloydia.backends import choose
    from lloydia.backends.cuda.multi_gpu.gpus import distribute_rows

    n, d, k = shape
    rows = torch.as_tensor(blobs(n, d, "float32")).to(getattr(torch, dtype)).cuda()
    start = on_host(rows[:k])
    for weights in (None, weights_of("wide", n)):
        found = []
        for engine in (
            choose("cpu", on_host(rows), weights, None),
            distribute_rows(rows, weights, ["cuda:0"] * 3),
        ):
            seeds = [s(engine, 9, np.random.RandomState(1)).tolist() for s in SEEDINGS.values()]
            result = run_iterations(
                engine, start, algorithm="lloyd", rule=stopping.Labels(), max_iter=12,
                empty="relocate", history=True,
            )  # fmt: skip
            arrays = [on_host(array).tobytes() for array in (result.labels, result.centers)]
            numbers = result.inertia, result.n_iter, result.reason, result.history
            found.append((engine.mean_variance(), seeds, arrays, numbers))
        assert found[0] == found[1]


@pytest.mark.parametrize("init", ["k-means++", "random", "farthest", "k-means||"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_gpus_give_the_bits_of_the_cpu(shape, init, several):
    n, d, k = shape
    X = blobs(n, d, "float32")
    last = torch.cuda.device_count() - 1
    common = {"init": init, "n_init": 1, "random_state": 4, "max_iter": 20}
    model = agree(X, X, k, weights_of("wide", n), **common)
    assert isinstance(model.labels_, np.ndarray)
    model = agree(torch.as_tensor(X).to(f"cuda:{last}"), X, k, **common)
    assert model.labels_.device.index == model.cluster_centers_.device.index == last
    assert (model.predict(X) == on_host(model.labels_)).all()


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("empty", ["relocate", "keep"])
def test_empty_clusters(empty, d, several):
    X = blobs(10_000, d, "float32")
    far = np.vstack([X[:9], np.full((7, d), 1e3, dtype=X.dtype)])
    for weights in (None, weights_of("wide", len(X))):
        agree(X, X, 16, weights, init=far, empty=empty)


@pytest.mark.parametrize("d", [3, 40])
def test_stop_rules_and_distances(d, several):
    X = blobs(10_000, d, "float32")
    for rule in (stopping.Labels(0.01), stopping.Inertia(drop=1.0), stopping.Centers(1e-3)):
        agree(X, X, 20, init=X[:20], stop=rule, device="cuda:1,0")
    model = KMeans(20, init=X[:20], max_iter=2, device="cuda:1,0").fit(X)
    expected = KMeans(20, init=X[:20], max_iter=2).fit(X)
    assert (model.transform(X) == expected.transform(X)).all()
    assert model.score(X) == expected.score(X)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_nasty_rows(flavour, several):
    for d in (3, 20):
        X = rows_of(flavour, 2000, d, "float64", seed=d)
        agree(X, X, 12, random_state=0, max_iter=10)


def test_rows_that_a_stream_makes_on_each_gpu(several):
    X = blobs(200_000, 32, "float32")
    given = torch.as_tensor(X).to("cuda:1")
    rows = torch.zeros_like(given)
    torch.cuda.synchronize(1)
    with torch.cuda.device(1), torch.cuda.stream(torch.cuda.Stream(1)):
        torch.cuda._sleep(200_000_000)
        rows.copy_(given)
        agree(rows, X, 50, init=X[:50], max_iter=5)
    assert torch.cuda.current_device() == 0


def test_labels_of_another_gpu_than_the_current_one_are_counted_there(several):
    labels = torch.zeros(5000, dtype=torch.int32, device="cuda:1")
    coming = torch.arange(5000, dtype=torch.int32, device="cuda:1") % 7
    torch.cuda.synchronize(1)
    with torch.cuda.device(1):
        torch.cuda._sleep(200_000_000)
        labels.copy_(coming)
    assert n_distinct(labels, 9) == 7
    assert torch.cuda.current_device() == 0


def test_fits_of_rows_on_another_gpu_that_come_to_max_iter(several):
    X = blobs(20_011, 2, "float32")
    expected = answer(KMeans(9, init="random", random_state=4, max_iter=20).fit(X))
    for _ in range(20):
        rows = torch.as_tensor(X).to("cuda:1")
        model = KMeans(9, init="random", random_state=4, max_iter=20, device="cuda:all").fit(rows)
        assert answer(model) == expected


def test_the_same_bits_again_and_again(several):
    X = torch.as_tensor(blobs(300_000, 24, "float32")).cuda()
    answers = {answer(KMeans(100, random_state=0, device="cuda:all").fit(X)) for _ in range(5)}
    assert len(answers) == 1


def test_functions_take_several_gpus(several):
    X = blobs(5000, 6, "float32")
    labels, inertia = assign(X, X[:7], device="cuda:all")
    expected = assign(X, X[:7])
    assert (labels == expected[0]).all()
    assert inertia == expected[1]
    seeds = [kmeans_plusplus(X, 20, random_state=0, device=name)[1] for name in ("cuda:all", "cpu")]
    assert (seeds[0] == seeds[1]).all()
