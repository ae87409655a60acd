"""The peers by adapter: what each can do, and how it is asked for exactly the same work.

A module here is one library, and runs in a process of its own; it imports the library only when it
fits.  Its ``PEERS`` are the ways of that library that are timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from lloydia.bench.cases import Case
from lloydia.spelling import meant

__all__ = ["LIBRARIES", "Fitted", "Peer", "Task", "choose", "everyone"]

LIBRARIES = tuple(
    f"{__name__}.{library}"
    for library in (
        *("ours", "scikit_learn", "intelex", "faiss", "superkmeans", "mlpack", "scipy"),
        "gemm",
    )
)
# Other names of libraries.
SAME = {"sklearn": "scikit-learn", "scikitlearn": "scikit-learn"}
TOO_LARGE = 3e9  # bytes that a peer may allocate for an n x k matrix


@dataclass(frozen=True)
class Task:
    """What is asked of a peer; on a device the arrays are tensors there.

    Attributes
    ----------
    k : int
    start : ndarray of shape (k, d), or None
        None: k-means++ with random_state 0.
    iterations : int
        As many at most, and exactly as many where `tol` is 0, until no label changes.
    tol : float
        scikit-learn's.
    threads : int
    """

    k: int
    start: Any
    iterations: int
    tol: float
    threads: int


@dataclass(frozen=True)
class Fitted:
    """What a peer found: its centres, and the rest where it has it; tensors on a device.

    Attributes
    ----------
    centers : ndarray of shape (k, d), or None
        None for what computes none.
    n_iter : int
    labels : ndarray of shape (n,), or None
    inertia : float or None
        Those of ours: a peer's are computed from its centres.
    objective : float or None
        The sum of squared distances before the last update, as the peer itself adds it up.
    counts : dict
        Anything else that belongs in the results.
    """

    centers: Any
    n_iter: int
    labels: Any = None
    inertia: float | None = None
    objective: float | None = None
    counts: dict[str, Any] | None = None

    @classmethod
    def by(cls, model: Any) -> Fitted:
        """Return what a fitted :class:`lloydia.KMeans` found, with the distances it evaluated."""
        counts = {
            "algorithm": model.algorithm_,
            "n_distances": int(model.n_distances_),
            "n_rechecked": int(model.n_rechecked_),
        }
        centers, labels = model.cluster_centers_, model.labels_
        return cls(centers, model.n_iter_, labels, model.inertia_, counts=counts)


class Peer:
    """One way of one library to do k-means.

    Attributes
    ----------
    name : str
    package : str
        The distribution that has it.
    modes : sequence of str
    dtypes : sequence of str
        What it computes in.  Other data are converted before the clock runs, if that loses nothing.
    exact : bool
        Whether it does all that we do, and skips only what cannot matter.
    takes_start : bool
    takes_defaults : bool
        Whether it can seed by k-means++ with scikit-learn's defaults.
    stops : bool
        Whether it has scikit-learn's stop rule; else it gets our number of iterations.
    prunes : bool
        Whether it skips distances, so that later iterations take less time than the first.
    square : bool
        Whether it allocates an n x k matrix.
    """

    name: str
    package: str
    modes: Sequence[str] = ("iterations", "fits")
    dtypes: Sequence[str] = ("float32", "float64")
    exact: bool = True
    takes_start: bool = True
    takes_defaults: bool = False
    stops: bool = False
    prunes: bool = False
    square: bool = False

    def version(self) -> str | None:
        """Return the version that is installed, or None."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None

    def refuses(self, case: Case, mode: str) -> str:
        """Return why it cannot do this case, or an empty string."""
        if not np.can_cast(case.dtype, self.dtypes[-1]):
            return f"{self.dtypes[-1]} only"
        if case.defaults and not self.takes_defaults:
            return "has not the same k-means++"
        size = case.n * case.k * np.dtype(self.dtype(case.dtype)).itemsize
        if self.square and size > TOO_LARGE:
            return f"allocates n x k numbers, {size / 1e9:.1f} GB here"
        return ""

    def dtype(self, given: str) -> str:
        """Return the type that it computes in, for data of the `given` one."""
        return given if given in self.dtypes else self.dtypes[-1]

    def fit(self, X: Any, task: Task) -> Fitted:
        """Do the work."""
        raise NotImplementedError


def everyone(modes: Sequence[str], libraries: Sequence[str] = LIBRARIES) -> dict[str, list[Peer]]:
    """Return the peers that have one of the modes, by the module that they are in."""
    found = {}
    for module in libraries:
        peers = [peer for peer in import_module(module).PEERS if set(peer.modes) & set(modes)]
        if peers:
            found[module] = peers
    return found


def choose(
    names: Sequence[str] | None, modes: Sequence[str], libraries: Sequence[str] = LIBRARIES
) -> dict[str, list[Peer]]:
    """Return the peers whose names, or first words of them, are given, and always ours and gemm.

    Raises
    ------
    ValueError
        For a name that no peer has.
    ImportError
        For a peer that is not installed.
    """
    found = everyone(modes, libraries)
    if not names:
        return found
    every = [peer for peers in found.values() for peer in peers]
    for name in names:
        matching = [peer for peer in every if peer.name == name or peer.name.startswith(f"{name} ")]
        if not matching:
            known = [peer.name for peer in every]
            alike = meant(name, [*known, *(full.split()[0] for full in known)], SAME)
            raise ValueError(
                f"There is no library {name!r}: the libraries are {', '.join(known)}{alike}"
            )
        if not matching[0].version():
            raise ImportError(f"{name} is not installed; pip install {matching[0].package}.")
    wanted = ("Lloydia", "gemm", *names)
    chosen = {
        module: [
            peer
            for peer in peers
            if any(peer.name == name or peer.name.startswith(f"{name} ") for name in wanted)
        ]
        for module, peers in found.items()
    }
    return {module: peers for module, peers in chosen.items() if peers}
