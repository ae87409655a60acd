"""What a part has been asked so far, as short as it can be: whoever is asked it again is that part.

A part's state is a function of its rows and of the questions that change it, and most of those are
outdated by later ones: a seeding or a run begins anew, and labels and sums depend on the centres of
the last assignment alone (sums are integers, and only the number of changed labels would tell
whether the rows came there in one step).  So the history of a run is the grid, its start, and the
centres before; that of a seeding is the grid and the seeds.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

__all__ = ["CHANGES", "History"]

Asked = tuple[str, tuple[Any, ...]]

# Nothing but the grid outlasts these.
BEGINNINGS = frozenset({"seed_start", "start", "classify"})
# Each of these outdates the others of its kind, and the kinds after it.
ASSIGNMENTS = frozenset({"step", "conclude", "classify"})
MEASUREMENTS = frozenset({"measure", "measure_to"})
# What the next seed is found by: outdated by another, and by the next seed.
WEIGHINGS = frozenset({"seed_total", "seed_weigh"})
SEEDS = frozenset({"seed_first", "seed_adopt", "seed_spread"})

CHANGES = BEGINNINGS | ASSIGNMENTS | MEASUREMENTS | WEIGHINGS | SEEDS | {"set_grid"}


class History:
    """The questions, to all parts alike, that make a part what it is now.

    Attributes
    ----------
    asked : list of (str, tuple)
        Methods of :class:`lloydia.backends.part.Part` and their arguments, in order.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def add(self, method: str, arguments: tuple[Any, ...]) -> None:
        """Note a question that all parts have answered."""
        if method == "set_grid":
            self.asked = []
        elif method in BEGINNINGS:
            self.asked = [entry for entry in self.asked if entry[0] == "set_grid"]
        elif method in ASSIGNMENTS:
            self._drop(ASSIGNMENTS | MEASUREMENTS)
        elif method in MEASUREMENTS:
            self._drop(MEASUREMENTS)
        elif method == "seed_adopt":
            (j,) = arguments
            _, (values, grid) = self.asked.pop()
            self.asked.append(("seed_weigh", (values[j : j + 1], grid)))
            arguments = (0,)
        elif method in WEIGHINGS | SEEDS:
            while self.asked[-1][0] in WEIGHINGS:
                self.asked.pop()
        self.asked.append((method, arguments))

    def centers(self) -> NDArray:
        """Return the centres of the last assignment."""
        found = (given[0] for method, given in reversed(self.asked) if method in ASSIGNMENTS)
        return next(found)

    def _drop(self, methods: frozenset[str]) -> None:
        self.asked = [entry for entry in self.asked if entry[0] not in methods]
