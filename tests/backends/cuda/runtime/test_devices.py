"""Which GPU is meant, whether data fit, and how they get there."""

from __future__ import annotations

import sys
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from triton.runtime import interpreter

import lloydia.backends
from lloydia import KMeans
from lloydia.backends import choose
from lloydia.backends.cuda import engine as cuda_engine
from lloydia.backends.cuda import iterations, run_setup
from lloydia.backends.cuda.out_of_core.gathered import Gathered
from lloydia.backends.cuda.rows import memory as row_memory
from lloydia.backends.cuda.runtime import devices, own_device, upload
from lloydia.backends.cuda.seeding import seeder
from lloydia.stopping import Inertia

HOST = torch.device("cpu")
X = np.arange(12.0).reshape(6, 2)


def needed_of(engine):
    """Return the bytes that a run of two clusters takes beside an engine's rows."""
    return run_setup.needed_bytes(engine.data, 2, run_setup.lag_of(engine.data, 2))


@pytest.mark.parametrize(
    ("device", "count", "message"),
    [
        ("cuda", 0, "device='cuda' needs a GPU, and PyTorch finds none .*: use device='cpu'"),
        ("cuda:7", 4, "device='cuda:7' is not there: this machine has cuda:0 to cuda:3;"),
        ("cuda:1", 1, "this machine has cuda:0; use one of them or device='cpu'"),
    ],
)
def test_a_gpu_that_is_not_there(device, count, message, monkeypatch):
    monkeypatch.setattr(devices, "_count", lambda: count)
    with pytest.raises(ValueError, match=message):
        KMeans(2, device=device).fit(X)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:all", "cuda:0,1"])
def test_nothing_is_done_while_a_graph_is_captured(device, monkeypatch):
    monkeypatch.setattr(devices, "_count", lambda: 2)
    monkeypatch.setattr(devices, "INTERPRETED", False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    message = f"^device='{device}' cannot be used while a CUDA graph is captured"
    with pytest.raises(RuntimeError, match=message):
        KMeans(2, device=device).fit(X)
    with pytest.raises(RuntimeError, match=message):
        lloydia.k_means_batched(X[None], 2, device=device)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:all", "cuda:0,1"])
def test_gpus_of_amd_are_refused(device, monkeypatch):
    monkeypatch.setattr(devices, "INTERPRETED", False)
    monkeypatch.setattr(torch.version, "hip", "6.4.43")
    message = (
        rf"^device='{device}' needs an NVIDIA GPU, .* AMD's \(ROCm 6\.4\.43\): use device='cpu', "
        r"and copy an array on the GPU to the CPU \(X\.cpu\(\)"
    )
    with pytest.raises(ValueError, match=message):
        KMeans(2, device=device).fit(X)
    with pytest.raises(ValueError, match=message):
        lloydia.k_means_batched(X[None], 2, device=device)


@pytest.mark.parametrize(("device", "old"), [("cuda", 1), ("cuda:1", 1), ("cuda:all", 1)])
def test_an_older_gpu_than_the_kernels_are_for_is_refused(device, old, monkeypatch):
    monkeypatch.setattr(devices, "INTERPRETED", False)
    monkeypatch.setattr(devices, "_count", lambda: 3)
    monkeypatch.setattr(
        devices, "_model", lambda number: ("Tesla T4", (7, 5)) if number == old else ("A", (8, 0))
    )
    monkeypatch.setattr(torch.cuda, "current_device", lambda: old)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    message = (
        r"^cuda:1 is Tesla T4, of compute capability 7\.5, and Lloydia needs 8\.0 or newer: use "
        "device='cpu'"
    )
    with pytest.raises(ValueError, match=message):
        KMeans(2, device=device).fit(X)
    assert devices.find("cuda:0", X) == "cuda:0"


def test_rows_on_another_gpu(monkeypatch):
    monkeypatch.setattr(devices, "_count", lambda: 2)
    rows = torch.empty(1)
    elsewhere = type("Rows", (torch.Tensor,), {"device": torch.device("cuda:1")})(rows)
    assert devices.find("cuda", elsewhere) == devices.find("cuda:1", elsewhere) == "cuda:1"
    with pytest.raises(ValueError, match=r"X is on cuda:1.*copy X with X\.to\('cuda:0'\)"):
        devices.find("cuda:0", elsewhere)


def test_a_device_may_be_an_object_of_torch():
    assert KMeans(2, device=torch.device("cuda:0")).fit(X).device_ == "cuda:0"


def test_too_little_memory_names_both_numbers(monkeypatch):
    monkeypatch.setattr(devices, "LITTLE", 0)
    monkeypatch.setattr(devices, "free_bytes", lambda device, needed: 1000)
    devices.check_memory(1000, HOST)
    with pytest.raises(MemoryError, match="1,001 bytes of GPU memory are needed and 1,000 are"):
        devices.check_memory(1001, HOST)


@pytest.mark.parametrize(
    ("share", "needed", "found"),
    [(1.0, 600, 600), (1.0, 700, 750), (0.5, 100, 300), (0.9, 100, 700), (0.1, 100, 0)],
)
def test_what_is_free_heeds_what_a_process_may_take(share, needed, found, monkeypatch):
    monkeypatch.setattr(devices, "INTERPRETED", False)
    monkeypatch.setattr(devices, "_answers", {})
    for name, value in (
        ("mem_get_info", (600, 1000)),
        ("get_per_process_memory_fraction", share),
        ("memory_reserved", 350),
        ("memory_allocated", 200),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    assert devices.free_bytes(torch.device("cuda", 0), needed) == found


@pytest.mark.parametrize(
    ("needed", "share", "later", "times"),
    [(150, 1.0, 0.05, 1), (150, 1.0, 0.2, 2), (151, 1.0, 0.05, 2), (150, 0.9, 0.05, 3)],
)
def test_the_driver_is_not_asked_again_at_once(needed, share, later, times, monkeypatch):
    device, asked, shares, now = torch.device("cuda", 0), [], [1.0], [5.0]
    monkeypatch.setattr(devices, "INTERPRETED", False)
    monkeypatch.setattr(devices, "_answers", {})
    monkeypatch.setattr(devices.time, "monotonic", lambda: now[0])
    for name, found in (
        ("mem_get_info", lambda device: asked.append(device) or (600, 1000)),
        ("get_per_process_memory_fraction", lambda device: shares[0]),
        ("memory_reserved", lambda device: 0),
        ("memory_allocated", lambda device: 0),
    ):
        monkeypatch.setattr(torch.cuda, name, found)
    assert devices.free_bytes(device, 500) == 600
    now[0] += later
    shares[0] = share
    assert devices.free_bytes(device, needed) == 600
    assert len(asked) == times


@pytest.mark.parametrize("missing", ["torch", "triton"])
def test_without_the_extra_the_error_says_how_to_get_it(missing, monkeypatch):
    # The package of before, which an import in between replaces in its parent, comes back as well.
    monkeypatch.setattr(lloydia.backends, "cuda", lloydia.backends.cuda)
    for name in list(sys.modules):
        if name == missing or name.startswith("lloydia.backends.cuda"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"pip install torch triton, or use device='cpu'"):
        KMeans(2, device="cuda").fit(X)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("direct", [0, 1 << 20])
def test_any_strides_go_up_in_pieces(dtype, direct, monkeypatch):
    monkeypatch.setattr(upload, "PIECE", 100)
    monkeypatch.setattr(upload, "DIRECT", direct)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows = np.random.default_rng(0).normal(size=(101, 6)).astype(dtype)
    rows.flags.writeable = False
    for array in (
        rows,
        rows.T,
        rows[::-2, ::3],
        rows[:1],
        rows[:, 0],
        np.broadcast_to(rows[0], (9, 6)),
        rows.astype(rows.dtype.newbyteorder()),
        np.rec.fromarrays([rows[:, 0].astype("u1"), rows[:, 1]], names="a, b").b,
    ):
        tensor = upload.to_device(array, device)
        assert tensor.is_contiguous()
        assert (tensor.cpu().numpy() == array).all()
        assert tensor.cpu().numpy().dtype == dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rows_are_gathered_where_they_are_wanted(dtype):
    rows = np.random.default_rng(0).integers(-9, 9, size=(30, 6)).astype(np.float32)
    chosen = np.array([3, 3, 29, 0], dtype=np.int32)
    for X in (rows, rows.T.copy().T, rows[::-1, ::2]):
        out = np.full((4, X.shape[1]), 77, dtype=dtype)
        Gathered(X, chosen).fill(torch.from_numpy(out))
        assert (out == X[chosen]).all()


def test_memory_is_checked_again_once_the_number_of_clusters_is_known(monkeypatch):
    rows = np.random.default_rng(0).random((300, 9))
    engine = choose("cuda", rows, None, None)
    monkeypatch.setattr(devices, "LITTLE", 0)
    monkeypatch.setattr(devices, "free_bytes", lambda device, needed: needed_of(engine))
    before = needed_of(engine)
    engine.start(rows[:2], "lloyd")
    # The half-precision copies are there now.
    assert needed_of(engine) < before
    with pytest.raises(MemoryError, match="bytes of GPU memory are needed and"):
        engine.start(np.resize(rows, (400_000, 9)), "lloyd")


@pytest.mark.parametrize("d", [2, 12])
def test_an_engine_launches_on_its_own_device_only(d, monkeypatch):
    """All that it launches is within the context of its device: here one that counts."""
    if torch.cuda.is_available():
        pytest.skip("launches are seen in the interpreter only")
    inside, launch, outside = [], interpreter.GridExecutor.__call__, []

    @contextmanager
    def entered(device):
        inside.append(device)
        yield
        inside.pop()

    def watched(executor, *args, **options):
        if not inside:
            outside.append(executor.fn.__name__)
        launch(executor, *args, **options)

    for module in (cuda_engine, iterations, seeder):
        monkeypatch.setattr(module, "current", entered)
    monkeypatch.setattr(cuda_engine, "on", entered)
    monkeypatch.setattr(interpreter.GridExecutor, "__call__", watched)
    rows = np.random.default_rng(0).normal(size=(40, d)).astype("float32")
    far = np.vstack([rows[:3], np.full((1, d), 1e3)])
    for options in (
        {"init": "k-means++"}, {"init": "k-means||"}, {"init": far, "tol": 0.0},
        {"init": far, "stop": Inertia(drop=1.0)}, {"init": "farthest", "verbose": 1},
    ):  # fmt: skip
        model = KMeans(4, random_state=0, max_iter=3, n_init=1, device="cuda", **options)
        model.fit(rows, sample_weight=np.arange(1.0, 41.0) if "tol" in options else None)
    model.transform(rows)
    model.predict(rows)
    assert not outside


def test_a_part_works_on_its_own_device(monkeypatch):
    entered = []

    class Device:
        def __init__(self, device):
            self.device = device

        def __enter__(self):
            entered.append(self.device)

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(own_device, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device", Device)
    monkeypatch.setattr(own_device, "place", torch.device)

    class Base:
        def public(self, value):
            return value

        def _private(self):
            pass

    @own_device.on_own_device
    class Engine(Base):
        def __init__(self, X, weights, device):
            self.device = torch.device(device)

    for name, expected in (("cuda:1", 1), ("cuda:0", 0), ("cpu", 0), ("meta", 0)):
        engine = Engine(None, None, name)
        assert engine.public(3) == 3
        engine._private()
        assert entered == [torch.device(name)] * expected
        entered.clear()


def test_memory_is_checked_before_a_run_on_rows_that_are_there(monkeypatch, device):
    rows = torch.zeros((10, 3), device=device)
    assert row_memory.needed_bytes(10, 3, 4, copied=True) == 10 * (28 + 12)
    assert row_memory.needed_bytes(10, 300, 2, copied=False) == 10 * (72 + 600 + 8)
    monkeypatch.setattr(devices, "LITTLE", 279)
    monkeypatch.setattr(devices, "free_bytes", lambda device, needed: 279)
    with pytest.raises(MemoryError, match="280 bytes of GPU memory are needed and 279 are free"):
        KMeans(2, device="cuda").fit(rows)
