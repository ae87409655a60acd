"""The policies for empty clusters, which have no row of positive weight.

* ``"relocate"``: each empty cluster in turn takes the row with the largest D to the row's own
  centre, ties to the lowest row.  It never takes the only row of a cluster, nor a row at distance 0
  (the new centre would be a duplicate).  If no such row is left, the centre stays.
* ``"keep"``: the centre stays where it is; the engines do that by themselves.
* ``"error"``: the fit raises :class:`EmptyClusterError`.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.engine import Engine
from lloydia.backends.reports import Report
from lloydia.spelling import option

__all__ = ["POLICIES", "EmptyClusterError", "settle"]

POLICIES = ("relocate", "keep", "error")


class EmptyClusterError(ValueError):
    """The error of a fit with ``empty="error"`` in which a cluster lost all its rows.

    It is a :class:`ValueError`; its message names the cluster and the iteration.
    """


def settle(engine: Engine, report: Report, policy: str) -> tuple[Report, int]:
    """Relocate the empty clusters of the current iteration, or refuse them.

    Returns
    -------
    report : Report
        The report with the movements of the centres after the relocation.
    n_relocated : int

    Raises
    ------
    EmptyClusterError
        If the policy is ``"error"``.
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
    # The inertia before the update does not change.
    return moved._replace(inertia=report.inertia), len(rows)


def donors(engine: Engine, count: int) -> np.ndarray:
    """Return up to `count` rows that empty clusters may take, the farthest first."""
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
