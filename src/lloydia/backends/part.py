"""What a worker on another machine, a second GPU or a chunk of a file has to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.run_settings import RunSettings
from lloydia.exact import sums

__all__ = ["Part", "Step", "Tally"]


@dataclass(frozen=True)
class Step:
    """The result of an iteration of some rows; those of several parts add up, in any order.

    Attributes
    ----------
    n_changed : int
        Rows whose label changed.
    sums : ndarray of shape (n_limbs, k, d + 1), int64
        The integers of the clusters; see :mod:`lloydia.exact.sums`.
    largest_cost : float
        Largest weight times D to the centres before the update; 0 unless it was measured.
    """

    n_changed: int
    sums: NDArray[np.int64]
    largest_cost: float = 0.0

    def __add__(self, other: Step) -> Step:
        return Step(
            self.n_changed + other.n_changed,
            self.sums + other.sums,
            max(self.largest_cost, other.largest_cost),
        )


class Tally(NamedTuple):
    """What assignments did so far; see :class:`lloydia.backends.engine.Engine`."""

    n_distances: int
    n_rechecked: int
    algorithm: str


class Part(Protocol):
    """Rows in one place.  Row numbers are the part's own; `grid` is (bits a limb, exponent).

    Each question goes to all parts, so answers are small.  The state of a part is a function of its
    rows and of the questions before: a part that is lost can be made again.
    """

    name: str
    n_samples: int
    n_features: int
    dtype: np.dtype

    def magnitudes(self) -> sums.Magnitudes:
        """Measure the rows."""

    def set_grid(self, magnitudes: sums.Magnitudes) -> None:
        """Fix the grid of the sums from the magnitudes of all parts."""

    def all_sums(self) -> NDArray[np.int64]:
        """Return the integers of all rows as one cluster: shape (n_limbs, 1, d + 1)."""

    def measure_to(self, mean: NDArray) -> float:
        """Compute every row's D to one point, for :meth:`cost`; return the largest weight times D.

        `mean` has the shape (1, d).
        """

    def weight(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return the limbs of the sum of the weights."""

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        """Return some rows, dense."""

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of some rows."""

    def tally(self) -> Tally:
        """Return what assignments did so far."""

    # -- seeding: what changes the D to the nearest seed returns the largest weight times D ------

    def seed_weights(self) -> NDArray[np.float64] | None:
        """Return every row's weight; None without weights, which then no part has."""

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        """Return the first rows of positive weight."""

    def seed_start(self) -> float:
        """Forget all centres; return the largest weight."""

    def seed_total(self, grid: tuple[int, int]) -> int:
        """Return the integer sum of weight times D."""

    def seed_find(self, targets: NDArray[np.int64], grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return for each target the first row whose running sum exceeds it."""

    def seed_top(self) -> tuple[int, float]:
        """Return the row of positive weight with the largest D, the first of equals, and that D.

        The row is -1 where every such D is 0.
        """

    def seed_values(self, rows: NDArray[np.int64]) -> Any:
        """Return rows in the form that every part takes as candidates."""

    def seed_first(self, values: Any) -> float:
        """Make a candidate the only seed."""

    def seed_potentials_of(self, values: Any, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return the totals with each candidate as a seed."""

    def seed_accept(self, j: int) -> float:
        """Make candidate `j` of those weighed last a seed."""

    def seed_choose(
        self, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        """Choose rows, each on its own; `before` rows of other parts come first."""

    def seed_extend_by(self, centers: NDArray) -> float:
        """Make several rows, dense, seeds."""

    def seed_loads(self) -> NDArray[np.int64]:
        """Return the integer sum of the weights of the rows nearest to each seed."""

    # -- a run -----------------------------------------------------------------------------------

    def start(self, settings: RunSettings) -> None:
        """Begin a run."""

    def step(self, centers: NDArray, measure: bool) -> Step:
        """Assign every row to these centres and keep the sums; `measure` as below, if asked."""

    def conclude(self, centers: NDArray) -> float:
        """Assign every row to these centres without sums, and :meth:`measure`."""

    def measure(self) -> float:
        """Compute every row's D to its centre, for :meth:`cost`.

        Return the largest weight times D.
        """

    def cost(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return the limbs of the sum of weight times D, as measured."""

    def counts(self) -> NDArray[np.int64]:
        """Return the rows of positive weight in each cluster."""

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        """Return (rows, D, labels), largest D first."""

    def labels_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the labels of some rows."""

    def labels(self) -> NDArray[np.int32]:
        """Return the labels."""

    # -- without a run ---------------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        """Assign every row to the given centres."""

    def distances(self, centers: NDArray) -> NDArray:
        """Return the distances to all centres."""
