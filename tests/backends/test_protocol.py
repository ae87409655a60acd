"""The loop against engines of other kinds: one that reports late, and one in pieces."""

from __future__ import annotations

import copy
from collections import deque
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from lloydia import stopping
from lloydia.backends import choose
from lloydia.backends.cpu.part import CPUPart
from lloydia.backends.group import Here
from lloydia.backends.parts import Parts
from lloydia.backends.reports import DoneReport
from lloydia.loop.run import Halt, OtherDataError, run_iterations
from lloydia.progress.iterations import watch
from lloydia.seeding import SEEDINGS

STATE = ("current", "used", "assigned", "D", "iteration", "empty", "n_changed", "cost")


class Late:
    """The oracle, running ahead: a report is there only when later iterations were queued.

    It keeps the states that the protocol demands, and after an iteration with empty clusters it
    changes nothing until the loop has rewound to it.
    """

    lag = 3

    def __init__(self, engine):
        self.engine = engine
        self.states = {}
        self.stuck = False
        self.in_flight = 0

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def start_run(self, settings):
        self.engine.start_run(settings)
        self.states, self.stuck, self.in_flight = {}, False, 0
        self.empty_stops = settings.empty_stops

    def iterate(self, inertia):
        self.in_flight += 1
        assert self.in_flight <= self.lag + 1
        if self.stuck:
            return Queued(self, None)
        report = self.engine.iterate(inertia).result()
        self.stuck = report.n_empty > 0 and self.empty_stops
        self.states[report.iteration] = {
            name: copy.copy(getattr(self.engine, name)) for name in STATE
        }
        self.states.pop(report.iteration - self.lag - 2, None)
        return Queued(self, report)

    def rewind(self, iteration):
        for name, value in self.states[iteration].items():
            setattr(self.engine, name, value)
        self.stuck = False
        self.in_flight = 0

    def relocate(self, rows, clusters):
        return self.engine.relocate(rows, clusters)


class Queued:
    def __init__(self, engine, report):
        self.engine, self.report = engine, report

    def result(self):
        assert self.report is not None, "the loop asked for an iteration that never ran"
        self.engine.in_flight -= 1
        return self.report


def run(engine, centers, **options):
    defaults = {"algorithm": "lloyd", "rule": stopping.Labels(), "max_iter": 50}
    result = run_iterations(engine, centers, **{**defaults, "empty": "relocate", **options})
    return (
        result.labels.tobytes(),
        result.centers.tobytes(),
        result.inertia,
        result.n_iter,
        result.reason,
        result.history,
    )


def data(seed):
    return np.random.default_rng(seed).normal(size=(400, 3))


@pytest.mark.parametrize("max_iter", [1, 2, 3, 4, 50])
@pytest.mark.parametrize(
    "rule", [stopping.Labels(), stopping.Centers(0.05), stopping.Inertia(1.0)], ids=str
)
def test_late_scalars_change_nothing(rule, max_iter):
    X = data(0)
    options = {"rule": rule, "max_iter": max_iter, "history": True}
    expected = run(choose("reference", X, None, None), X[:9], **options)
    assert run(Late(choose("reference", X, None, None)), X[:9], **options) == expected


@pytest.mark.parametrize("policy", ["relocate", "keep"])
def test_late_scalars_and_empty_clusters(policy):
    for seed in range(6):
        X = data(seed)
        start = np.vstack([X[:4], np.full((2, 3), 50.0), X[4:6]])
        expected = run(choose("reference", X, None, None), start, empty=policy)
        assert run(choose("cpu", X, None, 2), start, empty=policy) == expected
        assert run(Late(choose("reference", X, None, None)), start, empty=policy) == expected


def test_callbacks_see_the_centres_of_their_iteration():
    X = data(3)

    def states(engine):
        seen = []

        def look(report, last):
            seen.append((report.iteration, engine.centers().tobytes()))
            return report.iteration == 6

        return run(engine, X[:9], on_iteration=look), seen

    expected = states(choose("reference", X, None, None))
    assert states(Late(choose("reference", X, None, None))) == expected
    assert len(expected[1]) == 6


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_give_the_bits_of_the_whole(dtype, weighted, sparse):
    X = data(1).astype(dtype)
    X[:50] *= 1e6
    X[200:210] = X[200]
    given = sp.csr_matrix(X) if sparse else X
    weights = 10.0 ** np.random.default_rng(0).uniform(-8, 8, size=400) if weighted else None
    start = np.vstack([X[:5], np.full((2, 3), 1e7, dtype=dtype)])

    def facts(engine):
        seeds = [
            seeding(engine, 6, np.random.RandomState(seed)).tolist()
            for seeding in SEEDINGS.values()
            for seed in range(3)
        ]
        result = run(engine, start, history=True)
        return engine.mean_variance(), seeds, result, engine.distances(X[:3]).tobytes()

    expected = facts(choose("reference", given, weights, None))
    assert facts(choose("cpu", given, weights, 2)) == expected
    for edges in ([0, 137, 400], [0, 1, 2, 250, 400]):
        parts = [
            CPUPart(given[a:b], None if weights is None else weights[a:b], 1 + a % 2)
            for a, b in pairwise(edges)
        ]
        assert facts(Parts(Here(parts))) == expected


class Asking(stopping.Rule):
    """Ask an engine for its mean variance after every iteration."""

    def __init__(self, engine):
        self.engine, self.answers = engine, set()

    def __call__(self, report):
        self.answers.add(self.engine.mean_variance())
        return False


@pytest.mark.parametrize("algorithm", ["lloyd", "hamerly", "filtering", "auto"])
@pytest.mark.parametrize("weighting", [None, "wide", "some"])
def test_the_mean_variance_may_be_asked_for_in_a_run(weighting, algorithm):
    X = data(4)
    wide = 10.0 ** np.random.default_rng(0).uniform(-8, 8, size=400)
    weights = {None: None, "wide": wide, "some": (wide > 1.0).astype(float)}[weighting]
    start = np.vstack([X[:5], np.full((2, 3), 50.0)])
    expected = run(choose("reference", X, weights, None), start)
    variance = choose("reference", X, weights, None).mean_variance()
    for device in ("reference", "cpu", "parts"):
        if device == "parts":
            own = [None if weights is None else weights[a:] for a in (0, 150)]
            first = CPUPart(X[:150], weights if weights is None else own[0][:150], 1)
            engine = Parts(Here([first, CPUPart(X[150:], own[1], 2)]))
        else:
            engine = choose(device, X, weights, 2)
        asking = Asking(engine)
        assert run(engine, start, rule=asking, algorithm=algorithm) == expected
        assert asking.answers == {variance}


def test_watchers_see_every_iteration():
    seen = deque()
    X = data(2)
    with watch(seen.append):
        result = run_iterations(
            choose("cpu", X, None, 1), X[:5], algorithm="lloyd", rule=stopping.Labels(),
            max_iter=20, empty="relocate",
        )  # fmt: skip
    assert [r.iteration for r in seen] == list(range(1, result.n_iter + 1))
    assert {r.max_iter for r in seen} == {20}
    run_iterations(
        choose("cpu", X, None, 1), X[:5], algorithm="lloyd", rule=stopping.Labels(),
        max_iter=20, empty="relocate",
    )  # fmt: skip
    assert len(seen) == result.n_iter


def test_a_ready_report_is_a_late_one():
    report = choose("reference", data(3), None, None)
    report.start(data(3)[:2], "lloyd")
    late = report.iterate(False)
    assert isinstance(late, DoneReport)
    assert late.result().iteration == 1


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda:99", "device='cuda:99' .* device='cpu'"),
        ("cuda:", "Unknown device 'cuda:'"),
        ("tpu", "Unknown device 'tpu'"),
        (None, "Unknown device None"),
    ],
)
def test_a_device_that_is_not_there_is_an_error(device, message):
    with pytest.raises((ValueError, ImportError), match=message):
        choose(device, data(0), None, None)


@pytest.mark.parametrize("policy", ["relocate", "keep"])
@pytest.mark.parametrize("weighted", [False, True])
def test_any_engine_goes_on_where_another_halted(weighted, policy):
    X = data(5)
    weights = 10.0 ** np.random.default_rng(0).uniform(-8, 8, size=400) if weighted else None
    start = np.vstack([X[:4], np.full((2, 3), 50.0), X[4:6]])
    used, states, costs = start, {}, []

    def look(report, last):
        nonlocal used
        costs.append(report.inertia)
        states[report.iteration] = Halt(report.iteration, used, engine.centers(), list(costs))
        used = engine.centers()
        return False

    engine = choose("reference", X, weights, None)
    options = {"empty": policy, "history": True, "rule": stopping.Inertia(0.01)}
    expected = run(engine, start, on_iteration=look, **options)
    for iteration in (1, 2, len(states) - 1):
        halt = states[iteration]
        parts = [
            CPUPart(X[part], None if weights is None else weights[part], 1)
            for part in (slice(150), slice(150, None))
        ]
        for other in (
            choose("cpu", X, weights, 2),
            Late(choose("reference", X, weights, None)),
            Parts(Here(parts)),
        ):
            seen = deque()
            with watch(seen.append):
                assert run(other, halt.used, halt=halt, **options) == expected
            assert [report.iteration for report in seen] == list(
                range(iteration + 1, expected[3] + 1)
            )
        with pytest.raises(OtherDataError, match=f"after iteration {iteration} do not follow"):
            run(choose("cpu", X[:-1], None, 2), halt.used, halt=halt, **options)
