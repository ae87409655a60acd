"""A fit that goes on from a checkpoint, in this process; test_killed.py kills real ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, stopping
from lloydia.backends.cpu.engine import CPU
from lloydia.data.columns import DataError
from table import answer, blobs, weights_of

pytest.importorskip("sklearn.callback")
from lloydia.callbacks import Checkpoint

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)

X = blobs(600, 3, "float32")


class Break(Exception):
    """What ends a fit early."""


class After:
    """Ends a fit in the iteration after so many, of all its runs."""

    needs_inertia = False

    def __init__(self, iterations):
        self.left = iterations + 1

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "iteration":
            self.left -= 1
            if self.left < 0:
                raise Break

    def on_fit_task_end(self, estimator, context): ...


def broken(path, iterations, X, weights=None, **parameters):
    """Leave a checkpoint of a fit that ends after so many iterations."""
    model = KMeans(**parameters).set_callbacks(Checkpoint(path, every=1), After(iterations))
    with pytest.raises(Break):
        model.fit(X, sample_weight=weights)


class Stop:
    """Stops the run under way in the iteration so many, of all runs, and the fit with it or not."""

    needs_inertia = False

    def __init__(self, iterations, fit):
        self.left, self.fit = iterations, fit

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...
    def on_fit_task_end(self, estimator, context):
        if context.task_name != "iteration":
            return self.fit and self.left <= 0
        self.left -= 1
        return self.left == 0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.npz"


CASES = {
    "one run": {"max_iter": 12},
    "several": {"n_init": 3, "init": "random", "max_iter": 6},
    "given centres": {"init": X[:9].astype(np.float64), "max_iter": 12},
    "history and drop": {"stop": stopping.Inertia(2.0) | stopping.Labels(0.001)},
    "empty": {"init": np.vstack([X[:7], np.full((2, 3), 1e3)]), "max_iter": 8},
    "kept empty": {"init": np.vstack([X[:7], np.full((2, 3), 1e3)]), "empty": "keep"},
    "verbose": {"verbose": 1, "max_iter": 8},
    "no seed": {"random_state": None, "n_init": 2, "max_iter": 4},
}


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("weighting", ["none", "wide"])
@pytest.mark.parametrize("case", CASES)
def test_the_bits_are_those_of_a_fit_without_a_break(case, weighting, device, path):
    weights = weights_of(weighting, len(X))
    parameters = {"n_clusters": 9, "random_state": 3, "tol": 0, **CASES[case]}
    if parameters["random_state"] is None:
        np.random.seed(7)
    expected = KMeans(**parameters).fit(X, sample_weight=weights)
    for iterations in (1, 2, expected.n_iter_ - 2):
        if parameters["random_state"] is None:
            np.random.seed(7)
        broken(path, iterations, X, weights, **parameters)
        model = KMeans.resume(path).set_params(device=device)
        assert not hasattr(model, "labels_")
        model.fit(X, sample_weight=weights)
        assert answer(model) == answer(expected), iterations
        assert model.converged_ == expected.converged_
        ours, theirs = (getattr(each, "inertia_history_", None) for each in (model, expected))
        assert ours == theirs


@pytest.mark.parametrize("algorithm", ["elkan", "hamerly", "exponion", "yinyang", "filtering"])
def test_any_algorithm_goes_on_from_any_other(algorithm, path):
    expected = KMeans(9, random_state=3, tol=0).fit(X)
    broken(path, 3, X, n_clusters=9, random_state=3, tol=0, algorithm="lloyd")
    model = KMeans.resume(path).set_params(algorithm=algorithm, n_threads=3).fit(X)
    assert answer(model) == answer(expected)


def test_sparse_rows_go_on_from_dense_ones(path):
    broken(path, 3, X, n_clusters=9, random_state=3)
    assert answer(KMeans.resume(path).fit(sp.csr_matrix(X))) == answer(
        KMeans(9, random_state=3).fit(X)
    )


def test_a_fit_may_break_again_and_again(path):
    parameters = {"n_clusters": 9, "random_state": 3, "tol": 0, "n_init": 2}
    expected = KMeans(**parameters).fit(X)
    broken(path, 2, X, **parameters)
    breaks = 0
    while True:
        model = KMeans.resume(path).set_callbacks(Checkpoint(path, every=1), After(1))
        try:
            model.fit(X)
            break
        except Break:
            breaks += 1
            assert not hasattr(model, "labels_")
    assert breaks > 5
    assert answer(model) == answer(expected)


def test_a_resumed_estimator_that_broke_can_be_fitted_again(path):
    broken(path, 3, X, n_clusters=9, random_state=3)
    model = KMeans.resume(path).set_callbacks(After(1))
    with pytest.raises(Break):
        model.fit(X)
    model.set_callbacks()
    iterations = model.fit(X).n_distances_ // (9 * len(X))
    assert iterations < model.n_iter_
    # The next fit begins anew, and so does one of a clone.
    assert model.fit(X).n_distances_ // (9 * len(X)) >= model.n_iter_
    again = clone(KMeans.resume(path)).fit(X)
    assert again.n_distances_ // (9 * len(X)) >= model.n_iter_


RAISED = {
    "one run": {},
    "several": {"n_init": 3, "init": "random"},
    "history and drop": {"stop": stopping.Inertia(2.0), "verbose": 1},
    "empty": {"init": np.vstack([X[:7], np.full((2, 3), 1e3)])},
}


@pytest.mark.parametrize("weighting", ["none", "wide"])
@pytest.mark.parametrize("case", RAISED)
def test_max_iter_can_be_raised(case, weighting, path):
    weights = weights_of(weighting, len(X))
    parameters = {"n_clusters": 9, "random_state": 3, "tol": 0, **RAISED[case]}
    expected = KMeans(max_iter=9, **parameters).fit(X, sample_weight=weights)
    few = KMeans(max_iter=3, **parameters).set_callbacks(Checkpoint(path))
    assert few.fit(X, sample_weight=weights).n_iter_ == 3 < expected.n_iter_

    model = KMeans.resume(path).set_params(max_iter=9).fit(X, sample_weight=weights)
    assert answer(model) == answer(expected)
    ours, theirs = (getattr(each, "inertia_history_", None) for each in (model, expected))
    assert ours == theirs
    assert model.n_distances_ < expected.n_distances_

    # Raised after a break, and after one of the fit that went on.
    broken(path, 6 if "n_init" in parameters else 1, X, weights, max_iter=3, **parameters)
    saving = (Checkpoint(path, every=1), After(0))
    model = KMeans.resume(path).set_params(max_iter=6).set_callbacks(*saving)
    with pytest.raises(Break):
        model.fit(X, sample_weight=weights)
    model = KMeans.resume(path).set_params(max_iter=9).fit(X, sample_weight=weights)
    assert answer(model) == answer(expected)


def test_a_run_that_ended_by_itself_stays_ended_when_max_iter_is_raised(path):
    fitted = KMeans(9, random_state=3).set_callbacks(Checkpoint(path)).fit(X)
    model = KMeans.resume(path).set_params(max_iter=1000).fit(X)
    assert answer(model) == answer(fitted)
    assert model.n_distances_ == 9 * len(X)


@pytest.mark.parametrize("iterations", [1, 3, 8, 11, 14])
@pytest.mark.parametrize("n_init", [1, 3])
def test_a_fit_that_a_callback_stopped_goes_on_where_it_was(n_init, iterations, path):
    parameters = {"n_clusters": 9, "random_state": 3, "tol": 0, "max_iter": 5, "n_init": n_init}
    expected = KMeans(**parameters, init="random").fit(X)
    model = KMeans(**parameters, init="random")
    stopped = model.set_callbacks(Checkpoint(path), Stop(iterations, fit=True)).fit(X)
    resumed = KMeans.resume(path).fit(X)
    assert answer(resumed) == answer(expected)
    # Made twice are the last iteration and the assignment to the centres that followed.
    passes = (stopped.n_distances_ + resumed.n_distances_ - expected.n_distances_) / (9 * len(X))
    assert passes <= 3


def test_runs_that_a_callback_stopped_while_the_fit_went_on_are_over(path):
    parameters = {"n_clusters": 9, "random_state": 3, "tol": 0, "n_init": 3, "init": "random"}
    model = KMeans(**parameters).set_callbacks(Checkpoint(path, every=1), Stop(2, fit=False))
    fitted = model.fit(X)
    assert fitted.n_iter_ > 2
    assert fitted.inertia_ > KMeans(**parameters).fit(X).inertia_
    assert answer(KMeans.resume(path).fit(X)) == answer(fitted)
    # In a fit that broke after it, too.
    model.set_callbacks(Checkpoint(path, every=1), Stop(2, fit=False), After(8))
    with pytest.raises(Break):
        model.fit(X)
    assert answer(KMeans.resume(path).fit(X)) == answer(fitted)


def test_a_fit_that_is_over_has_its_result_again(path):
    fitted = KMeans(9, random_state=3, n_init=2).set_callbacks(Checkpoint(path)).fit(X)
    again = KMeans.resume(path).fit(X)
    assert answer(again) == answer(fitted)
    assert again.n_distances_ == 9 * len(X)


def test_generators_of_the_caller_s_go_on_where_they_were(path):
    def parameters():
        return {
            "n_clusters": 9, "random_state": np.random.RandomState(5), "n_init": 3, "init": "random"
        }  # fmt: skip

    expected, before = KMeans(**parameters()).fit(X), np.random.get_state()[1].copy()
    broken(path, 8, X, **parameters())
    resumed = KMeans.resume(path)
    assert answer(resumed.fit(X)) == answer(expected)
    assert resumed.random_state.randint(1000) == expected.random_state.randint(1000)
    assert (np.random.get_state()[1] == before).all()


def test_an_iteration_pays_for_no_inertia(path, monkeypatch):
    asked = []
    iterate = CPU.iterate
    monkeypatch.setattr(CPU, "iterate", lambda self, i: (asked.append(i), iterate(self, i))[1])
    model = KMeans(9, random_state=3).set_callbacks(Checkpoint(path, every=1)).fit(X)
    assert len(asked) == model.n_iter_
    assert not any(asked)
    assert not hasattr(model, "inertia_history_")


def times_written(monkeypatch):
    from lloydia.data import checkpoints

    written = []
    save = checkpoints.save_snapshot
    monkeypatch.setattr(
        checkpoints, "save_snapshot", lambda s, p: (written.append(s), save(s, p))[1]
    )
    return written


def test_how_often(path, monkeypatch):
    written = times_written(monkeypatch)
    model = KMeans(9, random_state=3, tol=0)
    n = model.fit(X).n_iter_
    assert n > 6
    for every, expected in ((1, n + 1), (4, n // 4 + 1), (1000, 1)):
        written.clear()
        model.set_callbacks(Checkpoint(path, every=every)).fit(X)
        assert len(written) == expected
    for seconds, expected in ((1e-9, n + 1), (1000.0, 1), (None, 1)):
        written.clear()
        model.set_callbacks(Checkpoint(path, seconds=seconds)).fit(X)
        assert len(written) == expected
    written.clear()
    model.set_callbacks(Checkpoint(path, every=n - 1, seconds=1000.0)).fit(X)
    assert [[*snapshot.halts.values()] for snapshot in written[1:]] == [[]]
    assert written[0].halts[0].iteration == n - 1


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        (lambda X: X[:-1], r"shape \(599, 3\).*\(600, 3\)"),
        (lambda X: X.astype(np.float64), "dtype float64.*float32"),
        (lambda X: X[::-1], "other values"),
        (lambda X: X * 2, "other values"),
    ],
)
def test_other_data_are_refused(changed, match, path):
    broken(path, 3, X, n_clusters=9, random_state=3)
    with pytest.raises(ValueError, match=match):
        KMeans.resume(path).fit(changed(X))


def test_a_single_other_value_is_refused(path):
    other = X.copy()
    other[1, 1] *= 0.75
    broken(path, 3, X, n_clusters=9, random_state=3)
    with pytest.raises(ValueError, match="do not follow from these rows"):
        KMeans.resume(path).fit(other)
    KMeans(9, random_state=3).set_callbacks(Checkpoint(path)).fit(X)
    with pytest.raises(ValueError, match="the inertia"):
        KMeans.resume(path).fit(other)


def test_other_weights_are_refused(path):
    broken(path, 3, X, n_clusters=9, random_state=3)
    with pytest.raises(ValueError, match="weights"):
        KMeans.resume(path).fit(X, sample_weight=np.arange(600.0))


@pytest.mark.parametrize(
    "changes",
    [
        {"n_clusters": 8},
        {"max_iter": 7},
        {"tol": 1e-3},
        {"stop": stopping.Labels()},
        {"init": X[:9]},
    ],
    ids=str,
)
def test_parameters_that_matter_are_not_changed(changes, path):
    broken(path, 3, X, n_clusters=9, random_state=3)
    (name,) = changes
    with pytest.raises(ValueError, match=f"{name}=.* differs from the interrupted fit"):
        KMeans.resume(path).set_params(**changes).fit(X)


def test_another_array_is_told_by_its_digest(path):
    broken(path, 3, X, n_clusters=9, init=X[:9])
    with pytest.raises(ValueError, match=r"init='array \w{16}' .* fit \(init='array \w{16}'\)"):
        KMeans.resume(path).set_params(init=X[1:10]).fit(X)


class Own(stopping.Rule):
    def __call__(self, report):
        return False


@pytest.mark.parametrize(
    "parameters",
    [
        {"init": lambda X, k, random_state: X[:k]},
        {"stop": Own() | stopping.Labels()},
        {"random_state": np.random.RandomState(np.random.PCG64(1))},
    ],
    ids=["function", "rule", "generator"],
)
def test_what_no_file_can_hold_is_refused_before_the_fit(parameters, path):
    model = KMeans(9, n_init=1, **parameters).set_callbacks(Checkpoint(path))
    with pytest.raises(ValueError, match=r"cannot hold|cannot be written as text"):
        model.fit(X)
    assert not path.exists()


def test_bad_checkpoints_are_refused_before_the_fit(tmp_path):
    for bad, match in (
        ({"every": 0}, "every=0 must be None or an integer"),
        ({"seconds": -1}, "seconds=-1 must be None or a number"),
        ({"seconds": "10"}, "seconds='10' must be None or a number"),
        ({"path": None}, "path=None must be a str or a Path of an .npz"),
    ):
        with pytest.raises(ValueError, match=match):
            Checkpoint(**{"path": tmp_path / "fit.npz", **bad})
    for name, match in (("fit.txt", "extension"), ("nowhere/fit.npz", "there is no folder")):
        with pytest.raises(DataError, match=match):
            KMeans(3).set_callbacks(Checkpoint(tmp_path / name)).fit(X)
    from sklearn.cluster import KMeans as Other

    if hasattr(Other, "set_callbacks"):
        with pytest.raises(TypeError, match=r"for lloydia\.KMeans"):
            Other(3).set_callbacks(Checkpoint(tmp_path / "fit.npz")).fit(X)
