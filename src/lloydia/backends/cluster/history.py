"""The calls that lead to the state of a part, as few as possible.

The state of a part is a function of its rows and of the calls that changed it, and later calls make
most of these irrelevant: a seeding or a run begins anew, and labels and sums only depend on the
centres of the last assignment (sums are integers; only the number of changed labels depends on the
assignments before).  So the history of a run is the grid, its start, and the last centres; that of
a seeding is the grid and the seeds.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

__all__ = ["CHANGES", "History"]

Call = tuple[str, tuple[Any, ...]]

# After these, only the grid of the calls before matters.
BEGINNINGS = frozenset({"seed_start", "start", "classify"})
# Each of these replaces the calls of its kind before, and measurements.
ASSIGNMENTS = frozenset({"step", "conclude", "classify"})
MEASUREMENTS = frozenset({"measure", "measure_to"})
# Evaluations of candidates: replaced by others, and by the next seed.
EVALUATIONS = frozenset({"seed_total", "seed_potentials_of"})
SEEDS = frozenset({"seed_first", "seed_accept", "seed_extend_by"})

CHANGES = BEGINNINGS | ASSIGNMENTS | MEASUREMENTS | EVALUATIONS | SEEDS | {"set_grid"}


class History:
    """The calls, the same for all parts, that lead to their present state.

    Attributes
    ----------
    calls : list of (str, tuple)
        Methods of :class:`lloydia.backends.part.Part` and their arguments, in order.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def add(self, method: str, arguments: tuple[Any, ...]) -> None:
        """Add a call that all parts have answered."""
        if method == "set_grid":
            self.calls = []
        elif method in BEGINNINGS:
            self.calls = [entry for entry in self.calls if entry[0] == "set_grid"]
        elif method in ASSIGNMENTS:
            self._drop(ASSIGNMENTS | MEASUREMENTS)
        elif method in MEASUREMENTS:
            self._drop(MEASUREMENTS)
        elif method == "seed_accept":
            (j,) = arguments
            _, (values, grid) = self.calls.pop()
            self.calls.append(("seed_potentials_of", (values[j : j + 1], grid)))
            arguments = (0,)
        elif method in EVALUATIONS | SEEDS:
            while self.calls[-1][0] in EVALUATIONS:
                self.calls.pop()
        self.calls.append((method, arguments))

    def centers(self) -> NDArray:
        """Return the centres of the last assignment."""
        found = (given[0] for method, given in reversed(self.calls) if method in ASSIGNMENTS)
        return next(found)

    def _drop(self, methods: frozenset[str]) -> None:
        self.calls = [entry for entry in self.calls if entry[0] not in methods]
