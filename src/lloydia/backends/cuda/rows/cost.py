"""The inertia of labels, which is copied to the host."""

from __future__ import annotations

import torch

from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.distances import own_distances
from lloydia.backends.cuda.rows.low_cost import low_cost
from lloydia.backends.cuda.rows.totals import Cost, cost_limbs, largest_term
from lloydia.backends.cuda.run_kinds import run_kind

__all__ = ["total_cost"]


def total_cost(rows: WholeRows, labels: torch.Tensor, centers: torch.Tensor) -> Cost:
    """Return the weighted sum of D to the centres of these labels."""
    if not run_kind(rows.n_features).stores_fp16:
        return low_cost(rows, labels, centers, rows.weights)
    D = own_distances(rows, labels, centers)
    return Cost(cost_limbs(D, rows.weights, largest_term(D, rows.weights)), rows.n_samples)
