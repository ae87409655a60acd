"""Dask arrays and data frames, told apart without an import of Dask, and what is known of them.

A partition is one of a collection's blocks of rows.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lloydia.imports import load

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Fact", "Held", "Partitions", "Rows", "is_collection", "on_cluster", "undeclared"]


def is_collection(X: Any) -> bool:
    """Return whether `X` is a Dask array or data frame."""
    dask = sys.modules.get("dask")
    return dask is not None and dask.is_dask_collection(X) and hasattr(X, "_meta")


def on_cluster(X: Any) -> bool:
    """Return whether `X` is one, and a client is current: its workers compute."""
    distributed = sys.modules.get("distributed")
    if distributed is None or not is_collection(X):
        return False
    try:
        distributed.Client.current()
    except ValueError:
        return False
    return True


def undeclared(p: int, what: str, count: int, declared: int) -> str:
    """Return what is said of a partition that is not what its collection declares."""
    return (
        f"Partition {p} of X has {count} {what} and X declares {declared}: let Dask find out with "
        "X.compute_chunk_sizes(), or give map_blocks the right chunks=."
    )


@dataclass(frozen=True)
class Fact:
    """What the client knows of a partition.

    Attributes
    ----------
    length, width : int
    dtype : str
        float32 or float64.
    place : str
        ``"cpu"`` or ``"cuda"``: where its block lives.
    digest : int
        Rows that are computed again must have the same.
    problem : str
        Why it cannot be taken; empty if it can.
    """

    length: int
    width: int
    dtype: str
    place: str = "cpu"
    digest: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Rows:
    """Some partitions as engines take them (ndarrays, CSR matrices, tensors), and their facts."""

    arrays: list[Any]
    facts: list[Fact]


@dataclass(frozen=True)
class Held:
    """What one worker holds.

    Attributes
    ----------
    numbers : list of int
        The partitions, ascending.
    address : tuple of str
        Of the worker, once; empty where Dask has just lost it.
    rows : Future of Rows
    """

    numbers: list[int]
    address: tuple[str, ...]
    rows: Future


@dataclass(frozen=True)
class Partitions:
    """A collection in its place; it has the shape and the type of an array.

    Attributes
    ----------
    collection : Dask array or data frame
    client : Client
    held : list of Held
    facts : list of Fact
        Of each partition.
    """

    collection: Any
    client: Client
    held: list[Held]
    facts: list[Fact]

    @property
    def lengths(self) -> list[int]:
        """Rows of each partition."""
        return [fact.length for fact in self.facts]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return sum(self.lengths), self.facts[0].width

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return np.dtype(self.facts[0].dtype)

    def astype(self, dtype: type) -> Partitions:
        """Return the same rows in another type, in the same places."""
        return load("lloydia.backends.cluster.partitions").retyped(self, dtype)
