"""Seedings: the choice of the initial centres.

A seeding draws its random numbers from a NumPy ``RandomState`` on the host, in scikit-learn's
order.  The engine picks rows by cumulative sums of integers, so the same seed chooses the same rows
on every engine.  Each seeding is a module; :mod:`given` checks starts that the caller gives,
:mod:`generator` is the source of random numbers, and :mod:`running_sums` adds equal weights up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.seeding.farthest import farthest
from lloydia.seeding.first import first
from lloydia.seeding.parallel import parallel
from lloydia.seeding.plusplus import plusplus
from lloydia.seeding.random import random

__all__ = ["SEEDINGS", "Seeding"]

Seeding = Callable[[Engine, int, np.random.RandomState], NDArray[np.int64]]

# Each function returns the indices of the rows that become centres.
SEEDINGS: dict[str, Seeding] = {
    "k-means++": plusplus,
    "random": random,
    "first": first,
    "farthest": farthest,
    "k-means||": parallel,
}
