"""How questions reach several parts: one after the other here; elsewhere in other ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.part import Part

__all__ = ["Group", "Here"]


class Group(Protocol):
    """Parts in the order of their rows, of which the methods of :class:`Part` are asked by name.

    Attributes
    ----------
    name : str
        Of the place, as in :class:`lloydia.backends.engine.Engine`.
    lengths : sequence of int
        Rows of each part.
    n_features : int
    dtype : numpy.dtype
    few_rows_device : str
        Where a few of the rows are computed on, see :func:`lloydia.backends.choose`.
    """

    name: str
    lengths: Sequence[int]
    n_features: int
    dtype: np.dtype
    few_rows_device: str

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """Ask all parts the same; return their answers in order."""

    def total(self, method: str, *arguments: Any) -> Any:
        """Ask all parts the same; return the sum of their answers, added in any order."""

    def some(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Ask some parts, by number, each with its own arguments; return the answers by number."""

    def labels(self) -> NDArray[np.int32]:
        """Return the labels of all rows, in whatever holds them there."""

    def distances(self, centers: NDArray) -> NDArray:
        """Return the distances of all rows to all centres, in whatever holds them there."""


class Here:
    """Parts in this process, asked one after the other."""

    few_rows_device = "cpu"

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.lengths = [part.n_samples for part in parts]
        first = parts[0]
        self.name, self.dtype, self.n_features = first.name, first.dtype, first.n_features

    def each(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(part, method)(*arguments) for part in self.parts]

    def total(self, method: str, *arguments: Any) -> Any:
        return reduce(add, self.each(method, *arguments))

    def some(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        return {p: getattr(self.parts[p], method)(*own) for p, own in arguments.items()}

    def labels(self) -> NDArray[np.int32]:
        return np.concatenate(self.each("labels"))

    def distances(self, centers: NDArray) -> NDArray:
        return np.vstack(self.each("distances", centers))
