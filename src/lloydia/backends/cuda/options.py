"""Switches: mechanisms of the GPU engine that can be turned off one by one.

Each makes fits faster and changes no bit of any result.  So a wrong result that goes away without
one of them points at it, and the time of a fit without it says what it brings.

In Python, for all fits that begin meanwhile, in any thread::

    with options.without("pruning", "recorded_launches"):
        KMeans(1000).fit(X)

From the environment, for a whole process: ``LLOYDIA_CUDA_WITHOUT=pruning,recorded_launches``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["SWITCHES", "VARIABLE", "is_on", "state", "without"]

# The environment's variable that names what is off.
VARIABLE = "LLOYDIA_CUDA_WITHOUT"

SWITCHES = {
    "recorded_launches": "launches are noted once and repeated; no other launches are early",
    "early_launch": "recorded kernels begin before the one ahead has ended, and wait for it inside",
    "pruning": "late in long runs, rows whose labels follow from bounds are not scored",
    "gluon": "on Hopper, a kernel in Gluon scores 9 to 64 features, for at most 256 clusters",
    "shared_memory_tables": "sums of clusters are added in shared memory first",
}


def named(names: str) -> frozenset[str]:
    """Return the switches that a list with commas names.

    Raises
    ------
    ValueError
        If there is none of a name.
    """
    wanted = frozenset(name.strip() for name in names.split(",") if name.strip())
    for name in sorted(wanted - SWITCHES.keys()):
        raise ValueError(
            f"The GPU engine has no switch {name!r}: the switches are "
            f"{', '.join(sorted(SWITCHES))}."
        )
    return wanted


# How many contexts, and the environment, have each of them off.
_counts = Counter(named(os.environ.get(VARIABLE, "")))
_off = frozenset(_counts)
_lock = Lock()


def is_on(name: str) -> bool:
    """Return whether a mechanism may be used."""
    return name not in _off


def state() -> frozenset[str]:
    """Return what is off: part of the key of whatever is kept for later fits."""
    return _off


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Turn mechanisms off, for the fits that begin in this context, in all threads.

    Parameters
    ----------
    *names : str
        Of `SWITCHES`.

    Raises
    ------
    ValueError
        If there is none of a name.
    """
    wanted = named(",".join(names))
    _count(wanted, 1)
    try:
        yield
    finally:
        _count(wanted, -1)


def _count(names: frozenset[str], step: int) -> None:
    """Count a context in or out; contexts of several threads may overlap in any order."""
    global _off
    with _lock:
        for name in names:
            _counts[name] += step
        _off = frozenset(name for name, count in _counts.items() if count)
