"""Rows of a Dask collection, put in place on the workers and checked there.

A partition is one of the collection's blocks of rows.  The rows stay on the workers: each worker
checks the partitions that it has, and sends facts about them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from lloydia.backends.cluster.workers import current_client, gathered, wait_for
from lloydia.data.arrays import ROWS, on_host, rows_on_host
from lloydia.data.collections import Fact, Partitions, Rows, WorkerPartitions, undeclared
from lloydia.data.device_arrays import center_dtype, on_gpu
from lloydia.data.device_rows import check_rows

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["blocks_of", "digest", "in_order", "place", "retyped", "size_of", "submit_at"]

# So many bytes are added up before they enter a digest: adding is faster than digesting.
BLOCK = 4096


def retyped(X: Partitions, dtype: type) -> Partitions:
    """Return the same rows in another type, in the same places."""
    by_worker = [
        replace(own, rows=submit_at(X.client, own.address, cast_rows, own.rows, dtype))
        for own in X.by_worker
    ]
    return replace(X, by_worker=by_worker, facts=_facts(X.client, by_worker))


def blocks_of(X: Any) -> list[Any]:
    """Return the blocks of rows of a collection, each one Delayed; all columns are in each."""
    if getattr(X, "numblocks", (1,))[1:] not in ((), (1,)):
        X = X.rechunk({1: -1})
    return list(np.ravel(X.to_delayed()))


def place(X: Any, estimator: Any = None, reset: bool = True) -> Partitions:
    """Have the current client's workers compute a collection, hold it and check it.

    Parameters
    ----------
    X : Dask array or data frame
        What the workers hold already stays where it is.
    estimator : estimator, optional
        Its number of features and their names are set, or with ``reset=False`` compared.
    reset : bool

    Raises
    ------
    ValueError
        Names the partition, and the row in it, that is not finite numbers, or differs from the
        first in width or type.
    RuntimeError
        As in :func:`lloydia.backends.cluster.workers.current_client`.
    """
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a Dask collection of {X.ndim} dimensions.")
    client = current_client()
    blocks = client.compute(blocks_of(X))
    wait_for(client, blocks)
    by_worker = _by_worker(client, blocks)
    facts = _facts(client, by_worker)
    refuse(facts)
    _refuse_undeclared(X, facts)
    if estimator is not None:
        like = X._meta if hasattr(X, "columns") else np.empty((0, facts[0].width))
        validate_data(estimator, like, reset=reset, skip_check_array=True)
    return Partitions(X, client, by_worker, facts)


def _facts(client: Client, by_worker: Sequence[WorkerPartitions]) -> list[Fact]:
    """Return the facts of each partition."""
    futures = client.map(facts_of, [own.rows for own in by_worker], pure=False)
    return in_order(by_worker, gathered(client, futures))


def _by_worker(client: Client, blocks: list[Future]) -> list[WorkerPartitions]:
    """Group the blocks by the worker that has them."""
    where = client.who_has(blocks)
    numbers: dict[tuple[str, ...], list[int]] = {}
    for p, block in enumerate(blocks):
        numbers.setdefault(tuple(where.get(block.key, ())[:1]), []).append(p)
    return [
        WorkerPartitions(own, address, submit_at(client, address, take, [blocks[p] for p in own]))
        for address, own in numbers.items()
    ]


def submit_at(client: Client, address: Sequence[str], task: Callable, *arguments: Any) -> Future:
    """Submit a task to a worker, or to any where there is none of that address (any more)."""
    there = {"workers": list(address), "allow_other_workers": True} if address else {}
    return client.submit(task, *arguments, pure=False, **there)


def in_order(by_worker: Sequence[WorkerPartitions], found: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the results of workers, one for each of their partitions, by partition."""
    results = {p: one for own, some in zip(by_worker, found) for p, one in zip(own.numbers, some)}
    return [results[p] for p in range(len(results))]


def refuse(facts: Sequence[Fact]) -> None:
    """Raise an error if partitions cannot be taken, or not together."""
    for p, fact in enumerate(facts):
        if fact.problem:
            raise ValueError(f"Partition {p} of X: {fact.problem}")
    first = facts[0]
    for p, fact in enumerate(facts):
        if fact.width != first.width:
            raise ValueError(
                f"Partition {p} of X has {fact.width} features and partition 0 has {first.width}: "
                "all must have the same."
            )
        if fact.dtype != first.dtype:
            raise ValueError(
                f"Partition {p} of X is read as {fact.dtype} and partition 0 as {first.dtype}: "
                f"convert them all, as X.map_blocks(numpy.asarray, dtype={first.dtype!r}) does."
            )
    if not any(fact.length for fact in facts):
        raise ValueError("X has no rows: all its partitions are empty.")


def _refuse_undeclared(X: Any, facts: Sequence[Fact]) -> None:
    """Raise an error if partitions of an array have other shapes than it declares.

    A data frame declares no lengths, and a column of vectors is several features.
    """
    if hasattr(X, "columns"):
        return
    for p, (length, fact) in enumerate(zip(X.chunks[0], facts)):
        found = {"rows": (fact.length, length), "features": (fact.width, X.shape[1])}
        for what, (count, declared) in found.items():
            if not math.isnan(declared) and count != declared:
                raise ValueError(undeclared(p, what, count, declared))


def size_of(X: Any) -> int:
    """Return the bytes of rows, dense or CSR."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes


# -- tasks ---------------------------------------------------------------------------------------


def take(blocks: Sequence[Any]) -> Rows:
    """Check the partitions that a worker holds."""
    taken = [_taken(block) for block in blocks]
    return Rows([X for X, _ in taken], [fact for _, fact in taken])


def facts_of(rows: Rows) -> list[Fact]:
    """Return what the client knows of them."""
    return rows.facts


def cast_rows(rows: Rows, dtype: type) -> Rows:
    """Return the same rows in another type."""
    return take([X.astype(dtype) for X in rows.arrays])


def _taken(block: Any) -> tuple[Any, Fact]:
    # A frame's columns would lie end to end, and rows are read one by one.
    order = "C" if hasattr(block, "columns") else None
    options = {**ROWS, "order": order, "ensure_min_samples": 0, "ensure_all_finite": False}
    try:
        X = check_rows(block) if on_gpu(block) else check_array(rows_on_host(block), **options)
    except ValueError as error:
        return None, Fact(0, 0, "", problem=str(error))
    (n, d), here, place = X.shape, on_host(X), "cuda" if on_gpu(X) else "cpu"
    return X, Fact(n, d, center_dtype(X).name, place, digest(here), not_finite(here))


def digest(X: Any) -> int:
    """Return a number that depends on all values of an array or a CSR matrix, and on their order.

    The order within :data:`BLOCK` bytes may change unnoticed.
    """
    value = 0
    for array in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        memory = array.ravel(order="K").view(np.uint8)
        n_whole = len(memory) // BLOCK * BLOCK
        words = memory[:n_whole].view(np.uint64).reshape(-1, BLOCK // 8)
        value = crc32(memory[n_whole:], crc32(words.sum(axis=1, dtype=np.uint64), value))
    return value


def not_finite(X: Any) -> str:
    """Say where the first value is that is NaN or infinite; nothing if all are finite."""
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
            return ""
    wrong = sp.coo_array(X) if sp.issparse(X) else None
    if wrong is not None:
        at = np.flatnonzero(~np.isfinite(wrong.data))[0]
        row, column, value = wrong.row[at], wrong.col[at], wrong.data[at]
    else:
        row, column = np.argwhere(~np.isfinite(X))[0]
        value = X[row, column]
    return f"its row {row} has {value} in column {column}, and k-means takes finite numbers only."
