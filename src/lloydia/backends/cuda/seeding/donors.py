"""The rows that may fill empty clusters, see :mod:`lloydia.loop.empty`."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["counts", "farthest"]


def farthest(
    D: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None, count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int32]]:
    """Return (rows, D, labels) of rows of positive weight, largest D first, ties by row.

    At most `count` rows, fewer if there are no more.
    """
    values = D if weights is None else torch.where(weights > 0, D, -1.0)
    least = torch.topk(values, min(count, len(values))).values[-1].clamp(min=0.0)
    above = torch.nonzero(values > least)[:, 0]
    # Of the rows that tie for the last places, the lowest ones.
    equal = torch.nonzero(values == least)[: count - len(above), 0]
    rows = torch.cat([above, equal])
    found = D[rows].cpu().numpy()
    order = np.argsort(-found, kind="stable")
    return rows.cpu().numpy()[order], found[order], labels[rows].cpu().numpy()[order]


def counts(labels: torch.Tensor, weights: torch.Tensor | None, k: int) -> NDArray[np.int64]:
    """Return the number of rows of positive weight in each cluster."""
    counted = labels if weights is None else labels[weights > 0]
    return torch.bincount(counted, minlength=k).cpu().numpy()
