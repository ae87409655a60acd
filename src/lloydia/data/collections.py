"""Dask arrays and data frames: detection without an import of Dask, and facts about partitions.

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

__all__ = [
    "Fact",
    "Partitions",
    "Rows",
    "WorkerPartitions",
    "is_collection",
    "on_cluster",
    "undeclared",
]


def is_collection(X: Any) -> bool:
    """Return whether `X` is a Dask array or data frame."""
    dask = sys.modules.get("dask")
    return dask is not None and dask.is_dask_collection(X) and hasattr(X, "_meta")


def on_cluster(X: Any) -> bool:
    """Return whether `X` is a Dask collection and there is a current client to compute it."""
    distributed = sys.modules.get("distributed")
    if distributed is None or not is_collection(X):
        return False
    try:
        distributed.Client.current()
    except ValueError:
        return False
    return True


def undeclared(p: int, what: str, count: int, declared: int) -> str:
    """Return the error text for a partition whose size is not what its collection declares."""
    return (
        f"Partition {p} of X has {count} {what} and X declares {declared}: let Dask find out with "
        "X.compute_chunk_sizes(), or give map_blocks the right chunks=."
    )


@dataclass(frozen=True)
class Fact:
    """Facts about a partition that the client keeps.

    Attributes
    ----------
    length, width : int
        Number of rows and of columns.
    dtype : str
        float32 or float64.
    place : str
        ``"cpu"`` or ``"cuda"``: where its block is stored.
    digest : int
        A digest of the rows; recomputed rows must have the same one.
    problem : str
        Why the partition cannot be used; empty if it can.
    """

    length: int
    width: int
    dtype: str
    place: str = "cpu"
    digest: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Rows:
    """Some partitions as arrays for engines (ndarrays, CSR matrices, tensors), and their facts."""

    arrays: list[Any]
    facts: list[Fact]


@dataclass(frozen=True)
class WorkerPartitions:
    """The partitions that one worker has.

    Attributes
    ----------
    numbers : list of int
        The numbers of the partitions, ascending.
    address : tuple of str
        The address of the worker; empty if Dask has just lost it.
    rows : Future of Rows
    """

    numbers: list[int]
    address: tuple[str, ...]
    rows: Future


@dataclass(frozen=True)
class Partitions:
    """A collection held by the workers; it has the `shape` and `dtype` of an array.

    Attributes
    ----------
    collection : Dask array or data frame
    client : Client
    by_worker : list of WorkerPartitions
    facts : list of Fact
        The facts about each partition.
    """

    collection: Any
    client: Client
    by_worker: list[WorkerPartitions]
    facts: list[Fact]

    @property
    def lengths(self) -> list[int]:
        """The number of rows of each partition."""
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
        """Return the same rows in another type, on the same workers."""
        return load("lloydia.backends.cluster.partitions").retyped(self, dtype)
