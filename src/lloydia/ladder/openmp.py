"""Numba's parallel loops on OpenMP threads, with no setting of Numba's left changed.

A process has one threading layer for all of Numba's parallel loops, chosen when the first of them
is compiled or loaded.  Where it is still open, OpenMP is asked for before Intel's TBB and Numba's
own work queue; a layer that the user named in ``NUMBA_THREADING_LAYER`` comes first.  Lloydia's
engine has no such loops and a pool of its own, so nothing of this reaches it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba

__all__ = ["openmp"]

# Its names are made when it is imported.
config: Any = numba.config


@contextmanager
def openmp(threads: int) -> Iterator[None]:
    """Run parallel loops on this many threads, and on as many as before afterwards.

    Warns
    -----
    RuntimeWarning
        If the process has another threading layer than OpenMP: the loops run on that one.

    Raises
    ------
    ValueError
        If Numba may not start so many threads.
    """
    most = config.NUMBA_NUM_THREADS
    if not 1 <= threads <= most:
        raise ValueError(
            f"threads={threads} must be from 1 to {most}, the processors that Numba counted when "
            "it was imported: set NUMBA_NUM_THREADS for more."
        )
    if (layer := _layer()) != "omp":
        warnings.warn(
            f"Numba's parallel loops run on its layer {layer!r} in this process, not on OpenMP: "
            "times may differ.",
            RuntimeWarning,
            stacklevel=3,
        )
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def _layer() -> str:
    """Return the process's threading layer, OpenMP where it can still be chosen."""
    order = config.THREADING_LAYER_PRIORITY
    config.THREADING_LAYER_PRIORITY = sorted(order, key=lambda name: name != "omp")
    try:
        numba.get_num_threads()  # starts the threads, if there are none yet
    finally:
        config.THREADING_LAYER_PRIORITY = order
    return numba.threading_layer()
