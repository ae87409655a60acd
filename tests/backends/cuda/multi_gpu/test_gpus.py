"""Rows on several GPUs, and GPUs as parts: the bits of the oracle, whatever the parts are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, assign, kmeans_plusplus, stopping
from lloydia.backends import choose
from lloydia.backends.cpu.part import CPUPart
from lloydia.backends.cuda.multi_gpu import threads as threads_of
from lloydia.backends.cuda.multi_gpu.part import place_part
from lloydia.backends.cuda.runtime import devices, forms
from lloydia.backends.group import Here
from lloydia.backends.parts import Parts
from lloydia.loop.empty import EmptyClusterError
from lloydia.loop.run import run_iterations
from lloydia.seeding import SEEDINGS
from table import answer, blobs, weights_of

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


@pytest.fixture(autouse=True)
def three_gpus(monkeypatch):
    """Have three GPUs: where kernels are interpreted the host is all of them."""
    monkeypatch.setattr(devices, "_count", lambda: 3)


def agree(X, k, weights=None, device="cuda:all", **parameters):
    oracle = KMeans(k, device="reference", **parameters).fit(X, sample_weight=weights)
    model = KMeans(k, device=device, **parameters).fit(X, sample_weight=weights)
    assert answer(model) == answer(oracle)
    assert model.converged_ == oracle.converged_
    return model, oracle


def facts(engine, start):
    """Return what an engine says of its rows, its seeds (of few features) and a run."""
    few = start.shape[1] < 9
    names = SEEDINGS if few else ()
    seeds = [SEEDINGS[name](engine, 4, np.random.RandomState(2)).tolist() for name in names]
    result = run_iterations(
        engine, start, algorithm="lloyd", rule=stopping.Labels(), max_iter=3 if few else 2,
        empty="relocate", history=True,
    )  # fmt: skip
    answers = result.inertia, result.n_iter, result.reason, result.history
    arrays = result.labels, result.centers, engine.distances(start)
    return engine.mean_variance(), seeds, answers, [np.asarray(array).tobytes() for array in arrays]


@pytest.mark.parametrize(
    ("d", "dtype", "weighted", "place"),
    [
        (2, "float32", False, "here"),
        (2, "float64", True, "gpus"),
        (10, "float64", False, "here"),
        (10, "float32", True, "gpus"),
    ],
)
def test_gpus_and_processors_may_be_parts_of_one_engine(d, dtype, weighted, place):
    X = blobs(40, d, dtype)
    X[:9] *= 1e6
    weights = weights_of("wide", 40) if weighted else None
    start = np.vstack([X[:3], np.full((2, d), 1e7, dtype=dtype)])
    expected = facts(choose("reference", X, weights, None), start)
    if place == "gpus":
        engine = choose("cuda:1,0", X, weights, None)
    else:
        engine = Parts(Here([CPUPart(X[:7], None, 1), place_part(X[7:], None, "cuda")]))
    assert facts(engine, start) == expected


def test_the_inertia_of_an_iteration_that_relocates_is_kept():
    X = blobs(40, 2, "float32")
    start = np.vstack([X[:3], np.full((2, 2), 1e7)])
    expected = facts(choose("reference", X, None, None), start)
    assert facts(choose("cuda", X, None, None), start) == expected


def test_no_inertia_is_computed_of_an_iteration_that_was_never_done():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])
    engine = choose("cuda:0,1", X, None, None)
    engine.start(X[[0, 2]], "lloyd")
    for part in engine.group.parts:
        # The squared distances to these add up to more than a float64.
        part.own_run.run.memory.history[1:] = 9.2e153
    inertias = [engine.iterate(True).cost for _ in range(4)]
    # Nothing changed in the second: there the devices stopped.
    assert inertias == [2.0, 1.0, None, None]
    assert engine.run.report(2, inertias[1]).n_changed == 0
    engine.rewind(2)
    assert engine.inertia() == 1.0


def test_more_candidates_than_are_weighed_at_a_time():
    X = blobs(60, 3, "float32")
    found = [
        kmeans_plusplus(X, 3, random_state=1, n_local_trials=17, device=device)[1].tolist()
        for device in ("reference", "cuda:0,1")
    ]
    assert found[0] == found[1]


def test_a_draw_beyond_the_first_tile():
    X = blobs(2600, 2, "float32")
    found = [
        kmeans_plusplus(X, 4, random_state=3, device=device)[1].tolist()
        for device in ("reference", "cuda:0,1")
    ]
    assert found[0] == found[1]


def test_several_gpus_give_the_bits_of_the_oracle():
    X, weights = blobs(40, 2, "float32"), weights_of("wide", 40)
    model, _ = agree(X, 4, weights, random_state=4, max_iter=4, tol=0)
    assert (model.predict(X) == model.labels_).all()
    assert model.device_ == "cuda:0,1,2"


@pytest.mark.parametrize("empty", ["keep", "error"])
def test_empty_clusters(empty):
    X = blobs(30, 2, "float64")
    far = np.vstack([X[:2], np.full((2, 2), 1e3)])
    if empty == "error":
        with pytest.raises(EmptyClusterError):
            KMeans(4, init=far, empty=empty, device="cuda:0,1").fit(X)
        return
    agree(X, 4, weights_of("wide", 30), "cuda:0,1", init=far, empty=empty, max_iter=3)


@pytest.mark.parametrize(
    "stop",
    [stopping.Labels(0.05), stopping.Inertia(drop=1.0) | stopping.Labels(), stopping.Centers(1e-3)],
    ids=str,
)
def test_stop_rules(stop):
    X = blobs(40, 2, "float32")
    common = {"stop": stop, "init": X[:4], "max_iter": 5, "device": "cuda:0,2"}
    model, oracle = agree(X, 4, **common)
    assert getattr(model, "inertia_history_", None) == getattr(oracle, "inertia_history_", None)


def test_what_is_counted_is_counted_once():
    X = blobs(40, 3, "float32")
    several, one = (
        KMeans(4, init=X[:4], max_iter=2, tol=0, device=device).fit(X)
        for device in ("cuda:0,1", "cuda")
    )
    assert several.n_distances_ == one.n_distances_ == 40 * 4 * 3
    assert several.n_rechecked_ == one.n_rechecked_


def test_prediction_distances_and_score():
    X, others = blobs(40, 4, "float32"), blobs(31, 4, "float32", seed=1)
    model, oracle = agree(X, 4, init=X[:4], max_iter=1, device="cuda:0,1")
    assert (model.predict(others) == oracle.predict(others)).all()
    assert (model.transform(others) == oracle.transform(others)).all()
    weights = weights_of("wide", 31)
    assert model.score(others, sample_weight=weights) == oracle.score(others, sample_weight=weights)
    labels, inertia = assign(others, X[:3], device="cuda:0,1")
    expected = assign(others, X[:3], device="reference")
    assert (labels == expected[0]).all()
    assert inertia == expected[1]


def test_a_tensor_gives_tensors_where_it_lives(device):
    X = blobs(30, 3, "float32")
    rows = torch.from_numpy(X).to(device)
    common = {"init": X[:3], "max_iter": 2}
    model = KMeans(3, device="cuda:0,1", **common).fit(rows)
    assert answer(model) == answer(KMeans(3, device="reference", **common).fit(X))
    assert model.labels_.device == model.transform(rows).device == rows.device


def test_fewer_rows_than_gpus_need_fewer_gpus():
    X = blobs(2, 3, "float32")
    assert agree(X, 1, random_state=0)[0].device_ == "cuda:0,1"


def test_one_gpu_is_no_group(monkeypatch):
    monkeypatch.setattr(devices, "_count", lambda: 1)
    assert choose("cuda:all", blobs(20, 3, "float32"), None, None).name == "cuda:0"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cuda:0,3", "device='cuda:0,3' is not there: this machine has cuda:0 to cuda:2;"),
        ("cuda:1,1", "device='cuda:1,1' names a GPU twice"),
        ("cuda:0,", "Unknown device 'cuda:0,'"),
    ],
)
def test_gpus_that_are_not_there(name, message):
    with pytest.raises(ValueError, match=message):
        KMeans(2, device=name).fit(blobs(20, 3, "float32"))


def test_without_a_gpu_all_of_them_is_an_error(monkeypatch):
    monkeypatch.setattr(devices, "_count", lambda: 0)
    with pytest.raises(ValueError, match="device='cuda:all' needs a GPU"):
        KMeans(2, device="cuda:all").fit(blobs(20, 3, "float32"))


def test_rows_on_a_gpu_that_is_left_out():
    elsewhere = type("Rows", (torch.Tensor,), {"device": torch.device("cuda:2")})(torch.empty(1))
    assert devices.find_several("cuda:1,2", elsewhere) == ["cuda:1", "cuda:2"]
    with pytest.raises(ValueError, match=r"X is on cuda:2, which device='cuda:0,1' leaves out"):
        devices.find_several("cuda:0,1", elsewhere)


def test_a_share_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(devices, "LITTLE", 0)
    monkeypatch.setattr(devices, "free_bytes", lambda device, needed: 300)
    message = (
        r"bytes of GPU memory are needed and 300 are free.* "
        r"with device='cuda:\d', one GPU reads rows on the CPU in blocks"
    )
    with pytest.raises(MemoryError, match=message):
        KMeans(2, device="cuda:all").fit(blobs(60, 3, "float32"))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_by_the_gpu_that_has_it(value, device):
    rows = torch.from_numpy(blobs(30, 3, "float32")).to(device)
    rows[20, 1] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        KMeans(2, device="cuda:all").fit(rows)


def test_more_rows_than_can_be_counted(monkeypatch):
    monkeypatch.setattr("lloydia.backends.cuda.multi_gpu.gpus.MAX_ROWS", 10)
    with pytest.raises(
        ValueError, match="X has 20 rows, and GPUs take at most 10 together: use device='cpu'"
    ):
        KMeans(2, device="cuda:all").fit(blobs(20, 3, "float32"))


def test_threads_copy_from_the_home_of_the_rows_in_its_stream(monkeypatch):
    entered = []

    class Entered:
        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            entered.append(self.stream)

        def __exit__(self, *_):
            entered.append(None)

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"own of {device}")
    monkeypatch.setattr(torch.cuda, "stream", Entered)
    threads = threads_of.Threads.__new__(threads_of.Threads)
    threads.pool = threads_of.ThreadPoolExecutor(1)
    threads.home = torch.device("cuda", 0)
    assert threads._submit(torch.device("cuda", 1), max, 2, 3).result() == 3
    # A copy waits for both: what made the rows is queued in the caller's stream of their GPU.
    assert entered == ["own of cuda:0", "own of cuda:1", None, None]


def test_threads_know_what_to_do_when_a_kernel_is_needed_first():
    threads = threads_of.Threads.__new__(threads_of.Threads)
    threads.pool, threads.home = threads_of.ThreadPoolExecutor(1), None
    host = torch.device("cpu")
    with threads.compiling(list):
        assert threads._submit(host, forms._at_first.get).result() is list
        assert forms._at_first.get() is list
    assert threads._submit(host, forms._at_first.get).result() is None
    assert forms._at_first.get() is None
