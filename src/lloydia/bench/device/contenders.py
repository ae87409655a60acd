"""The contenders on a device: Lloydia, flash-kmeans, plain PyTorch, and Lloydia's CPU engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from lloydia.backends.numpy_first import compiled_only
from lloydia.bench.cases import Case
from lloydia.bench.peers import Fitted, Peer, Task
from lloydia.spelling import meant
from lloydia.version import __version__

__all__ = ["CONTENDERS", "Contender", "choose"]

SCORES = 1 << 28  # numbers of the n x k matrix that plain PyTorch keeps at a time


class Contender(Peer):
    """A library, or one way to use it, on a device; the start of a :class:`Task` is there."""

    modes: Sequence[str] = ("iterations", "fits")

    def place(self, X: torch.Tensor) -> Any:
        """Return X as this contender computes with it; this is not timed."""
        return X

    def fit(self, X: Any, task: Task) -> Fitted:
        """Fit: exactly `task.iterations` iterations, unless `task.tol` is positive."""
        raise NotImplementedError

    def labels(self, X: Any, centers: torch.Tensor) -> Any:
        """Return the labels of an assignment to these centres, or None if there are none."""
        return self.fit(X, Task(centers.shape[-2], centers, 1, 0.0, 0)).labels


class Ours(Contender):
    """``algorithm="auto"``, where X lives."""

    name = "Lloydia"
    package = "lloydia"
    stops = True

    def version(self) -> str:
        """Return the version that runs, installed or not."""
        return __version__

    def fit(self, X: Any, task: Task) -> Fitted:
        """Fit; the members of a batch together."""
        if X.ndim == 2:
            return self._one(X, task.start, task)
        from lloydia import k_means_batched

        centers, labels, inertia, n_iter = k_means_batched(
            X,
            task.k,
            init=task.start,
            max_iter=task.iterations,
            tol=task.tol,
            device=str(X.device),
        )
        return Fitted(centers, int(n_iter.max()), labels, float(sum(inertia.tolist())))

    def _one(self, X: Any, start: Any, task: Task) -> Fitted:
        from lloydia import KMeans

        model = KMeans(
            task.k,
            init=start,
            n_init=1,
            max_iter=task.iterations,
            tol=task.tol,
            device=str(X.device),
        )
        return Fitted.by(model.fit(X))


class OursOnCPU(Ours):
    """The CPU engine on all processors, which must give the same result."""

    name = "Lloydia CPU"
    modes = ("fits",)
    affordable = 3e12  # terms of D in a whole fit

    def place(self, X: torch.Tensor) -> torch.Tensor:
        """Copy X to the host."""
        return X.cpu()

    def fit(self, X: Any, task: Task) -> Fitted:
        """Fit."""
        host = Task(task.k, task.start.cpu(), task.iterations, task.tol, task.threads)
        with compiled_only():
            return super().fit(X, host)


class FlashKMeans(Contender):
    """flash-kmeans: one assignment kernel, a sort, sums, and a synchronisation an iteration."""

    name = "flash-kmeans"
    package = "flash-kmeans"
    dtypes = ("float32",)

    def fit(self, X: Any, task: Task) -> Fitted:
        """Iterate; its labels belong to the centres before its last update."""
        from flash_kmeans import batch_kmeans_Euclid

        batch = X if X.ndim == 3 else X[None]
        labels, centers, n_iter = batch_kmeans_Euclid(
            batch,
            task.k,
            max_iters=task.iterations,
            tol=-1.0,
            init_centroids=task.start.to(X.dtype).reshape(len(batch), task.k, -1),
        )
        labels = labels.reshape(X.shape[:-1])
        return Fitted(centers.reshape(task.start.shape), n_iter, labels)


class FlashHalf(FlashKMeans):
    """flash-kmeans in float16, with rows rounded to float16."""

    name = "flash-kmeans float16"
    dtypes = ("float16",)
    exact = False

    def refuses(self, case: Case, mode: str) -> str:
        """Return why it cannot do this case, or an empty string."""
        return "float32 only" if case.dtype != "float32" else ""

    def place(self, X: torch.Tensor) -> torch.Tensor:
        """Round X to half precision."""
        return X.half()


class PyTorch(Contender):
    """A product, an argmin and an index_add_, block by block, without TF32."""

    name = "PyTorch"
    package = "torch"
    modes = ("iterations",)

    def fit(self, X: Any, task: Task) -> Fitted:
        """Iterate; the labels belong to the centres before the last update, as flash-kmeans'."""
        if X.ndim == 3:
            every = [
                self.fit(x, Task(task.k, start, task.iterations, task.tol, 0))
                for x, start in zip(X, task.start)
            ]
            centers, labels = (
                torch.stack([getattr(one, name) for one in every]) for name in ("centers", "labels")
            )
            return Fitted(centers, task.iterations, labels)
        centers = task.start
        labels = torch.empty(len(X), dtype=torch.int64, device=X.device)
        ones = torch.ones(len(X), dtype=X.dtype, device=X.device)
        step = max(1, SCORES // task.k)
        for _ in range(task.iterations):
            halves = (centers * centers).sum(1) / 2
            for x, own in zip(X.split(step), labels.split(step)):
                torch.argmin(torch.addmm(halves, x, centers.T, alpha=-1), 1, out=own)
            sums = torch.zeros_like(centers).index_add_(0, labels, X)
            counts = torch.zeros_like(centers[:, 0]).index_add_(0, labels, ones)[:, None]
            centers = torch.where(counts > 0, sums / counts, centers)
        return Fitted(centers, task.iterations, labels)


CONTENDERS = (Ours(), FlashKMeans(), FlashHalf(), PyTorch(), OursOnCPU())


def choose(names: Sequence[str] | None) -> list[Contender]:
    """Return Lloydia and the named contenders; without names, all.

    Raises
    ------
    ValueError
        For a name that no contender has.
    ImportError
        For a contender that is not installed.
    """
    if not names:
        return list(CONTENDERS)
    known = {contender.name: contender for contender in CONTENDERS}
    for name in names:
        if name not in known:
            raise ValueError(
                f"There is no library {name!r}: the libraries are {', '.join(known)}"
                f"{meant(name, known)}"
            )
        if not known[name].version():
            raise ImportError(f"{name} is not installed; pip install {known[name].package}.")
    return [
        contender
        for contender in CONTENDERS
        if contender is CONTENDERS[0] or contender.name in names
    ]
