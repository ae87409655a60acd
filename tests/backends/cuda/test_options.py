"""What is turned off changes no bit, and is not used."""

from __future__ import annotations

import pytest
import torch

from lloydia import KMeans
from lloydia.backends.cuda import options
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.reference import Reference
from lloydia.data.arrays import on_host
from lloydia.loop.run import run_iterations
from lloydia.stopping import Shift
from replayed import replay
from table import answer, blobs

LLOYD = {"algorithm": "lloyd", "rule": Shift(0.0), "max_iter": 4, "empty": "relocate"}


@pytest.mark.parametrize("name", options.SWITCHES)
@pytest.mark.parametrize("d", [2, 12])
def test_every_switch_gives_the_same_bits(name, d, device):
    X = blobs(200, d, "float32")
    expected = KMeans(4, random_state=0, max_iter=5).fit(X)
    with options.without(name):
        assert not options.is_on(name)
        assert answer(
            KMeans(4, random_state=0, max_iter=5).fit(torch.from_numpy(X).to(device))
        ) == (answer(expected))
    assert options.is_on(name)


def fit(rows):
    X, engine = torch.from_numpy(rows), CUDA(torch.from_numpy(rows), None, "cuda")
    start = X[:4].clone()
    found = run_iterations(engine, start, **LLOYD)
    return on_host(found.labels).tobytes(), on_host(found.centers).tobytes(), found.inertia, engine


def test_launches_are_repeated_only_where_they_are_recorded(monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("launches are replayed in the interpreter only")
    driver, kept = replay(monkeypatch), []
    for off in ((), (), ("recorded_launches",), ("recorded_launches",), ()):
        before = driver.by_number
        rows = blobs(120, 12, "float32", seed=len(kept))
        with options.without(*off):
            *found, engine = fit(rows)
        kept.append(engine)
        oracle = run_iterations(Reference(rows, None), rows[:4].copy(), **LLOYD)
        expected = oracle.labels.tobytes(), oracle.centers.tobytes(), oracle.inertia
        assert tuple(found) == expected
        assert (driver.by_number > before) == (off == ())


def test_tables_and_bounds_are_left_out(device):
    from lloydia.backends.cuda.dataset import Dataset
    from lloydia.backends.cuda.dispatch import Kernels, Stage, Work, chosen
    from lloydia.backends.cuda.update.table_sums import has_table

    rows = Dataset(torch.from_numpy(blobs(64, 16, "float32")).to(device), None)
    assert has_table(rows, 4)
    with options.without("shared_memory_tables", "pruning"):
        assert not has_table(rows, 4)
        work = Work(10_000_000, 128, 1024, 4)
        assert chosen(Stage.PRUNING, work).kernels is Kernels.NONE
    assert chosen(Stage.PRUNING, work).kernels is Kernels.BOUNDS


def test_contexts_may_overlap():
    first, second = options.without("gluon"), options.without("gluon", "pruning")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert options.state() == {"gluon", "pruning"}
    second.__exit__(None, None, None)
    assert options.state() == frozenset()


def test_an_unknown_switch_is_named():
    with pytest.raises(
        ValueError, match="no switch 'prunning': the switches are early_launch, gluon"
    ):
        options.without("prunning").__enter__()
    assert options.named(" pruning, gluon,") == {"pruning", "gluon"}
