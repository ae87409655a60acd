"""Elkan's k bounds a point and yinyang's t: they hold, they skip work, and they know their room."""

from __future__ import annotations

import gc
import weakref
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydia import KMeans
from lloydia.algorithms import elkan
from lloydia.algorithms.auto import Auto, may_take
from lloydia.algorithms.elkan import Elkan
from lloydia.algorithms.geometry import Padding
from lloydia.algorithms.yinyang import MIN_BYTES, Yinyang, near_each_other
from lloydia.backends import choose
from lloydia.backends.cpu.scan import tile_scores
from lloydia.data.chunks import memory
from nasty import FLAVOURS, nasty_rows, rows_of

BOTH = pytest.mark.parametrize("algorithm", ["elkan", "yinyang"])


def overlapping(n, d, k, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(k, d))[rng.integers(k, size=n)] + 0.7 * rng.normal(size=(n, d))
    return X.astype(dtype)


def squares(x, centers):
    """Return the squared distances of a row, exactly."""
    return [
        sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(x, c, strict=True))
        for c in centers
    ]


@BOTH
@given(nasty_rows(most=30, features=14), st.integers(2, 5))
@settings(deadline=None, max_examples=60)
def test_bounds_bound_the_true_distances_of_nasty_rows(algorithm, X, k):
    """After every assignment, against rational arithmetic; near ties leave them little room."""
    X = np.vstack([X, (X[:1] + X[-1:]) / 2, X[:3]]).astype(X.dtype)
    engine = choose("cpu", X, None, 1)
    engine.start(X[:k], algorithm)
    for _ in range(4):
        engine.iterate(False)
        upper, lower = engine.run.bounds.now(engine.run.assigned)
        unit = Fraction(engine.run.bounds.padding.unit)
        for i, x in enumerate(X):
            exact = squares(x, engine.run.used)
            if np.isfinite(upper[i]):
                assert (Fraction(upper[i]) / unit) ** 2 >= exact[engine.run.assigned[i]]
            for low, square in zip(lower[i], exact, strict=True):
                # Infinite bounds are of groups without another centre.
                if np.isfinite(low) and low > 0:
                    assert (Fraction(low) / unit) ** 2 <= square


@BOTH
@pytest.mark.parametrize("size", [1.0, 1e-20, 1e-30, 1e-150])
@pytest.mark.parametrize(("k", "d"), [(2, 3), (5, 40), (40, 2)])
def test_tiny_rows_leave_centres_that_are_all_one(algorithm, size, k, d):
    X = np.random.default_rng(0).normal(size=(60, d)) * size
    of = {"n_clusters": k, "init": X[[1] * k], "n_init": 1, "max_iter": 4, "tol": 0.0}
    right = KMeans(**of, empty="keep", device="reference").fit(X)
    found = KMeans(**of, empty="keep", algorithm=algorithm, device="cpu").fit(X)
    assert (found.labels_ == right.labels_).all()
    assert (found.cluster_centers_ == right.cluster_centers_).all()
    assert found.inertia_ == right.inertia_


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3000, 3, 300), (2000, 40, 150), (1500, 200, 20)], ids=str)
def test_bounds_hold_from_the_start_to_the_end(algorithm, dtype, shape):
    n, d, k = shape
    X = overlapping(n, d, k, dtype)
    engine = choose("cpu", X, None, 1)
    engine.start(X[:k], algorithm)
    for _ in range(60):
        report = engine.iterate(False).result()
        upper, lower = engine.run.bounds.now(engine.run.assigned)
        wide, unit = engine.run.used.astype(float), engine.run.bounds.padding.unit
        D = np.sqrt(np.square(X[:, None].astype(float) - wide).sum(axis=2)) * unit
        slack = 1 + d * 2.0**-50
        assert (D[np.arange(n), engine.run.assigned] <= upper * slack).all()
        assert (lower <= D * slack).all()
        if report.n_changed == 0:
            break
    assert engine.run.iteration > 3
    assert engine.n_distances < 0.9 * n * k * engine.run.iteration


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@BOTH
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_flavours_give_lloyds_labels(algorithm, flavour, dtype):
    X = rows_of(flavour, 2500, 11, dtype, seed=2)
    common = {"n_init": 1, "random_state": 3, "tol": 0}
    expected = KMeans(70, algorithm="lloyd", **common).fit(X)
    model = KMeans(70, algorithm=algorithm, **common).fit(X)
    assert (model.labels_ == expected.labels_).all()
    assert (model.cluster_centers_ == expected.cluster_centers_).all()
    assert model.n_iter_ == expected.n_iter_


@BOTH
@pytest.mark.parametrize("d", [1, 2, 9])
def test_nearly_as_many_centres_as_rows(algorithm, d):
    X = overlapping(6000, d, 50)
    common = {"init": "random", "n_init": 1, "random_state": 0, "max_iter": 4}
    expected = KMeans(5000, algorithm="lloyd", **common).fit(X)
    model = KMeans(5000, algorithm=algorithm, **common).fit(X)
    assert (model.labels_ == expected.labels_).all()
    assert (model.cluster_centers_ == expected.cluster_centers_).all()


@BOTH
def test_one_centre(algorithm):
    X = overlapping(500, 6, 3)
    engine = choose("cpu", X, None, 1)
    engine.start(X[:1], algorithm)
    for _ in range(3):
        report = engine.iterate(False).result()
    assert report.n_changed == 0
    assert (engine.run.assigned == 0).all()


@pytest.mark.parametrize(("k", "size"), [(1, 16), (48, 48), (1000, 48), (130, 32), (20_000, 48)])
def test_groups_are_full_and_near(k, size):
    C = np.random.default_rng(0).normal(size=(k, 3))
    order = near_each_other(C, size)
    assert (np.sort(order) == np.arange(k)).all()
    if k < 10 * size:
        return

    def spread(order):
        groups = [C[order[at : at + size]] for at in range(0, k, size)]
        return sum(np.square(g - g.mean(axis=0)).sum() for g in groups)

    assert spread(order) < 0.5 * spread(np.arange(k))
    assert (near_each_other(np.zeros((k, 3)), size) == np.arange(k)).all()


@pytest.mark.parametrize(("k", "row_bytes"), [(20_000, 8), (20_000, 4000), (7, 4)])
def test_bounds_of_groups_take_no_more_room_than_the_rows(k, row_bytes):
    bounds = Yinyang(10, k, Padding.of(np.ones(2), np.dtype(np.float32)))
    bounds.divide(np.random.default_rng(0).normal(size=(k, 2)), 48, row_bytes)
    assert bounds.lower.nbytes <= 10 * max(row_bytes, MIN_BYTES)
    assert bounds.size * len(bounds.lower) >= k


def test_elkan_says_how_much_room_it_needs(monkeypatch):
    monkeypatch.setattr(elkan, "free_bytes", lambda: 100_000.0)
    with pytest.raises(MemoryError, match=r"needs 1,4\d\d,\d\d\d bytes .* 100,000 are free"):
        KMeans(100, algorithm="elkan", n_init=1).fit(overlapping(3000, 4, 10))


def test_elkan_may_take_over_in_the_middle_of_a_run(monkeypatch):
    """What its memory held before is no bound."""
    begin, turns = Elkan.__init__, iter(["lloyd", "lloyd", *["elkan"] * 300])

    def filled(self, *args):
        begin(self, *args)
        self.lower.fill(1e30)

    monkeypatch.setattr(Elkan, "__init__", filled)
    monkeypatch.setattr(Auto, "after", lambda *args: next(turns))
    X = overlapping(3000, 20, 40)
    of = {"n_clusters": 40, "init": X[:40], "n_init": 1, "tol": 0.0}
    expected = KMeans(**of, algorithm="lloyd").fit(X)
    found = KMeans(**of).fit(X)
    assert found.algorithm_ == "elkan"
    assert found.n_iter_ == expected.n_iter_ > 10
    assert (found.labels_ == expected.labels_).all()
    assert found.inertia_ == expected.inertia_


@pytest.mark.parametrize(
    ("k", "row", "free", "modest"),
    [
        (1000, 3072, 8e9, True),
        (1000, 1024, 8e9, False),
        (1000, 3072, 1e9, False),
        (10, 3072, 8e9, True),
        (10, 3072, np.inf, False),
    ],
)
def test_bounds_are_modest_beside_the_rows_and_what_is_free(monkeypatch, k, row, free, modest):
    monkeypatch.setattr(elkan, "free_bytes", lambda: free)
    assert elkan.is_modest(100_000, k, row) == modest
    assert may_take(100_000, k, row, np.inf, True, "elkan") == modest
    assert not may_take(100_000, k, row, np.inf, False, "elkan")
    assert not may_take(100_000, k, row, elkan.bytes_of_row(k) - 1, True, "elkan")


def test_what_nobody_tells_is_no_limit(monkeypatch):
    def silent():
        raise OSError("no such file")

    assert 0 < elkan.free_bytes() < 2**60
    monkeypatch.setattr(memory, "available", silent)
    assert elkan.free_bytes() == np.inf


@pytest.fixture
def no_units(monkeypatch):
    """Have no matrix units: with them auto offers no bounds of many centres."""
    monkeypatch.setattr(tile_scores, "AMX", False)


@pytest.mark.usefixtures("no_units")
def test_an_engine_goes_with_its_last_reference():
    """Its rows and bounds do not wait for the garbage collector."""
    engine = choose("cpu", overlapping(3000, 300, 10), None, 1)
    engine.start(np.zeros((200, 300), np.float32), "auto")
    assert engine.run.auto.others
    gone = weakref.ref(engine)
    gc.disable()
    try:
        del engine
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.usefixtures("no_units")
def test_bounds_of_the_last_run_make_room_for_those_of_the_next(monkeypatch):
    engine = choose("cpu", overlapping(3000, 300, 10), None, 1)
    engine.start(np.zeros((200, 300), np.float32), "elkan")
    seen = []
    monkeypatch.setattr(elkan, "free_bytes", lambda: seen.append(engine.run.bounds) or 1e9)
    engine.start(np.zeros((200, 300), np.float32), "auto")
    engine.start(np.zeros((200, 300), np.float32), "elkan")
    assert len(seen) >= 2
    assert all(one is None for one in seen)
