"""Small data are clustered in NumPy until compiled kernels pay, with the same bits."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, assign, kmeans_plusplus, stopping
from lloydia.algorithms import ALGORITHMS
from lloydia.backends import choose, numpy_first
from lloydia.backends.cpu.engine import CPU
from lloydia.backends.numpy_first import MOST_AT_ONCE, Budget, NumpyFirst, seconds_of
from lloydia.cli.compilation.warm_up import compiled
from lloydia.cli.info import Shape
from lloydia.seeding import SEEDINGS
from table import INITS, answer, blobs, start_of, weights_of

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)

X = blobs(300, 3, "float64")
NUMBERS = 1000


class Some(Budget):
    """A budget that says yes so many times, and then never again."""

    def __init__(self, times):
        super().__init__(np.inf)
        self.times = times

    def take(self, numbers, steps, compiled):
        self.times -= 1
        return self.times >= 0


@pytest.fixture
def budget(monkeypatch):
    """Return a function that sets the budget of the process."""

    def set_to(other):
        monkeypatch.setattr(numpy_first, "_budget", other)
        return other

    return set_to


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighting", ["none", "wide"])
@pytest.mark.parametrize("init", INITS)
def test_no_fit_depends_on_when_kernels_take_over(init, weighting, dtype, budget):
    rows, weights = blobs(300, 3, dtype), weights_of(weighting, 300)
    common = {"init": start_of(init, rows, 5), "random_state": 4, "tol": 0}
    common["n_init"] = 1 if init == "array" else 2
    oracle = KMeans(5, device="reference", **common).fit(rows, sample_weight=weights)
    assert oracle.n_iter_ > 3
    for data in (rows, sp.csr_matrix(rows)):
        times = 0
        while True:
            left = budget(Some(times))
            model = KMeans(5, **common).fit(data, sample_weight=weights)
            assert answer(model) == answer(oracle), times
            if left.times >= 0:
                break
            times += 1
        # Not even the last of them was refused.
        assert times > oracle.n_iter_
        assert model.n_distances_ == oracle.n_distances_
        assert model.n_rechecked_ == 0
        assert model.device_ == "cpu"


@pytest.mark.parametrize("empty", ["relocate", "keep"])
@pytest.mark.parametrize("costed", [False, True])
def test_kernels_take_over_after_an_iteration_with_empty_clusters(empty, costed, budget):
    start = X[:5].copy()
    start[3:] = 1e3, -1e3, 1e3
    start[4] += 1
    common = {"init": start, "empty": empty, "tol": 0, "max_iter": 9}
    if costed:
        common |= {"stop": stopping.Inertia(drop=1e-9)}
    oracle = KMeans(5, device="reference", **common).fit(X)
    assert oracle.n_iter_ > 3
    for times in range(12):
        budget(Some(times))
        model = KMeans(5, **common).fit(X)
        assert answer(model) == answer(oracle), times
        if costed:
            assert model.inertia_history_ == oracle.inertia_history_, times


def test_iterations_are_counted_on(budget):
    budget(Some(3))
    engine = choose("cpu", X, None, 1)
    engine.start(X[:4], "auto")
    reports = [engine.iterate(False).result() for _ in range(5)]
    assert [report.iteration for report in reports] == [1, 2, 3, 4, 5]
    assert reports[-1].n_changed < len(X)
    assert isinstance(engine.run, CPU)
    rows, clusters = np.array([5]), np.array([2])
    assert engine.relocate(rows, clusters).iteration == 5


def test_an_algorithm_that_skips_distances_is_run_by_its_kernels(budget):
    for algorithm in ALGORITHMS:
        budget(Budget(1.0))
        engine = choose("cpu", X, None, 1)
        engine.start(X[:4], algorithm)
        engine.iterate(False)
        by_numpy = algorithm in ("auto", "lloyd")
        assert (engine.run is engine.numpy) == by_numpy, algorithm
        assert engine.algorithm == ("lloyd" if by_numpy else algorithm)


def test_a_step_of_much_work_is_compiled(budget):
    budget(Budget(np.inf))
    few, many = np.zeros((100, 2)), np.zeros((MOST_AT_ONCE // 60 + 1, 2))
    assert isinstance(choose("cpu", few, None, 1), NumpyFirst)
    assert isinstance(choose("cpu", many, None, 1), CPU)
    engine = choose("cpu", X, None, 1)
    k = MOST_AT_ONCE // (300 * 5)
    engine.start(np.zeros((k, 3)), "auto")
    assert isinstance(engine.run, CPU)
    engine.start(np.zeros((k - 20, 3)), "auto")
    assert engine.run is engine.numpy


def test_a_seeding_is_measured_by_its_draws_or_its_rows(budget):
    budget(Budget(np.inf))
    engine = choose("cpu", blobs(3000, 2, "float64"), None, 1)
    # Few draws are known beforehand, but up to 3000 seeds may follow otherwise.
    for init, by_numpy in (("k-means++", True), ("farthest", False), ("k-means++", True)):
        SEEDINGS[init](engine, 4, np.random.RandomState(0))
        assert (engine.seeder is engine.numpy) == by_numpy, init


def test_a_process_that_goes_on_ends_up_in_kernels(budget):
    left = budget(Budget(0.02))
    common = {"n_clusters": 3, "random_state": 0}
    by_numpy = 0
    while isinstance(choose("cpu", X, None, 1), NumpyFirst):
        by_numpy += 1
        KMeans(**common).fit(X)
        assert left.left >= 0
    assert 1 < by_numpy < 100
    assert answer(KMeans(**common).fit(X)) == answer(KMeans(**common, device="reference").fit(X))


def test_little_is_left_to_numpy_where_kernels_are_compiled():
    budget = Budget(1.0)
    whole = budget.left

    def unasked():
        raise AssertionError("little work is done without asking")

    while budget.left > 0.8 * whole:
        assert budget.take(1_000_000, 3, unasked)
    while budget.left > 0.75 * whole:
        assert budget.take(1_000_000, 3, lambda: False)
    assert not budget.take(NUMBERS, 1, lambda: True)
    assert budget.take(NUMBERS, 1, lambda: False)
    while budget.take(1_000_000, 3, lambda: False):
        pass
    assert 0 <= budget.left < 4_000_000
    assert not budget.take(1_000_000, 3, unasked)


def test_other_questions_have_the_same_answers(budget):
    centers = kmeans_plusplus(X, 4, random_state=1)[0]
    answers = []
    for times in (0, 1, 2, 9):
        budget(Some(times))
        model = KMeans(4, init=centers, max_iter=5).fit(X)
        labels, inertia = assign(X, centers)
        found = (
            model.transform(X), model.predict(X), labels, kmeans_plusplus(X, 4, random_state=1)[1],
        )  # fmt: skip
        answers.append([each.tobytes() for each in found] + [model.score(X), inertia])
    assert answers == [answers[0]] * 4


def test_compiled_only(budget):
    budget(Budget(1.0))
    # Contexts of two threads may end in any order.
    first, second = numpy_first.compiled_only(), numpy_first.compiled_only()
    kinds = []
    for change in (
        first.__enter__, second.__enter__,
        lambda: first.__exit__(None, None, None), lambda: second.__exit__(None, None, None),
    ):  # fmt: skip
        change()
        kinds.append(type(choose("cpu", X, None, 1)))
    assert kinds == [CPU, CPU, CPU, NumpyFirst]


def test_warm_up_compiles(budget, monkeypatch):
    budget(Budget(np.inf))
    seen = []
    monkeypatch.setattr(
        "lloydia.cli.compilation.warm_up.fits",
        lambda X, k, device: [("lloyd", lambda: seen.append(choose(device, X, None, 1)))],
    )
    compiled("cpu", Shape(150, 4, 3), "float64")
    assert [type(engine) for engine in seen] == [CPU]


@pytest.mark.parametrize("text", ["-1", "nan", "much", ""])
def test_a_wrong_budget_is_an_error(text):
    with pytest.raises(ValueError, match=r"LLOYDIA_NUMPY_SECONDS=.*must be a number of seconds"):
        seconds_of(text)


SMALL = """
import sys
import numpy as np
from lloydia import KMeans, MiniBatchKMeans, assign, k_means_batched, kmeans_plusplus
X = np.random.default_rng(0).random((150, 4))
for init in ("k-means++", "random", "first", "farthest", "k-means||"):
    model = KMeans(3, init=init, random_state=0).fit(X)
model.predict(X), model.transform(X), model.score(X)
KMeans(3).fit(X.astype("float32"), sample_weight=X[:, 0])
MiniBatchKMeans(3).fit(X).partial_fit(X)
assign(X, X[:3]), kmeans_plusplus(X, 3), k_means_batched(np.stack([X, X]), 3)
print("numba" in sys.modules)
KMeans(3, algorithm="hamerly").fit(X)
print("numba" in sys.modules)
"""


def test_little_work_imports_no_compiler():
    environment = {
        name: value for name, value in os.environ.items() if name != numpy_first.VARIABLE
    }
    done = subprocess.run(
        [sys.executable, "-c", SMALL], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == ["False", "True"], done.stderr
