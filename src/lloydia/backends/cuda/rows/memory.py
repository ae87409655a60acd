"""How much of a GPU's memory rows take, and whether they fit."""

from __future__ import annotations

from lloydia.backends.cuda.run_kinds import run_kind
from lloydia.backends.cuda.runtime.devices import LITTLE, free_bytes
from lloydia.backends.cuda.runtime.launching import place

__all__ = ["WEIGHT", "fits", "needed_bytes"]

# Bytes of a weight: the given one, and the scaled one.
WEIGHT = 16

# A factor for the memory of clusters, whose number is known later.
CLUSTERS = 1.02


def needed_bytes(n: int, d: int, itemsize: int, copied: bool) -> int:
    """Return the least bytes that clustering n rows takes besides the array of rows.

    What depends on the number of clusters is left out; `copied` is whether rows are copied.
    """
    return n * (run_kind(d).row_bytes(d) + (d * itemsize if copied else 0))


def fits(n: int, d: int, itemsize: int, weighted: bool, name: str) -> bool:
    """Return whether rows on the host fit on a GPU, with some room for clusters."""
    rows = needed_bytes(n, d, itemsize, copied=True) + n * WEIGHT * weighted
    needed = int(rows * CLUSTERS)
    return needed <= LITTLE or needed <= free_bytes(place(name), needed)
