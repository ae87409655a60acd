"""How much of a GPU's memory rows take, and whether they fit."""

from __future__ import annotations

from lloydia.backends.cuda.device_functions.run_state import LOW_DIM_FEATURES
from lloydia.backends.cuda.runtime.devices import LITTLE, free_bytes
from lloydia.backends.cuda.runtime.launching import place

__all__ = ["WEIGHT", "fits", "needed_bytes", "row_bytes"]

# Bytes of a weight: as it is given, and scaled.
WEIGHT = 16

# Room for what belongs to clusters, whose number comes later, as a factor to what rows take.
CLUSTERS = 1.02


def row_bytes(d: int, width: int) -> int:
    """Return what a run takes a row of d features.

    A label, a distance and an entry in two lists.  For few features, at most: another list, two
    bytes of cells, and rows that are listed with their features, or stored in float32.  For more
    also what sorts and settles rows, and half-precision copies of this width, 0 if they are there,
    with bounds.
    """
    if d <= LOW_DIM_FEATURES:
        return 28 + 6 * d
    return 72 + (2 * width + 8 if width else 0)


def needed_bytes(n: int, d: int, itemsize: int, copied: bool) -> int:
    """Return what clustering n rows takes at least, beside what their array holds already.

    What depends on the number of clusters is left out; `copied` is whether rows are.
    """
    return n * (row_bytes(d, d) + (d * itemsize if copied else 0))


def fits(n: int, d: int, itemsize: int, weighted: bool, name: str) -> bool:
    """Return whether rows on the host fit on a GPU, with some room for clusters."""
    rows = needed_bytes(n, d, itemsize, copied=True) + n * WEIGHT * weighted
    needed = int(rows * CLUSTERS)
    return needed <= LITTLE or needed <= free_bytes(place(name), needed)
