"""Members without Dask: parts that lose their state between questions give the same bits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from lloydia import assign, stopping
from lloydia.backends import choose, cluster
from lloydia.backends.cluster import partitions
from lloydia.backends.cluster.history import CHANGES
from lloydia.backends.cluster.member import Member, Question, answer, labels, merge
from lloydia.backends.part import Part
from lloydia.backends.run_settings import RunSettings
from lloydia.data.collections import Partitions, WorkerPartitions
from lloydia.loop.run import run_iterations
from lloydia.loop.tolerance import Tolerance
from lloydia.seeding import SEEDINGS
from table import blobs, weights_of


class Forgetful:
    """A client whose tasks are done at once, by members that may have lost all but their rows."""

    def __init__(self, seed, chance):
        self.rng, self.chance, self.lost = np.random.default_rng(seed), chance, 0

    def submit(self, task, *arguments, **options):
        return task(*arguments)

    def map(self, task, *lists, pure=False, **common):
        if task is cluster.member.answer:
            for member in lists[0]:
                if self.rng.random() < self.chance:
                    self.lost += member.state > 0
                    again = Member(*member.__reduce__()[1])
                    member.__dict__ = again.__dict__
        return [task(*arguments, **common) for arguments in zip(*lists)]


@pytest.fixture(autouse=True)
def results_are_there(monkeypatch):
    monkeypatch.setattr(cluster, "gathered", lambda client, results: results)
    monkeypatch.setattr(cluster, "wait_for", lambda client, results: None)
    monkeypatch.setattr(
        cluster, "mapped", lambda client, places, *task, **c: client.map(*task, **c)
    )
    monkeypatch.setattr(cluster, "places_of", lambda client, results: [()] * len(results))
    monkeypatch.setattr(cluster, "sent", lambda client, value: value)
    monkeypatch.setattr(cluster, "FAN", 2)


def placed(client, X, weights, edges, device="cpu"):
    """Return an engine of rows cut at the edges, two partitions with each of its members."""
    own = [X[a:b] for a, b in pairwise(edges)]
    numbers = [
        list(range(m, len(own), max(1, len(own) // 2))) for m in range(max(1, len(own) // 2))
    ]
    held = [WorkerPartitions(some, (), partitions.take([own[p] for p in some])) for some in numbers]
    facts = partitions.in_order(held, [h.rows.facts for h in held])
    at = np.split(weights, edges[1:-1]) if weights is not None else None
    given = at and cluster.Weights(
        [[at[p] for p in some] for some in numbers], [partitions.digest(w) for w in at],
        [np.count_nonzero(w) for w in at], 1.0,
    )  # fmt: skip
    return choose(device, Partitions(None, client, held, facts), given, 1)


def member_of(*blocks):
    rows = partitions.take(blocks)
    return Member(rows, None, [fact.digest for fact in rows.facts], "cpu", 1)


def facts_of(engine, start, algorithm, kept=...):
    """Return what a seeding of each kind and a run come to, and what it was asked by the way.

    `kept` are the rows of positive weight, if the engine has labels for others.
    """
    k = len(start)
    seeds = [seeding(engine, k, np.random.RandomState(3)).tolist() for seeding in SEEDINGS.values()]
    result = run_iterations(
        engine, start, algorithm=algorithm,
        rule=Tolerance(1e-4, engine.mean_variance, engine.magnitudes),
        max_iter=30, empty="relocate", history=True,
    )  # fmt: skip
    again = run_iterations(
        engine, start, algorithm=algorithm, rule=stopping.Labels(), max_iter=30, empty="relocate"
    )
    return (
        seeds, engine.mean_variance(), np.asarray(result.labels)[kept].tobytes(),
        result.centers.tobytes(), result.inertia, result.n_iter, result.history,
        np.asarray(again.labels)[kept].tobytes(), again.inertia, again.n_iter,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighting", ["none", "wide"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_lost_is_found_again(dtype, weighting, sparse):
    X, weights = blobs(600, 3, dtype), weights_of(weighting, 600)
    kept = ...
    if weights is not None:
        # Two partitions of the last case have no rows of positive weight, one a member's only one.
        weights[:90] = 0.0
        kept = weights > 0
    given = sp.csr_matrix(X) if sparse else X
    # Two clusters begin empty.
    start = np.vstack([X[100:105], np.full((2, 3), 1e3, dtype=dtype)])
    for algorithm in ("lloyd", "hamerly"):
        whole = choose("cpu", given, None, 1)
        if weights is not None:
            whole = choose("cpu", given[kept], weights[kept], 1)
        expected = facts_of(whole, start, algorithm)
        # In the last case a member has no rows at all.
        for edges in ([0, 600], [0, 100, 100, 101, 350, 600], [0, 0, 50, 90, 90, 390, 600]):
            client = Forgetful(len(edges), 0.3)
            engine = placed(client, given, weights, edges)
            assert facts_of(engine, start, algorithm, kept) == expected, (algorithm, edges)
            assert np.array_equal(engine.labels(), assign(given, np.asarray(engine.centers()))[0])
            if weights is None:
                assert np.array_equal(engine.distances(X[:3]), whole.distances(X[:3]))
            assert client.lost > 10


def test_a_history_is_short():
    X = blobs(300, 3, "float32")
    client = Forgetful(0, 0.0)
    engine = placed(client, X, None, [0, 100, 300])
    history = engine.group.history
    engine.seed_start()
    for row in range(10):
        engine.seed_add(row)
    assert [method for method, _ in history.calls] == [
        "set_grid", "seed_start", "seed_first", *(["seed_potentials_of", "seed_accept"] * 9)
    ]  # fmt: skip
    assert all(
        len(given[0]) == 1 for method, given in history.calls if method == "seed_potentials_of"
    )
    engine.start(X[:4], "lloyd")
    for _ in range(10):
        engine.iterate(True)
    assert [method for method, _ in history.calls] == ["set_grid", "start", "step"]
    engine.assign()
    engine.inertia()
    assert [method for method, _ in history.calls] == ["set_grid", "start", "conclude"]
    assert (history.centers() == engine.centers()).all()


def test_a_question_is_answered_once():
    X = blobs(50, 3, "float32")
    member = member_of(X[:20], X[20:])
    magnitudes = choose("cpu", X, None, 1).magnitudes()
    grid = Question(1, 0, "set_grid")
    answer(member, None, grid, (magnitudes,), None)
    begin = Question(2, 1, "start")
    answer(member, None, begin, (RunSettings(X[:4], "lloyd"),), None)
    step = Question(3, 2, "step", adds=True)
    first = answer(member, None, step, (X[:4], False), None)
    assert answer(member, None, step, (X[:4], False), None) is first
    assert first.n_changed == 50
    # As if step 3 had been asked of another member, which then sent this one in its place.
    stale = Question(5, 4, "counts", adds=True)
    assert answer(member, None, stale, (), None) is None
    history = [
        ("set_grid", (magnitudes,)),
        ("start", (RunSettings(X[:4], "lloyd"),)),
        ("step", (X[4:8], False)),
    ]
    found = answer(member, None, stale, (), history)
    expected = choose("cpu", X, None, 1)
    expected.classify(X[4:8])
    assert (found == expected.counts()).all()
    assert merge([found, None]) is None
    assert (merge([found, found]) == 2 * found).all()


def test_labels_are_those_of_their_centres_whatever_became_of_the_member():
    X = blobs(50, 3, "float32")
    expected = choose("cpu", X, None, 1)
    expected.classify(X[:4])
    member = member_of(X)
    assert (labels(member, 0, 7, X[:4]) == expected.labels()).all()
    answer(member, None, Question(1, 0, "classify"), (X[4:8],), None)
    assert (labels(member, 0, 7, X[:4]) == expected.labels()).all()
    assert (labels(member, 0, 1, X[4:8]) != expected.labels()).any()


def test_every_question_that_changes_a_part_is_one_of_a_part():
    assert set(Part.__dict__) > CHANGES


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_matrix])
def test_rows_that_come_out_differently_are_noticed(form):
    X = form(blobs(2000, 3, "float32"))
    member = member_of(X)
    assert member.parts[0].n_samples == 2000
    other = X.copy()
    other[[3, 1500]] = X[[1500, 3]]
    again = Member(partitions.take([other]), None, member.digests, "cpu", 1)
    with pytest.raises(RuntimeError, match="recomputed its rows"):
        answer(again, None, Question(1, 0, "magnitudes"), (), None)
    with pytest.raises(RuntimeError, match="recomputed its rows"):
        labels(again, 0, 7, blobs(4, 3, "float32"))


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("reference", "device='reference' is not for Dask"),
        ("cuda:1", "device='cuda:1' is not for Dask"),
        ("tpu", "Unknown device 'tpu'"),
    ],
)
def test_a_device_that_workers_cannot_have(device, message):
    with pytest.raises(ValueError, match=message):
        placed(Forgetful(0, 0), blobs(20, 2, "float32"), None, [0, 20], device)
