"""What a worker on another machine, a second GPU or a chunk of a file has to be."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends import UNLIMITED
from lloydia.exact import sums

__all__ = ["Part"]


class Part(Protocol):
    """Rows in one place.  Row numbers are the part's own; `grid` is (bits a limb, exponent)."""

    name: str
    n_samples: int
    n_features: int
    dtype: np.dtype
    algorithm: str
    n_distances: int
    n_rechecked: int
    largest_term: float

    def extent(self) -> sums.Extent:
        """Measure the rows."""

    def set_grid(self, extent: sums.Extent) -> None:
        """Fix the grid of the sums from the extent of the whole."""

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        """Return some rows, dense."""

    def limbs(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the integers that some rows add to their clusters."""

    def unweighted(self) -> Part:
        """Return the same rows with weights of 1."""

    def seed_weights(self) -> NDArray[np.float64]:
        """Return every row's weight."""

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        """Return the first rows of positive weight."""

    def seed_start(self) -> None:
        """Forget all centres; `largest_term` is the largest weight."""

    def seed_total(self, grid: tuple[int, int]) -> int:
        """Return the integer sum of weight times D."""

    def seed_find(self, targets: NDArray[np.int64], grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return for each target the first row whose running sum exceeds it."""

    def seed_farthest(self) -> int:
        """Return the row of positive weight with the largest D, or -1."""

    def seed_distance(self, row: int) -> float:
        """Return a row's D to the nearest centre so far."""

    def seed_values(self, rows: NDArray[np.int64]) -> Any:
        """Return rows in the form that every part takes as candidates."""

    def seed_first(self, values: Any) -> float:
        """Make a candidate the only seed; return the new `largest_term`."""

    def seed_weigh(self, values: Any, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return the totals with each candidate as a seed."""

    def seed_adopt(self, j: int) -> float:
        """Make candidate `j` of those weighed last a seed; return the new `largest_term`."""

    def seed_choose(
        self, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        """Choose rows, each on its own; `before` rows of other parts come first."""

    def seed_spread(self, centers: NDArray) -> float:
        """Make several rows, dense, seeds; return the new `largest_term`."""

    def seed_loads(self) -> NDArray[np.int64]:
        """Return the integer sum of the weights of the rows nearest to each seed."""

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> Part:
        """Return some of the rows with other weights."""

    def start(
        self, centers: NDArray, algorithm: str, settles: bool = True, max_iter: int = UNLIMITED
    ) -> None:
        """Begin a run."""

    def adopt(self, centers: NDArray) -> None:
        """Take the centres of the next assignment."""

    def gather(self) -> None:
        """Put every row into cluster 0."""

    def step(self) -> int:
        """Assign every row, keep the sums, return how many rows changed."""

    def assign(self) -> None:
        """Assign every row, without sums."""

    def classify(self, centers: NDArray) -> None:
        """Assign every row to the given centres, outside a run."""

    def integers(self) -> NDArray[np.int64]:
        """Return the sums of the clusters: shape (n_limbs, k, d + 1)."""

    def measure(self) -> float:
        """Compute every row's D to its centre; return the largest weight times D."""

    def cost(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return the limbs of the sum of weight times D, as measured."""

    def counts(self) -> NDArray[np.int64]:
        """Return the rows of positive weight in each cluster."""

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        """Return (rows, D, labels), largest D first."""

    def labels(self) -> NDArray[np.int32]:
        """Return the labels."""

    def distances(self, centers: NDArray) -> NDArray:
        """Return the distances to all centres."""
