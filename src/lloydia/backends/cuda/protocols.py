"""What packages want of each other: it breaks the circles that their types would be imported in."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.exact import sums as exact

__all__ = ["DataSetRows", "IterationState", "Rows", "RunRows", "WholeRows"]


class Rows(Protocol):
    """Rows on a device: of a data set, of all items of a batch, or some of them.

    Attributes
    ----------
    X : torch.Tensor of shape (n, d), or (batch_size, n, d) for a batch
    n_samples : int
        Rows of an item.
    batch_size : int
        1 for a data set by itself.
    device : torch.device
    """

    @property
    def X(self) -> torch.Tensor: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def device(self) -> torch.device: ...


class WholeRows(Rows, Protocol):
    """All rows of a data set or of a batch.

    Attributes
    ----------
    n_features : int
    wide : torch.dtype
        Of centres: float32 or float64.
    weights : torch.Tensor of shape (n,), float64, or None
    """

    @property
    def n_features(self) -> int: ...
    @property
    def wide(self) -> torch.dtype: ...
    @property
    def weights(self) -> torch.Tensor | None: ...


class DataSetRows(WholeRows, Protocol):
    """Rows of one data set.

    Attributes
    ----------
    total_weight : float
        The sum of the weights, or the number of rows.
    """

    @property
    def total_weight(self) -> float: ...

    def frame(self) -> NDArray[np.float64]:
        """Return the origin and the scale of float32 scores: shape (d + 1,)."""


class RunRows(DataSetRows, Protocol):
    """Rows that a run iterates over.

    Attributes
    ----------
    grid : Grid
        Of their sums, on the host.
    start_limit_bits : int
        The bits of a float64 number that starts are to be below.
    """

    @property
    def grid(self) -> exact.Grid: ...
    @property
    def start_limit_bits(self) -> int: ...


class IterationState(Protocol):
    """Where the end of an iteration writes; of a batch, each for one item after the other.

    Attributes
    ----------
    current : torch.Tensor of shape (k, d)
        The centres.
    history : torch.Tensor of shape (n_slots, k, d)
        The centres of some iterations.
    report : int64 tensor of shape (n_slots, HEAD + k)
        See :mod:`device_functions.iteration_report`.
    run_state : int32 tensor
        See :mod:`device_functions.run_state`.
    settles : int
        1: iterations end at one with empty clusters; or 0.
    """

    @property
    def current(self) -> torch.Tensor: ...
    @property
    def history(self) -> torch.Tensor: ...
    @property
    def report(self) -> torch.Tensor: ...
    @property
    def run_state(self) -> torch.Tensor: ...
    @property
    def settles(self) -> int: ...
