"""Weights of the rows of a Dask collection, on the same workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cluster.partitions import digest, in_order, submit_at
from lloydia.backends.cluster.workers import gathered
from lloydia.data.arrays import real_numbers
from lloydia.data.collections import Partitions, is_collection
from lloydia.data.weights import (
    check_weights,
    first_unacceptable,
    refuse_range,
    refuse_weight,
)
from lloydia.exact.sums import weight_magnitudes
from lloydia.imports import load

if TYPE_CHECKING:
    from distributed import Future

__all__ = ["Weights", "weigh"]


@dataclass(frozen=True)
class Weights:
    """Weights on the workers that have the rows.

    Attributes
    ----------
    by_worker : list of Future
        Of a list of ndarrays each, in the order of :attr:`Partitions.by_worker`.
    digests : list of int
        Of each partition's.
    positive : list of int
        How many weights of each partition are positive.
    total : float
    """

    by_worker: list[Future]
    digests: list[int]
    positive: list[int]
    total: float

    @property
    def n_positive(self) -> int:
        """How many weights are positive."""
        return sum(self.positive)

    def sum(self) -> float:
        """Return their sum, rounded in any way."""
        return self.total


class Fact(NamedTuple):
    """What the client knows of a partition's weights; `bad` is the first that is refused."""

    shape: tuple[int, ...]
    digest: int
    positive: int
    bad: tuple[int, float] | None
    total: float
    least: float
    largest: float


def weigh(X: Partitions, sample_weight: Any) -> Weights | None:
    """Put weights on the workers that have the rows of `X`.

    Parameters
    ----------
    X : Partitions
    sample_weight : Dask array or series with one number a row, array-like, scalar, or None
        An array in other chunks is rechunked.

    Raises
    ------
    ValueError
        As :func:`lloydia.data.weights.check_weights`.
    """
    if sample_weight is None:
        return None
    if not is_collection(sample_weight):
        whole = check_weights(sample_weight, X.shape[0])
        sample_weight = load("dask.array").from_array(whole, chunks=(tuple(X.lengths),))
    blocks = X.client.compute(_blocks(sample_weight, X))
    by_worker = [
        submit_at(
            X.client, own.address, take_weights, [blocks[p] for p in own.numbers], own.numbers
        )
        for own in X.by_worker
    ]
    facts = in_order(
        X.by_worker, gathered(X.client, X.client.map(facts_of_weights, by_worker, pure=False))
    )
    _refuse(facts, X.lengths)
    total = sum(fact.total for fact in facts)
    refuse_range(total, min(fact.least for fact in facts), max(fact.largest for fact in facts))
    digests, positive = [fact.digest for fact in facts], [fact.positive for fact in facts]
    return Weights(by_worker, digests, positive, total)


def _blocks(weights: Any, X: Partitions) -> list[Any]:
    """Return the blocks of a collection that belong to those of `X`, each one Delayed."""
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D.")
    if hasattr(weights, "to_dask_array"):
        weights = weights.to_dask_array()
    known = not math.isnan(weights.shape[0])
    if known and weights.shape[0] != X.shape[0]:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(X.shape[0],)}!")
    if known:
        weights = weights.rechunk((tuple(X.lengths),))
    elif weights.npartitions != len(X.lengths):
        raise ValueError(
            f"sample_weight has {weights.npartitions} partitions of unknown lengths and X has "
            f"{len(X.lengths)}: they must have the same partitions."
        )
    return list(weights.to_delayed())


def _refuse(facts: Sequence[Fact], lengths: Sequence[int]) -> None:
    before = 0
    for p, (fact, n) in enumerate(zip(facts, lengths)):
        if fact.shape != (n,):
            raise ValueError(
                f"Partition {p} of sample_weight has the shape {fact.shape}, and that of X has {n} "
                "rows: they must have the same partitions."
            )
        if fact.bad is not None:
            refuse_weight(before + fact.bad[0], fact.bad[1])
        before += n


# -- tasks ---------------------------------------------------------------------------------------


def take_weights(blocks: Sequence[Any], numbers: Sequence[int]) -> list[NDArray[np.float64]]:
    """Return the weights of some partitions, which need not be acceptable.

    Raises
    ------
    ValueError
        Names the partition, by its number, that holds other things than real numbers.
    """
    return [
        np.array(
            real_numbers(f"Partition {p} of sample_weight", block, "weights"), dtype=np.float64
        )
        for p, block in zip(numbers, blocks)
    ]


def facts_of_weights(weights: Sequence[NDArray[np.float64]]) -> list[Fact]:
    """Return what the client knows of them."""
    return [_fact(w) for w in weights]


def _fact(w: NDArray[np.float64]) -> Fact:
    if (bad := first_unacceptable(w)) is not None:
        return Fact(w.shape, 0, 0, (bad, float(w.flat[bad])), 0.0, math.inf, 0.0)
    with np.errstate(over="ignore"):
        total = float(w.sum())
    largest, least = weight_magnitudes(w)
    return Fact(w.shape, digest(w), int(np.count_nonzero(w)), None, total, least, largest)
