"""What happens when a cluster is left without rows (or with rows of weight 0 only).

* ``"relocate"``: it takes the row with the largest D to its centre, ties to the lowest row, and so
  on for the next empty cluster; never the only row of a cluster, never a row at distance 0 (its
  centre would be a duplicate).  Where no such row is left the centre stays.
* ``"keep"``: its centre stays, as the engines leave it: there is nothing to settle.
* ``"error"``: :class:`EmptyClusterError`.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.engine import Engine, Report
from lloydia.spelling import option

__all__ = ["POLICIES", "EmptyClusterError", "settle"]

POLICIES = ("relocate", "keep", "error")


class EmptyClusterError(ValueError):
    """A cluster lost all its rows, and the policy is ``"error"``."""


def settle(engine: Engine, report: Report, policy: str) -> tuple[Report, int]:
    """Relocate the empty clusters of the current iteration, or refuse them.

    Returns
    -------
    report : Report
        With the movements of the centres as they are now.
    n_relocated : int

    Raises
    ------
    EmptyClusterError
        Where the policy is ``"error"``.
    """
    empty = engine.empty_clusters()
    if policy == "error":
        raise EmptyClusterError(
            f"Cluster {int(empty[0])} has no points after iteration {report.iteration} "
            f"(empty clusters: {len(empty)}): use fewer clusters, another start, or "
            f"{option('empty', 'relocate')}."
        )
    rows = donors(engine, len(empty))
    if len(rows) == 0:
        return report, 0
    moved = engine.relocate(rows, empty[: len(rows)])
    # The inertia is that of before the update, which is the same one.
    return moved._replace(inertia=report.inertia), len(rows)


def donors(engine: Engine, count: int) -> np.ndarray:
    """Return up to `count` rows that empty clusters may take, farthest first."""
    left = engine.counts()
    asked = count
    while True:
        rows, D, labels = engine.farthest(asked)
        remaining = left.copy()
        taken: list[int] = []
        for row, distance, label in zip(rows.tolist(), D.tolist(), labels.tolist()):
            if len(taken) == count or distance == 0.0:
                return np.array(taken, dtype=np.int64)
            if remaining[label] > 1:
                remaining[label] -= 1
                taken.append(row)
        if len(taken) == count or len(rows) < asked:
            return np.array(taken, dtype=np.int64)
        asked *= 4
