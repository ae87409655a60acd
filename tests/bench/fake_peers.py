"""Peers that are right, wrong, slow or broken; the workers import this module by its name."""

from __future__ import annotations

import os
import time

from lloydia import KMeans
from lloydia.bench.cases import Case
from lloydia.bench.peers import Fitted, Peer

TINY = Case("tiny", 2_000, 3, 5, "mixture", iterations=(2, 6))


class Right(Peer):
    name = "right"
    package = "numpy"

    def fit(self, X, task):
        print("libraries print what they like")
        init = "k-means++" if task.start is None else task.start
        fitted = KMeans(
            task.k, init=init, n_init=1, max_iter=task.iterations, tol=task.tol, random_state=0
        ).fit(X)
        return Fitted(fitted.cluster_centers_, fitted.n_iter_)


class Wrong(Right):
    name = "wrong"

    def fit(self, X, task):
        fitted = super().fit(X, task)
        return Fitted(fitted.centers * 1.5, fitted.n_iter)


class Sampling(Right):
    name = "sampling"

    def fit(self, X, task):
        fitted = super().fit(X[::2], task)
        return Fitted(super().fit(X, task).centers, fitted.n_iter, objective=1e-3)


class Slow(Right):
    name = "slow"

    def fit(self, X, task):
        time.sleep(60)
        return super().fit(X, task)


class Broken(Right):
    name = "broken"

    def fit(self, X, task):
        raise ArithmeticError("a reason")


class Crashing(Right):
    name = "crashing"

    def fit(self, X, task):
        os._exit(3)


class Missing(Right):
    name = "missing"
    package = "no-such-package-as-this"


class Narrow(Right):
    name = "narrow"
    dtypes = ("float32",)


class Lying(Right):
    """Ours, but for one bit of the inertia."""

    name = "lying"
    stops = True

    def fit(self, X, task):
        fitted = KMeans(
            task.k, init=task.start, n_init=1, max_iter=task.iterations, tol=task.tol
        ).fit(X)
        inertia = fitted.inertia_ * (1 + 2**-50)
        return Fitted(fitted.cluster_centers_, fitted.n_iter_, fitted.labels_, inertia)


PEERS = (
    *(Right(), Wrong(), Sampling(), Slow(), Broken(), Crashing(), Missing(), Narrow()),
    Lying(),
)
