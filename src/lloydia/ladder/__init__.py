"""The ladder: k-means as five written-up systems built it, one idea a file, from naive to tuned.

The files are numbered: ``r00_reference`` is NumPy, each rung changes one thing of one before it,
and the last is Lloydia's engine.  A rung is a module with ``ABOUT`` (:class:`rung.About`) and::

    fit(X, centers, *, rule, max_iter, threads=1, block=256) -> rung.Outcome

X is an ndarray of shape (n, d), float32 or float64, in C order; centers of shape (k, d), of the
same dtype.  All compute in that dtype; ties go to the lowest index; an empty cluster keeps its
centre.  These are teaching code and baselines: nothing else imports them.

The systems: T, "K-means on parallel platforms" (thesis, Prague 2023); A, "Parallel k-means with
CUDA" (tutorial); B, "Algorithm parallelisation and optimisation on GPUs" (Athens); C, "KMeans in
CUDA" (Florence 2017); D, "K-means in C++/OpenMP/CUDA" for images (Florence).
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Literal

from lloydia.spelling import meant

__all__ = ["called", "named", "names", "where"]


def names() -> list[str]:
    """Return the names of all rungs, from the lowest."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name for name in found if name[0] == "r" and name[1:3].isdigit())


def where(name: str) -> Literal["cpu", "cuda"]:
    """Return what a rung runs on."""
    found: Literal["cpu", "cuda"] = named(name).ABOUT.where
    return found


def named(name: str) -> ModuleType:
    """Return a rung by its name, as ``r01_lloyd``."""
    if name not in names():
        raise ValueError(f"There is no rung {name!r}: there are {', '.join(names())}.")
    return import_module(f"{__name__}.{name}")


def called(text: str) -> str:
    """Return the name of the rung that a number, as 12 or r12, or a name stands for.

    Raises
    ------
    ValueError
        If there is none; the message lists all.
    """
    known = names()
    for name in known:
        if text in (name, name[:3], name[1:3]) or (text.isdigit() and int(text) == int(name[1:3])):
            return name
    raise ValueError(f"There is no rung {text!r}: there are {', '.join(known)}{meant(text, known)}")
