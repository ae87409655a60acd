"""Rows, starts and answers of the tests of fits like ones before."""

from __future__ import annotations

import torch

from lloydia import KMeans
from lloydia.backends.reference import Reference
from lloydia.data.arrays import on_host
from lloydia.loop import minimise
from lloydia.stopping import Shift, Tolerance
from table import blobs

__all__ = ["known_form", "oracle", "rows_of", "start_of"]


def rows_of(seed, dtype, d, n):
    return torch.from_numpy(blobs(n, d, "float64", seed)).to(getattr(torch, dtype))


def start_of(X, k):
    wide = torch.float64 if X.dtype == torch.float64 else torch.float32
    return X[:: max(1, len(X) // k)][:k].to(wide).clone()


def known_form(X, k, **parameters):
    """Return an estimator with a start in X, of whose form two fits were before.

    The first teaches the limbs of the sums, the second the plans and what comes first.
    """
    parameters = {"n_init": 1, "tol": 0.0, "max_iter": 3, **parameters}
    for seed in (98, 99):
        before = rows_of(seed, str(X.dtype).removeprefix("torch."), X.shape[1], len(X))
        KMeans(k, init=start_of(before, k), **parameters).fit(before)
    return KMeans(k, init=start_of(X, k), **parameters)


def oracle(model, X):
    """Return what :func:`table.answer` is to be of a model that was fitted to X."""
    wide = X.double() if X.dtype == torch.float64 else X.float()
    engine, tol = Reference(wide.numpy(), None), float(model.tol)
    rule = Tolerance(tol, engine.spread, engine.extent) if tol else Shift(0.0)
    result = minimise(
        engine, on_host(model.init).copy(), algorithm="lloyd", rule=rule, max_iter=model.max_iter,
        empty=model.empty,
    )  # fmt: skip
    labels, centers = on_host(result.labels), on_host(result.centers)
    return labels.tobytes(), centers.tobytes(), result.inertia, result.n_iter
