"""Rows that do not fit on a GPU: the bits of the oracle, whatever stays there and what is sent."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, stopping
from lloydia.backends import choose
from lloydia.backends.cuda import run_setup
from lloydia.backends.cuda.low_dim import table_sums
from lloydia.backends.cuda.matmul import memory as tensor_memory
from lloydia.backends.cuda.out_of_core import blocks, listed, room, sending
from lloydia.backends.cuda.out_of_core import group as out_of_core
from lloydia.backends.cuda.out_of_core.transfer_dtype import narrowest_dtype
from lloydia.backends.cuda.rows import memory as row_memory
from lloydia.backends.cuda.runtime import devices
from lloydia.backends.parts import Parts
from lloydia.cli import main
from lloydia.data.columns import DataError
from lloydia.loop.empty import EmptyClusterError
from lloydia.loop.run import run_iterations
from lloydia.seeding import SEEDINGS
from table import answer, blobs, weights_of
from tight import for_fit, tight

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


@pytest.fixture
def memory(monkeypatch):
    """Return a function that leaves a GPU so many bytes beside k clusters and two blocks.

    It does not hold all rows in any case, however few there are.
    """
    for module in (room, run_setup):
        monkeypatch.setattr(module, "SPARE", 0)
    monkeypatch.setattr(devices, "LITTLE", 0)
    monkeypatch.setattr(row_memory, "fits", lambda *rows: False)
    for name in ("UNUSED", "UNUSED_BYTES", "OWN", "OWN_FEATURE", "MEASURING"):
        monkeypatch.setattr(room, name, 0)

    def limit(X, rows, left=0, k=4, weights=None):
        d = X.shape[1]
        monkeypatch.setattr(room, "SMALLEST_BLOCK", rows)
        monkeypatch.setattr(room, "LARGEST_BLOCK_BYTES", rows * d * X.dtype.itemsize)
        roomy = out_of_core.out_of_core(X, weights, "cuda:0")
        clusters = Parts(roomy).group.bytes_of_clusters(k)
        free = roomy.room.state + roomy.room.in_flight + clusters + left
        monkeypatch.setattr(out_of_core, "free_bytes", lambda device, needed: free)

    return limit


def agree(X, k, weights=None, **parameters):
    oracle = KMeans(k, device="reference", **parameters).fit(X, sample_weight=weights)
    model = KMeans(k, device="cuda", **parameters).fit(X, sample_weight=weights)
    assert answer(model) == answer(oracle)
    assert model.converged_ == oracle.converged_
    return model, oracle


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_that_would_have_tables_alone(dtype, memory, monkeypatch):
    """Others follow in the memory of one, and the last is less than what programs look at."""
    monkeypatch.setattr(table_sums, "MIN_ROWS", 1024)
    X = np.random.default_rng(0).normal(size=(2 * 1024 + 30, 2)).astype(dtype)
    memory(X, 1024, k=3)
    agree(X, 3, init=X[:3].copy(), max_iter=4, tol=0.0)


def facts(engine, start, inits):
    """Return what an engine says of its rows, its seeds and a run that relocates."""
    seeds = [SEEDINGS[name](engine, 4, np.random.RandomState(2)).tolist() for name in inits]
    result = run_iterations(
        engine, start, algorithm="lloyd", rule=stopping.Labels(), max_iter=2,
        empty="relocate", history=len(inits) > 1,
    )  # fmt: skip
    answers = result.inertia, result.n_iter, result.reason, result.history
    arrays = result.labels, result.centers, engine.distances(start)
    return engine.mean_variance(), seeds, answers, [np.asarray(array).tobytes() for array in arrays]


@pytest.mark.parametrize(
    ("d", "dtype", "transfer_dtype", "weighted", "left", "stays"),
    [
        (3, "float32", "float32", True, 25 * 3 * 4, (1, 1, 0)),
        (3, "float64", "float32", False, 0, (0, 0, 0)),
        (3, "float32", "float16", False, 40 * 3 * 2, (2, 2, 0)),
        (10, "float32", "bfloat16", False, 25 * 10 * 2, (1, 1, 0)),
        (10, "float64", "float64", True, 40 * 40, (0, 0, 2)),
        (16, "float64", "float32", False, 25 * 40, (1, 0, 1)),
        (10, "float64", "float16", False, 0, (0, 0, 0)),
    ],
)
def test_blocks_give_the_bits_of_the_oracle(
    d, dtype, transfer_dtype, weighted, left, stays, memory
):
    X = torch.from_numpy(blobs(40, d, dtype))
    X[::5] *= 2**4 if transfer_dtype == "float16" else 2**15
    X = X.to(getattr(torch, transfer_dtype)).to(getattr(torch, dtype)).numpy()
    weights = weights_of("wide", 40) if weighted else None
    start = np.vstack([X[:3], np.full((2, d), 1e7, dtype=dtype)])
    inits = SEEDINGS if weighted and d == 3 else ("k-means++", "k-means||")
    expected = facts(choose("reference", X, weights, None), start, inits)
    memory(X, 25, left, k=5, weights=weights)
    placed = choose("cuda", X, weights, None)
    assert facts(placed, start, inits) == expected
    found = placed.group._divide(True, 5)
    assert len(placed.group.plan.passes.rows) >= stays[0]
    assert (len(found.rows), len(found.fp16_rows)) == stays[1:]
    assert {str(block.transfer_dtype) for block in placed.group.runs} == {f"torch.{transfer_dtype}"}


def test_of_half_precision_copies_only_rows_that_may_change_are_sent(memory, monkeypatch, stages):
    found = []

    class Counted(listed.Listed):
        def rows(self):
            rows = super().rows()
            found.append((len(rows), self.n_ambiguous, self.n_unresolved, self.n_nine))
            return rows

    monkeypatch.setattr(listed, "Listed", Counted)
    rng = np.random.default_rng(0)
    X, weights = 3 * rng.normal(size=(75, 16)), weights_of("wide", 75)
    # Crowds of centres: some rows are ambiguous between a few, others between many.
    start = X[np.arange(24) % 4] + 1e-3 * rng.normal(size=(24, 16))
    X[:8] = start[:8] + 1e-6 * rng.normal(size=(8, 16))
    options = {"algorithm": "lloyd", "rule": stopping.Labels(), "max_iter": 3, "empty": "keep"}
    expected = run_iterations(choose("reference", X, weights, None), start, **options)
    memory(X, 40, 75 * 40 + 10, k=24, weights=weights)
    placed = choose("cuda", X, weights, None)
    for _ in range(2):
        assert placed.group.plan.passes.rows
        result = run_iterations(placed, start, **options)
        assert result.labels.tobytes() == expected.labels.tobytes()
        assert result.centers.tobytes() == expected.centers.tobytes()
        assert (result.inertia, result.n_iter) == (expected.inertia, expected.n_iter)
        # Of two blocks, in all iterations but the first.
        assert len(found) == 2 * (result.n_iter - 1)
        n_sent, n_ambiguous, n_again, n_nine = np.sum(found, axis=0).tolist()
        assert 75 * (result.n_iter - 1) > n_sent > n_ambiguous > 0
        if stages != "small":
            assert n_ambiguous > n_again > 0 < n_nine
        found.clear()
        # Seeds are drawn from rows, which stay again.
        assert not placed.group.sender.resident
        placed.seed_start()
        placed.seed_add(3)
        assert placed.group.sender.resident
        # Beside them nothing is left of the run.
        shared, runs = placed.group.shared, placed.group.runs
        assert not [run for run in (shared, *runs) if run._run is not None]


@pytest.mark.parametrize(("left", "times"), [(0, [1, 1, 3, 3]), (75 * 40, [1, 1, 1, 1, 2, 2])])
def test_work_on_a_block_is_recorded(left, times, memory, recorded):
    """It is queued with the same arguments in every iteration, addresses included."""
    X = np.random.default_rng(0).normal(size=(75, 16))
    memory(X, 40, left, k=5)
    placed = choose("cuda", X, None, None)
    options = {"algorithm": "lloyd", "rule": stopping.Labels(), "max_iter": 3, "empty": "keep"}
    for _ in range(2):
        run_iterations(placed, X[:5], **options)
        # Of two blocks: with the rows, by copies of them, at the end.
        assert sorted(map(len, recorded.values())) == times
        for queued in recorded.values():
            assert len(queued[0]) > 2
            assert all(again == queued[0] for again in queued)
        recorded.clear()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_fit_with_a_tolerance(dtype, memory, tmp_path):
    # A memory map is not writable.
    np.save(tmp_path / "rows.npy", blobs(40, 2, dtype))
    X, weights = np.load(tmp_path / "rows.npy", mmap_mode="r"), weights_of("wide", 40)
    memory(X.astype("float32") if dtype == "float16" else X, 25, weights=weights)
    model, _ = agree(X, 4, weights, tol=0.05, random_state=4, max_iter=4)
    assert model.device_ == "cuda:0"


@pytest.mark.parametrize("empty", ["keep", "error"])
def test_empty_clusters(empty, memory):
    X = blobs(30, 2, "float64")
    far = np.vstack([X[:2], np.full((2, 2), 1e3)])
    memory(X, 20)
    if empty == "error":
        with pytest.raises(EmptyClusterError):
            KMeans(4, init=far, empty=empty, device="cuda").fit(X)
        return
    agree(X, 4, init=far, empty=empty, max_iter=2)


def test_prediction_distances_and_score(memory):
    X, others = blobs(30, 4, "float32"), blobs(31, 4, "float32", seed=1)
    weights = weights_of("wide", 31)
    oracle = KMeans(4, init=X[:4], max_iter=1, device="reference").fit(X)
    model = KMeans(4, init=X[:4], max_iter=1, device="cuda").fit(X)
    memory(others, 16, weights=weights)
    assert (model.predict(others) == oracle.predict(others)).all()
    assert (model.transform(others) == oracle.transform(others)).all()
    assert model.score(others, sample_weight=weights) == oracle.score(others, sample_weight=weights)


def test_the_plan_is_said(memory, capsys):
    X = blobs(40, 2, "float32")
    memory(X, 25, k=2)
    KMeans(2, init="first", max_iter=1, device="cuda", verbose=1).fit(X)
    said = capsys.readouterr().out
    assert "out of core on cuda:0: 320 bytes of rows" in said
    assert "of 2 blocks of 25 rows stay on the GPU" in said


def test_the_command_line_says_the_plan(memory, tmp_path, capsys):
    X = blobs(40, 2, "float32")
    memory(X, 25, k=2)
    np.save(tmp_path / "rows.npy", X)
    options = ["-k", "2", "--init", "first", "--max-iter", "1", "--device", "cuda"]
    assert main(["fit", str(tmp_path / "rows.npy"), *options]) == 0
    assert capsys.readouterr().err.startswith("lloydia: out of core on cuda:0: ")


def chunked(X, block, **options):
    model = KMeans(4, init="k-means||", n_init=1, random_state=1, max_iter=2, tol=0, **options)
    return model, tight(X, for_fit(model), 1, block=block)


def test_chunks_that_exceed_the_memory_of_the_host_go_to_a_gpu(memory):
    X = blobs(50, 3, "float64")
    memory(X, 20, 1)
    model, source = chunked(X, 20, device="cuda")
    expected = answer(chunked(X, 20, device="reference")[0].fit(X))
    assert answer(model.fit(source)) == expected


def test_a_value_that_is_not_finite_is_named(memory):
    X = blobs(50, 3, "float64")
    memory(X, 10)
    X[33, 1] = np.nan
    model, source = chunked(lambda: iter(np.array_split(X, 5)), 10, device="cuda")
    with pytest.raises(DataError, match=r"block 4, row 4 \(row 34 of all\), column 2 is NaN"):
        model.fit(source)


def test_too_little_memory_names_both_numbers(memory, monkeypatch):
    X = blobs(40, 3, "float32")
    memory(X, 25)
    with pytest.raises(MemoryError, match=r"bytes of GPU memory are needed for 40 clusters of 3"):
        KMeans(40, init="first", device="cuda").fit(X)
    monkeypatch.setattr(out_of_core, "free_bytes", lambda device, needed: 900)
    with pytest.raises(
        MemoryError, match=r"\d,\d{3} bytes .* to send 40 rows .*, and 900 are free"
    ):
        KMeans(2, device="cuda").fit(X)


@pytest.mark.parametrize(
    ("fp16_rows", "clusters", "rows", "halved", "left"),
    [
        ((), 0, {0, 1}, set(), 0),
        ((), 70, {0}, set(), 30),
        ((60, 60, 30), 0, {0}, {1, 2}, 10),
        ((60, 60, 30), 40, set(), {0, 1, 2}, 10),
        ((60, 60, 30), 70, set(), {0, 1}, 10),
        ((60, 60, 30), 200, set(), set(), 0),
        ((), 201, set(), set(), -1),
    ],
)
def test_what_stays_beside_clusters(fp16_rows, clusters, rows, halved, left):
    found = room.Room(310, 10, 3, 40, 60, 10).divide((100, 100, 50), fp16_rows, clusters)
    assert found == room.Division(rows, halved, left)


def test_blocks_come_in_the_order_that_the_host_gives(memory):
    class Backwards(sending.Array):
        def blocks(self, wanted):
            return reversed(list(super().blocks(wanted)))

    X = blobs(47, 3, "float32")
    sender = sending.Sender(Backwards(X, 10), torch.device("cpu"))
    sender.resident[2] = torch.from_numpy(X[20:30])
    found = [(p, rows.clone()) for p, rows in sender.blocks(range(5))]
    assert sorted(p for p, _ in found) == [0, 1, 2, 3, 4]
    assert all(np.array_equal(rows, X[10 * p : 10 * p + 10]) for p, rows in found)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1.5, "float32", "float16"),
        (2.0**-24, "float64", "float16"),
        (2.0**-25, "float32", "bfloat16"),
        (2.0**100, "float64", "bfloat16"),
        (1 + 2.0**-23, "float64", "float32"),
        (1 + 2.0**-23, "float32", "float32"),
        (2.0**-149, "float64", "float32"),
        (1e300, "float64", "float64"),
        (1 / 3, "float64", "float64"),
    ],
)
def test_the_narrowest_type_holds_every_bit(value, dtype, expected):
    X = torch.tensor([[0.0, -value], [-0.0, 1.0]], dtype=getattr(torch, dtype))
    transfer_dtype = narrowest_dtype(X)
    assert str(transfer_dtype) == f"torch.{expected}"
    assert X.to(transfer_dtype).to(X.dtype).numpy().tobytes() == X.numpy().tobytes()


def test_copies_and_computations_wait_for_each_other_and_the_host_for_neither(memory, monkeypatch):
    """Without a GPU, by what is queued on its streams, in order."""
    queued = []

    class Event:
        def __init__(self, name):
            self.name = name

        def record(self, stream):
            queued.append(f"{stream} records {self.name}")

        def synchronize(self):
            """Be there: the host may fill the buffer."""

    class Stream:
        def __init__(self, name):
            self.name = name

        def __str__(self):
            return self.name

        def wait_event(self, event):
            queued.append(f"{self} waits for {event.name}")

    copying, computing = Stream("copying"), Stream("computing")
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: computing)
    X = blobs(40, 3, "float32")
    sender = sending.Sender(sending.Array(X, 10), torch.device("cpu"))
    sender.copying = copying
    for name, place in zip("ab", sender.places):
        place.arrived, place.used = Event(f"arrived {name}"), Event(f"used {name}")
        place.host = torch.empty_like(place.there)
    for p, rows in sender.blocks(range(4)):
        assert np.array_equal(rows, X[10 * p : 10 * p + 10])
        queued.append(f"compute {p}")
    orders = {
        stream: [what for what in queued if what.startswith(stream)]
        for stream in ("copying", "comput")
    }
    copies = [
        f"copying {what}"
        for name in "abab"
        for what in (f"waits for used {name}", f"records arrived {name}")
    ]
    assert orders["copying"] == copies
    computations = []
    for p, name in enumerate("abab"):
        computations += [
            f"computing waits for arrived {name}",
            f"compute {p}",
            f"computing records used {name}",
        ]
    assert orders["comput"] == computations
    # The third copy goes to the place of the first block: it is queued after what used that.
    third = [i for i, what in enumerate(queued) if what == "copying waits for used a"][1]
    assert queued.index("computing records used a") < third


def test_blocks_share_what_a_scan_needs(memory, monkeypatch):
    X = blobs(120, 12, "float32")
    memory(X, 20)
    made = []

    class Counted(blocks.TensorScan):
        def __init__(self, *args):
            made.append(1)
            super().__init__(*args)

    monkeypatch.setattr(blocks, "TensorScan", Counted)
    monkeypatch.setattr(tensor_memory, "TensorScan", Counted)
    agree(X, 4, init=X[:4], max_iter=2)
    # One for each of the blocks under way, at most two, not for all six.
    assert 1 <= len(made) <= 2
