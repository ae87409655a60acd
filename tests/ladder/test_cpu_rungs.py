"""The ladder's rungs on the CPU, each against rung 0 and against the engine's oracle."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from lloydia import KMeans
from lloydia.ladder import named, names, where
from lloydia.ladder.openmp import openmp
from lloydia.ladder.r02_elkan import holds
from lloydia.stopping import Centers, Inertia, Labels
from table import blobs

pytestmark = pytest.mark.slow

RUNGS = [name for name in names() if where(name) == "cpu"]
ABOVE = RUNGS[1:]
THREADED = [name for name in RUNGS if "threads" in named(name).ABOUT.uses and name[1] != "3"]
TYPES = [np.float64, np.float32]
CLOSE = {np.float64: 1e-12, np.float32: 1e-4}
# Rows, features, clusters; of one and of as many as there are rows too.
SHAPES = [(700, 2, 7), (300, 1, 3), (400, 5, 12), (200, 3, 1), (40, 2, 40)]
# How each system stops: T; A with a least drop; B; C; and fixed iterations, as in A and D.
RULES = {
    "T": (Labels(), 100),
    "A": (Inertia(drop=0.5), 100),
    "B": (Labels(fraction=0.001), 10),
    "C": (Centers(atol=5e-6), 100),
    "D": (None, 7),
}


def data(n, d, k, dtype, seed=3):
    """Return points without near-ties, and k of them to start from."""
    X = np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)
    return X, X[:k].copy()


def climb(name, X, centers, rule, max_iter):
    threads = min(2, numba.config.NUMBA_NUM_THREADS)
    return named(name).fit(X, centers, rule=rule, max_iter=max_iter, threads=threads)


def same(found, wanted, dtype):
    assert found.n_iter == wanted.n_iter
    np.testing.assert_array_equal(found.labels, wanted.labels)
    assert found.labels.dtype == np.int32
    assert found.centers.dtype == dtype
    np.testing.assert_allclose(found.centers, wanted.centers, rtol=0, atol=CLOSE[dtype])


def test_all_are_there():
    numbers = [int(name[1:3]) for name in RUNGS]
    assert numbers == [*range(7), 30, *range(41, 46), 53, *range(60, 64)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ABOVE)
@pytest.mark.parametrize(("n", "d", "k"), SHAPES)
def test_rungs_agree_with_the_first(n, d, k, name, dtype):
    X, start = data(n, d, k, dtype)
    before = start.copy()
    wanted = climb("r00_reference", X, start, Labels(), 100)
    found = climb(name, X, start, Labels(), 100)
    same(found, wanted, dtype)
    assert found.seconds > 0
    np.testing.assert_array_equal(start, before)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("system", RULES)
@pytest.mark.parametrize("name", RUNGS)
def test_every_rule_stops_where_the_oracle_does(name, system, dtype):
    rule, max_iter = RULES[system]
    X, start = data(700, 2, 7, dtype)
    found = climb(name, X, start, rule, max_iter)
    wanted = KMeans(
        7, init=start, stop=rule or Labels(), max_iter=max_iter, device="reference", empty="keep"
    ).fit(X)
    assert found.n_iter == wanted.n_iter_
    atol = CLOSE[dtype]
    np.testing.assert_allclose(found.centers, wanted.cluster_centers_, rtol=0, atol=atol)
    if system == "T":  # the others' last assignment is to other centres
        np.testing.assert_array_equal(found.labels, wanted.labels_)


@pytest.mark.parametrize("name", RUNGS)
def test_without_a_rule_all_iterations_are_done(name):
    X, start = data(40, 2, 2, np.float64)
    assert climb(name, X, start, Labels(), 50).n_iter < 50
    assert climb(name, X, start, None, 50).n_iter == 50


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", RUNGS)
def test_an_empty_cluster_keeps_its_centre(name, dtype):
    X, start = data(200, 2, 4, dtype)
    start[2] = 50.0  # far from all
    start[3] = start[1]  # as near as a lower number
    found = climb(name, X, start, None, 1)
    assert set(found.labels) == {0, 1}
    np.testing.assert_array_equal(found.centers[2:], start[2:])
    np.testing.assert_allclose(found.centers[0], X[found.labels == 0].mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", RUNGS)
def test_labels_are_nearest_but_for_rounding(name, dtype):
    """Where many points lie between two centres, too, whatever their bounds have come to."""
    X = blobs(900, 2, dtype)
    for last in (1, 2, 12):
        used = X[:9].copy() if last == 1 else climb(name, X, X[:9].copy(), None, last - 1).centers
        labels = climb(name, X, X[:9].copy(), None, last).labels
        D = np.square(X[:, None].astype(float) - used).sum(axis=2)
        own, least = np.sqrt(D[np.arange(len(X)), labels]), np.sqrt(D.min(axis=1))
        assert (own - least).max() <= 64 * np.finfo(dtype).eps * np.abs(X).max()
        if last == 1:  # exact at whole numbers: true ties, and they go to the lowest
            whole = (X == np.rint(X)).all(axis=1)
            assert whole.sum() > 50
            np.testing.assert_array_equal(labels[whole], D[whole].argmin(axis=1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", RUNGS)
def test_a_tie_that_bounds_meet_exactly_goes_to_the_lowest(name, dtype):
    """The centres go from 0 and 4 to 1 and 5, and leave 3 between them: u = 1 + 1, l = 3 - 1."""
    X, start = np.array([[0], [2], [3], [7]], dtype), np.array([[0], [4]], dtype)
    assert climb(name, X, start, None, 1).labels.tolist() == [0, 0, 1, 1]
    assert climb(name, X, start, None, 2).labels.tolist() == [0, 0, 0, 1]


def test_the_first_bound_that_fails_ends_elkans_loop():
    """Of a point that must be measured anew no later bound is touched."""
    moved, own = np.array([9.0, 1.0, 1.0, 1.0]), 0
    lower = np.array([5.0, 5.0, 5.0, 5.0])
    assert holds.py_func(3.0, lower, moved, own)
    assert lower.tolist() == [5.0, 4.0, 4.0, 4.0]
    assert not holds.py_func(3.0, lower, moved, own)  # 3 against 3: a tie is no safety
    assert lower.tolist() == [5.0, 3.0, 4.0, 4.0]


@pytest.mark.parametrize("name", THREADED)
def test_threads_are_as_before_afterwards(name):
    X, start = data(40, 2, 2, np.float64)
    before = numba.get_num_threads()
    order = list(numba.config.THREADING_LAYER_PRIORITY)
    climb(name, X, start, None, 2)
    assert numba.get_num_threads() == before
    assert order == numba.config.THREADING_LAYER_PRIORITY


@pytest.mark.parametrize("threads", [0, 10_000])
def test_more_threads_than_there_are_is_an_error(threads):
    X, start = data(40, 2, 2, np.float64)
    with pytest.raises(ValueError, match=f"threads={threads} must be from 1 to "):
        named("r04_threaded_lloyd").fit(X, start, rule=None, max_iter=1, threads=threads)


@pytest.mark.parametrize(
    ("before", "layer"),
    [("", "omp"), ("numba.config.THREADING_LAYER = 'workqueue'; ", "workqueue")],
)
def test_openmp_is_asked_for_unless_another_layer_was_chosen(before, layer):
    """In a process of its own: a layer is chosen once."""
    code = (
        f"import numba; {before}"
        "from lloydia.ladder.openmp import openmp\n"
        "with openmp(1): print(numba.threading_layer())"
    )
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_THREADING_LAYER"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == layer
    assert ("not on OpenMP" in done.stderr) == (layer != "omp")


def test_a_context_that_fails_restores_the_threads():
    before = numba.get_num_threads()
    with pytest.raises(KeyError), openmp(1):
        raise KeyError
    assert numba.get_num_threads() == before
