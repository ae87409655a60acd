"""Whether a result may have a time: ours must be the oracle's, a peer's must be as good as ours.

Ours, on a case that is small enough: a whole fit of the oracle, every bit.  On a larger one, the
parts that make it up, each by the oracle's own definition:

- the labels of a sample of rows: the lowest index of the least D;
- the inertia of all rows, from D to the centre of each row's label;
- one update, the last: the centres of a fit of T iterations are the exact means, rounded once, of
  the labels of a fit of T - 1.

A peer's centres get an inertia from us.  A brute-force or exactly pruned method from the same start
must come within 1e-3 of ours.  Where rounding in float32 has sent it to another optimum, it may be
off by 2 % if it was within 1e-3 after five iterations, and that is told.  One that takes no start,
or whose pruning is only probable, has its inertia shown.  The objective that a peer itself adds up
before its last update can only be larger than the inertia after it; if it is less, it left out
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.backends.numpy_first import compiled_only
from lloydia.bench.peers import Peer, Task
from lloydia.exact import distance, sums
from lloydia.exact.means import means

__all__ = [
    "Kept",
    "Refused",
    "compare",
    "inertia_of",
    "judge_labels",
    "judge_objective",
    "judge_picks",
    "judge_same",
    "judge_update",
    "judge_whole",
]

RESULTS = ("labels_", "cluster_centers_", "inertia_", "n_iter_")

SAMPLE = 2_000
BLOCK = 1 << 22  # numbers that are looked at together
REDUCED = 50  # of so many rows, one takes part in comparing the picks of k-means++
AFFORDABLE = 5e8  # terms of D that the oracle may evaluate in a whole fit
SAME = 1e-3  # relative difference of inertias from the same start
NEARBY = 0.02  # and of other optima
ROUNDING = 0.9  # FAISS adds objectives in float32: at ten million rows, 1 % is lost

Kept = Mapping[str, Any]


class Refused(Exception):
    """A result is not what it should be, so that it must have no time."""


def judge_whole(X: NDArray, task: Task, ours: Kept) -> bool:
    """Compare a whole fit of ours with the oracle's; return False where that takes too long."""
    from lloydia import KMeans

    if X.size * task.k * int(ours["n_iter_"]) > AFFORDABLE:
        return False
    oracle = KMeans(
        task.k,
        init="k-means++" if task.start is None else task.start,
        n_init=1,
        max_iter=task.iterations,
        tol=task.tol,
        random_state=0,
        device="reference",
    ).fit(X)
    judge_same(ours, vars(oracle), "the reference engine's")
    return True


def judge_same(ours: Kept, other: Kept, whose: str) -> None:
    """Compare every bit of what a fit gives; `other` has the names of the estimator."""
    for name in RESULTS:
        if not np.array_equal(ours[name], other[name]):
            raise Refused(f"its {name} differs from {whose}")


def judge_labels(X: NDArray, ours: Kept) -> None:
    """Compare the labels of a sample, and the inertia of all rows, with their definitions."""
    rows = np.random.default_rng(0).choice(len(X), min(SAMPLE, len(X)), replace=False)
    labels, centers = ours["labels_"], ours["cluster_centers_"]
    block = max(1, 10_000_000 // len(centers))
    for i in range(0, len(rows), block):
        some = rows[i : i + block]
        if not np.array_equal(distance.nearest(X[some], centers)[0], labels[some]):
            raise Refused("its labels are not the reference engine's")
    D = np.concatenate([_to_own(x, centers[own]) for x, own in _blocks(X, labels)])
    if sums.total(D) != ours["inertia_"]:
        raise Refused("its inertia is not the sum of its distances")


def judge_update(X: NDArray, before: Kept, after: Kept) -> bool:
    """Compare the centres after an update with the exact means of the labels before it.

    Returns False, and compares nothing, where a cluster has no rows: then rows were relocated.
    """
    labels, k = before["labels_"], len(after["cluster_centers_"])
    if np.bincount(labels, minlength=k).min() == 0:
        return False
    if not np.array_equal(exact_means(X, labels, k), after["cluster_centers_"]):
        raise Refused("its centres are not the exact means of its labels")
    return True


def judge_picks(X: NDArray, k: int) -> None:
    """Compare the rows that k-means++ picks from some of the data with the oracle's picks."""
    from lloydia import kmeans_plusplus

    few = X[:: max(1, min(REDUCED, len(X) // k))]
    with compiled_only():
        ours = kmeans_plusplus(few, k, random_state=0, device="cpu")[1]
    oracle = kmeans_plusplus(few, k, random_state=0, device="reference")[1]
    if not np.array_equal(ours, oracle):
        raise Refused("its k-means++ rows are not the reference engine's")


def exact_means(X: NDArray, labels: NDArray, k: int) -> NDArray:
    """Return the mean of each cluster, from integer sums, block by block: shape (k, d)."""
    magnitudes = None
    for x, _ in _blocks(X, labels):
        part = sums.Magnitudes.of(x)
        magnitudes = magnitudes.merge(part) if magnitudes else part
    assert magnitudes is not None
    grid = sums.Grid.choose(magnitudes, X.dtype)
    totals = np.zeros((grid.n_limbs, k, X.shape[1] + 1), dtype=np.int64)
    for x, own in _blocks(X, labels):
        ones = np.ones(len(x), dtype=np.int64)
        members = sp.csr_matrix((ones, (own, np.arange(len(x)))), shape=(k, len(x)))
        for total, values in zip(totals, sums.limbs(x, None, grid)):
            total += members @ values
    return means(totals, grid, X.dtype)


def inertia_of(X: NDArray, centers: NDArray) -> float:
    """Return the sum of the squared distances to the nearest centre."""
    from lloydia import assign

    if not np.isfinite(centers).all():
        raise Refused("its centres are not finite")
    return assign(X, centers.astype(X.dtype))[1]


def judge_objective(objective: float | None, inertia: float) -> None:
    """Refuse a result that was made from some of the rows."""
    if objective is not None and objective < ROUNDING * inertia:
        share = objective / inertia
        raise Refused(f"its own objective is {share:.3f} times its inertia: it left out rows")


def compare(peer: Peer, ratio: float, early: Callable[[], float]) -> str:
    """Refuse a peer's result if its inertia is not as it must be.

    Parameters
    ----------
    peer : Peer
    ratio : float
        Its inertia over ours.
    early : callable
        Returns the same after five iterations.

    Returns
    -------
    str
        What must be told of it.
    """
    if not (peer.exact and peer.takes_start) or abs(ratio - 1) <= SAME:
        return ""
    if abs(ratio - 1) <= NEARBY and abs(early() - 1) <= SAME:
        return (
            f"another optimum after the same beginning: its inertia is {ratio:.4f} times Lloydia's"
        )
    raise Refused(f"its inertia is {ratio:.4f} times Lloydia's")


def _blocks(X: NDArray, labels: NDArray) -> Iterator[tuple[NDArray, NDArray]]:
    step = max(1, BLOCK // X.shape[1])
    for i in range(0, len(X), step):
        yield X[i : i + step], labels[i : i + step]


def _to_own(X: NDArray, centers: NDArray) -> NDArray[np.float64]:
    """Return D of each row to the centre beside it, added in feature order."""
    total = np.zeros(len(X))
    for f in range(X.shape[1]):
        difference = X[:, f].astype(np.float64) - centers[:, f].astype(np.float64)
        total += difference * difference
    return total
