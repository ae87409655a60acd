"""Rows read by blocks: every result has the bits of the same rows in memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import lloydia
from lloydia import KMeans
from lloydia.loop.empty import EmptyClusterError
from lloydia.stopping import Centers, Inertia, Labels
from tight import for_fit, tight

pytestmark = pytest.mark.slow

N = 900


def data(dtype, d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(N, d)) + 3.0 * rng.integers(3, size=(N, 1))
    X[:9] *= 1e4
    X[20:25] = X[20]
    weights = rng.uniform(0, 3, size=N)
    weights[::7] = 0
    return X.astype(dtype), weights


def facts(model):
    return (
        model.labels_.tobytes(),
        model.cluster_centers_.tobytes(),
        model.inertia_,
        model.n_iter_,
        getattr(model, "inertia_history_", None),
    )


def empty_start(X):
    return np.vstack([X[:5], np.full((3, X.shape[1]), 1e7, dtype=X.dtype)])


INITS = ["k-means++", "k-means||", "random", "first", "farthest", empty_start]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [3, 12])
def test_fits_have_the_bits_of_rows_in_memory(d, dtype, weighted):
    X, weights = data(dtype, d)
    weights = weights if weighted else None
    for init in INITS:
        given = init(X) if callable(init) else init
        n_init = 1 if callable(init) else 2
        model = KMeans(8, init=given, n_init=n_init, random_state=3, max_iter=30)
        expected = facts(model.fit(X, sample_weight=weights))
        for block, kept in ((251, 2), (N, 0)):
            source = tight(X, for_fit(model, weights), kept, weighted, block=block)
            assert facts(clone(model).fit(source, sample_weight=weights)) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"stop": Labels(0.01) | Centers(1e-3)},
        {"stop": Inertia(5.0)},
        {"empty": "keep"},
        {"max_iter": 2},
        {"algorithm": "lloyd", "n_threads": 1},
        {"algorithm": "hamerly"},
        {"algorithm": "exponion"},
        {"algorithm": "yinyang"},
        {"algorithm": "elkan"},
        {"algorithm": "filtering"},
    ],
    ids=str,
)
def test_options_mean_what_they_mean_in_memory(options):
    X, _ = data("float32", 5)
    model = KMeans(8, init=empty_start(X), **options)
    expected = facts(model.fit(X))
    source = tight(X, for_fit(model), 1, block=200)
    assert facts(clone(model).fit(source)) == expected


@pytest.mark.parametrize(
    ("init", "passes"), [("first", 1), ("random", 1), ("k-means||", 12), ("k-means++", 3 * 7 + 2)]
)
def test_passes_are_as_many_as_documented(init, passes):
    X, _ = data("float32", 5)
    opened = []

    def blocks():
        opened.append(True)
        return iter([X])

    model = KMeans(8, init=init, n_init=1, random_state=0, max_iter=3, tol=0)
    source = tight(blocks, for_fit(model), block=100)
    opened.clear()
    model.fit(source)
    # To check and measure, three iterations, the last assignment.
    assert len(opened) <= passes + 5


def test_empty_clusters_are_refused():
    X, _ = data("float32", 5)
    model = KMeans(8, init=empty_start(X), empty="error")
    with pytest.raises(EmptyClusterError, match="has no points"):
        model.fit(tight(X, for_fit(model), block=200))


def test_verbose_says_the_plan_and_keeps_the_history(capsys):
    X, _ = data("float64", 3)
    model = KMeans(4, random_state=0, max_iter=3, verbose=1)
    expected = facts(model.fit(X))
    capsys.readouterr()
    assert facts(clone(model).fit(tight(X, for_fit(model), block=100))) == expected
    assert "0 of 9 blocks of 100 rows stay in memory, 9 are read" in capsys.readouterr().out


def test_a_fit_goes_on_from_a_checkpoint_made_in_memory(tmp_path):
    callbacks = pytest.importorskip("lloydia.callbacks")
    X, _ = data("float32", 5)
    model = KMeans(8, random_state=1, max_iter=4).set_callbacks(
        callbacks.Checkpoint(tmp_path / "c.npz", every=2)
    )
    expected = facts(model.fit(X))
    resumed = KMeans.resume(tmp_path / "c.npz")
    found = facts(resumed.fit(tight(X, for_fit(resumed), 1, block=200)))
    assert found[:4] == expected[:4]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_predictions_have_the_bits_of_rows_in_memory(dtype):
    X, weights = data(dtype, 6)
    fitted = KMeans(7, random_state=0).fit(X.astype("float64"))

    def meant(a_row=0):
        # float32 rows and float64 centres meet in float64.
        return lambda source: source.meant_for(fitted, reset=False, a_row=a_row).astype(float)

    labels = fitted.predict(tight(X, meant(), block=170))
    np.testing.assert_array_equal(labels, fitted.predict(X))
    score = fitted.score(tight(X, meant(), 0, True, block=170), sample_weight=weights)
    assert score == fitted.score(X, sample_weight=weights)
    distances = fitted.transform(tight(X, meant(8 * 7), block=170))
    assert distances.tobytes() == fitted.transform(X).tobytes()


def test_another_device_takes_rows_that_fit():
    X, _ = data("float64", 3)
    model = KMeans(4, random_state=0, device="reference")
    assert facts(clone(model).fit(lloydia.chunks(X, memory="2GB"))) == facts(model.fit(X))
    with pytest.raises(
        ValueError, match=r"needs all rows in memory, .* device='cpu' or device='cuda'"
    ):
        model.fit(tight(X, for_fit(model), block=100))


def test_magnitudes_are_refused_as_in_memory():
    X = np.array([[1.0], [1e160], [2.0], [3.0]])
    model = KMeans(2, random_state=0)
    with pytest.raises(ValueError, match=r"magnitude 1e\+160 in X is too large"):
        model.fit(tight(X, for_fit(model), block=2))


LARGE = """
import numpy as np, lloydia
first = np.random.default_rng(0).normal(size=(20_000, 128)).astype("float32")
blocks = lambda: (first + np.float32(i) for i in range(25))
source = lloydia.chunks(blocks, memory="560MB")
model = lloydia.KMeans(4, init="first", max_iter=2, tol=0)
plan = source.meant_for(model, reset=True).plan(False, None)
assert not plan.whole and plan.n_kept > 0, plan
model.fit(source)
found = [line.split() for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(plan.peak, int(found[0][1]) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what a process took")
def test_memory_is_what_was_said_beforehand():
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    planned, taken = map(int, done.stdout.split())
    # 256 MB of rows, beside 450 MB for the program.
    assert taken <= planned <= 560_000_000
