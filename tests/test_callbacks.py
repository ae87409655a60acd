"""scikit-learn's callback protocol (1.9 and later)."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from lloydia import KMeans

callback = pytest.importorskip("sklearn.callback")

X, _ = make_blobs(600, 2, centers=12, random_state=0)


class Recorder:
    """Writes down every hook; stops after some iterations."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events = []
        self.scores = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.events.append(("end", context.task_name))
        self.scores.append(-fitted_estimator.score(X))
        if context.task_name == "iteration" and self.stop_after is not None:
            self.stop_after -= 1
            return self.stop_after == 0
        return False


def model(**changes):
    common = {"n_clusters": 12, "init": "random", "random_state": 0, "n_init": 1}
    return KMeans(**{**common, **changes})


def test_every_task_begins_and_ends():
    recorder = Recorder()
    fitted = model().set_callbacks(recorder).fit(X)
    iterations = [("begin", "iteration"), ("end", "iteration")] * fitted.n_iter_
    assert recorder.events == [
        "setup", ("begin", "fit"), *iterations, ("end", "fit"), "teardown"
    ]  # fmt: skip
    assert recorder.scores[-1] == fitted.inertia_
    assert (np.diff(recorder.scores) <= 0).all()
    assert len(fitted.inertia_history_) == fitted.n_iter_
    assert fitted.inertia_ == model().fit(X).inertia_


def test_several_runs_are_tasks_of_their_own():
    recorder = Recorder()
    model(n_init=3).set_callbacks(recorder).fit(X)
    assert recorder.events.count(("begin", "run")) == 3
    assert recorder.events.count(("end", "run")) == 3


def test_a_callback_stops_the_run():
    fitted = model().set_callbacks(Recorder(stop_after=3)).fit(X)
    assert fitted.n_iter_ == 3
    assert not fitted.converged_
    assert (fitted.labels_ == fitted.predict(X)).all()


def test_scikit_learns_own_callbacks_work(capsys):
    monitor = callback.ScoringMonitor(scoring=None)
    fitted = model().set_callbacks(monitor).fit(X)
    assert monitor.get_logs()
    fitted = model(n_init=2).set_callbacks(callback.ProgressBar()).fit(X)
    assert fitted.converged_


def test_teardown_is_called_after_an_error():
    recorder = Recorder()
    with pytest.raises(ValueError, match="n_samples"):
        KMeans(10**6).set_callbacks(recorder).fit(X)
    broken = Recorder()
    broken.on_fit_task_begin = None
    with pytest.raises(TypeError):
        model().set_callbacks(broken).fit(X)
    assert "teardown" in broken.events
