"""Whether a result on a device may have a time, and how many labels are wrong.

All of it is float64 on the device.  Every operation is a kernel of its own, so that D is the
canonical one: in feature order, one rounding an operation, no fused multiply-add.

Ours: the labels of all rows, and of a sample of rows by D alone; the inertia; the centres of the
last update, each within an ulp of the mean of |x| from the mean of the labels before it; and every
bit of two more fits.  On a case that is small enough, every bit of our CPU engine too
(:mod:`~lloydia.bench.device.contest`).

A peer's final centres must be finite and give an inertia within 2 % of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from lloydia.bench.judge import Kept, Refused
from lloydia.bench.peers import Fitted

__all__ = ["inertia_of", "judge_labels", "judge_update", "kept", "nearest", "wrong_labels"]

NUMBERS = 1 << 26  # that are looked at together
SAMPLE = 20_000
ADDED = 1e-9  # relative error of adding up to 1e8 rows in float64, with room


def nearest(X: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return the canonical label of each row of a few: ties to the lowest index."""
    total = torch.zeros((len(X), len(centers)), dtype=torch.float64, device=X.device)
    for x, c in zip(X.double().unbind(1), centers.double().unbind(1)):
        difference = x[:, None] - c
        total += difference * difference
    return total.argmin(1)


def wrong_labels(X: torch.Tensor, centers: torch.Tensor, labels: torch.Tensor) -> int:
    """Return the number of rows whose label is not the canonical one."""
    blocks = zip(*_blocks(X, len(centers), labels))
    return sum(int((_assigned(x, centers) != own).sum()) for x, own in blocks)


def inertia_of(X: torch.Tensor, centers: torch.Tensor, labels: torch.Tensor | None = None) -> float:
    """Return the sum of D to the centres of the labels; None: to the nearest centres."""
    if not centers.isfinite().all():
        raise Refused("its centres are not finite")
    total = 0.0
    if labels is None:
        return sum(
            float(_to_own(x, centers, _assigned(x, centers)).sum())
            for x in _blocks(X, len(centers))[0]
        )
    for x, own in zip(*_blocks(X, len(centers), labels)):
        total += float(_to_own(x, centers, own).sum())
    return total


def judge_labels(X: torch.Tensor, centers: torch.Tensor, labels: torch.Tensor) -> None:
    """Refuse labels of ours that are not the canonical ones."""
    count = min(len(X), SAMPLE, max(1, NUMBERS // len(centers)))
    rows = np.sort(np.random.default_rng(0).choice(len(X), count, replace=False))
    some = torch.from_numpy(rows).to(X.device)
    if not torch.equal(nearest(X[some], centers), labels[some].long()):
        raise Refused("its labels are not those of the nearest centres")
    if wrong := wrong_labels(X, centers, labels.long()):
        raise Refused(f"{wrong} of its labels are wrong")


def judge_inertia(X: torch.Tensor, centers: torch.Tensor, labels: Any, inertia: float) -> None:
    """Refuse an inertia of ours that is not the sum of the distances."""
    if abs(inertia_of(X, centers, labels.long()) / inertia - 1) > ADDED:
        raise Refused("its inertia is not the sum of its distances")


def judge_update(X: torch.Tensor, labels: torch.Tensor, after: torch.Tensor) -> bool:
    """Compare centres with the means of the labels before the update.

    Returns False, and compares nothing, where a cluster has no rows: then rows were relocated.
    """
    labels, shape = labels.long(), after.shape
    counts = torch.bincount(labels, minlength=len(after)).double()[:, None]
    if not bool(counts.min()):
        return False
    sums = torch.zeros(shape, dtype=torch.float64, device=X.device)
    magnitudes = torch.zeros_like(sums)
    for x, own in zip(*_blocks(X, 1, labels)):
        x = x.double()
        sums.index_add_(0, own, x)
        magnitudes.index_add_(0, own, x.abs())
    ulp = torch.finfo(after.dtype).eps + counts * 2.0**-53
    if bool(((after.double() - sums / counts).abs() > ulp * magnitudes / counts).any()):
        raise Refused("its centres are not the means of its labels")
    return True


def kept(fitted: Fitted) -> Kept:
    """Return a copy of a result of ours on the host, under the names of the estimator."""
    return {
        "labels_": torch.as_tensor(fitted.labels).cpu().numpy().copy(),
        "cluster_centers_": torch.as_tensor(fitted.centers).cpu().numpy().copy(),
        "inertia_": fitted.inertia,
        "n_iter_": fitted.n_iter,
    }


def _blocks(X: torch.Tensor, k: int, *more: torch.Tensor) -> list[Iterator[torch.Tensor]]:
    step = max(1, NUMBERS // max(k, X.shape[1]))
    return [iter(array.split(step)) for array in (X, *more)]


def _assigned(X: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return the canonical labels: a float64 product's, and D's where its two best are close.

    A score ``|c|^2 / 2 - x c`` of d terms has an error of less than (d + 8) 2^-52 (|x|^2 + |c|^2),
    the shift of the origin, which keeps it small, included.
    """
    origin = centers.double().mean(0)
    x, C = X.double() - origin, centers.double() - origin
    halves = (C * C).sum(1) / 2
    scores = torch.addmm(halves, x, C.T, alpha=-1)
    best, labels = scores.min(1)
    gap = scores.scatter_(1, labels[:, None], torch.inf).amin(1) - best
    largest = (x * x).sum(1) + 2 * halves.max()
    rows = (gap <= (X.shape[1] + 8) * 2.0**-50 * largest).nonzero()[:, 0]
    for some in rows.split(max(1, NUMBERS // len(centers))):
        labels[some] = nearest(X[some], centers)
    return labels


def _to_own(X: torch.Tensor, centers: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return D of each row to the centre of its label, added in feature order."""
    own = centers[labels]
    total = torch.zeros(len(X), dtype=torch.float64, device=X.device)
    for f in range(X.shape[1]):
        difference = X[:, f].double() - own[:, f].double()
        total += difference * difference
    return total
