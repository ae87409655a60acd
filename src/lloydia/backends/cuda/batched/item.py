"""An item of a batch as an engine of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.batched.batch import LAG, Batch, batches
from lloydia.backends.cuda.dataset import Dataset
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.runtime.own_device import current
from lloydia.backends.cuda.seeding.seeder import Seeder
from lloydia.backends.engine import NEVER, Abilities
from lloydia.backends.reports import Report
from lloydia.backends.run_settings import RunSettings, Starts
from lloydia.backends.seeded import Seeded
from lloydia.exact import sums as exact

__all__ = ["BatchItem", "groups"]


class ItemReport:
    """The report of an iteration of one item."""

    def __init__(self, item: BatchItem, iteration: int) -> None:
        self.item, self.iteration = item, iteration
        self.report: Report | None = None

    def begin(self) -> None:
        """Queue it on the device, with the iterations of other items."""
        self.item.batch.launch()

    def result(self) -> Report:
        """Wait for it."""
        if self.report is None:
            self.report = self.item.report(self.iteration)
        return self.report


@dataclass(frozen=True)
class ItemInertia:
    """The inertia of an item, once all have ended."""

    batch: Batch
    number: int

    def __float__(self) -> float:
        return self.batch.costs[self.number]


class BatchItem(Seeded, Abilities, Starts):
    """What :func:`lloydia.loop.run.steps` asks of an engine, for one item of a batch.

    A run whose empty clusters are to be filled needs an engine of its own.

    Parameters
    ----------
    batch : Batch
    number : int
        Of the item in the batch.
    """

    algorithm = "lloyd"
    lag = LAG
    full = False
    seeder: Seeder

    def __init__(self, batch: Batch, number: int) -> None:
        rows = batch.rows
        data = Dataset(rows.X[number], None)
        self.seeder = Seeder(data)
        self.batch, self.number, self.data, self.name = batch, number, data, batch.name
        self.dtype, self.n_samples, self.n_features = rows.dtype, rows.n_samples, rows.n_features
        known, self.tolerance = rows.measured, NEVER
        data.take_magnitudes(
            exact.Magnitudes(self.n_samples, known.largest[number], known.smallest[number])
        )
        self.n_distances = self.n_rechecked = 0

    def magnitudes(self) -> exact.Magnitudes:
        return self.data.magnitudes()

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> CUDA:
        chosen = self.data.X[torch.as_tensor(rows, device=self.data.device)]
        return CUDA(chosen, weights, self.name)

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        with current(self.data.device):
            return self.data.rows(indices)

    def seed_weights(self) -> None:
        """Return None: items have no weights."""

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        return self.data.positive_rows(count)

    def mean_variance(self) -> float:
        return self.batch.mean_variances[self.number]

    def start_run(self, settings: RunSettings) -> None:
        self.seeder.forget_seeds()
        # A copy that seeds were assigned by; the batch has its own.
        self.data.fp16_rows = None
        self.queued = 0
        self.batch.max_iter = settings.max_iter
        # A batch that was made with its starts ignores them.
        self.batch.starts[self.number] = settings.centers

    def iterate(self, inertia: bool) -> ItemReport:
        self.queued += 1
        self.batch.queued = max(self.batch.queued, self.queued)
        return ItemReport(self, self.queued)

    def report(self, iteration: int) -> Report:
        """Wait for the report of an iteration."""
        status, b = self.batch.status(iteration), self.number
        self.n_distances += self.n_samples * self.batch.run.current.shape[1]
        self.n_rechecked += status.rechecked[b]
        return Report(
            iteration,
            self.n_samples,
            status.changed[b],
            status.empty[b],
            status.shift[b],
            status.move[b],
        )

    def rewind(self, iteration: int) -> None:
        # Where nothing changed the device has stopped, with the centres of that iteration.
        if self.batch.status(iteration).changed[self.number]:
            self.batch.ended[self.number] = iteration

    def assign(self) -> None:
        self.batch.unassigned.append(self.number)

    def inertia(self) -> SupportsFloat:
        return ItemInertia(self.batch, self.number)

    def labels(self) -> torch.Tensor:
        self.batch.finish()
        return self.batch.run.labels.view(-1, self.n_samples)[self.number]

    def centers(self) -> torch.Tensor:
        self.batch.finish()
        return self.batch.run.current[self.number]


def groups(
    device: str, X: Any, k: int, empty_stops: bool, starts: torch.Tensor | None
) -> Iterator[dict[int, BatchItem]]:
    """Yield the engines of items that are iterated together, by number.

    The parameters are those of :func:`lloydia.backends.cuda.batched.batch.batches`.
    """
    for numbers, batch in batches(device, X, k, empty_stops, starts):
        yield {b: BatchItem(batch, i) for i, b in enumerate(numbers)}
