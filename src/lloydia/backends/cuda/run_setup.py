"""How a run is set up: its memory, what is queued with its start, and whether that was right.

A run may begin before the host knows the grid of the sums: one of few features measures its rows
with its first launch and has room for the limbs that rows need as a rule; one of more features
takes as many limbs as rows of this shape had before.  :func:`check` compares that with what was
found; if the number of limbs differs, the run is set up again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.dataset import Dataset, is_limited
from lloydia.backends.cuda.low_dim.run import LIMBS, SPARE, LowRun
from lloydia.backends.cuda.matmul.run import TensorRun
from lloydia.backends.cuda.protocols import Run
from lloydia.backends.cuda.rows.fixed_point_grid import replicas
from lloydia.backends.cuda.rows.found_grid import grid_found_on_device
from lloydia.backends.cuda.rows.fp16_rows import padded
from lloydia.backends.cuda.run_kinds import LOW_DIM
from lloydia.backends.cuda.runtime.devices import check_memory
from lloydia.backends.cuda.runtime.relocation import overlap
from lloydia.backends.cuda.update.mean_variance import MeanVariance
from lloydia.backends.engine import NEVER
from lloydia.backends.run_settings import RunSettings

__all__ = ["RunRequest", "build", "bytes_of_clusters", "check", "needed_bytes", "request_run"]

# Up to this many rows an iteration takes the host longer than the device.
SMALL_FIT_ROWS = 1 << 14


class RunRequest(NamedTuple):
    """The settings of a run on the device.

    Attributes
    ----------
    centers : ndarray of shape (k, d), or tensor on the device
        The start.
    empty_stops : bool
        Whether iterations end at one with empty clusters.
    max_iter : int
    tolerance : float
        As of an engine.
    """

    centers: NDArray | torch.Tensor
    empty_stops: bool
    max_iter: int
    tolerance: float

    @property
    def k(self) -> int:
        """The number of clusters."""
        return self.centers.shape[0]

    @property
    def limited(self) -> bool:
        """Whether the device ends the run by the mean variance."""
        return is_limited(self.tolerance, self.k)


def request_run(data: Dataset, settings: RunSettings, tolerance: float = NEVER) -> RunRequest:
    """Return the settings of a run; centres on the device stay there if the run checks them."""
    centers = settings.centers
    if isinstance(centers, torch.Tensor):
        if not (measures(data) or guesses(data)):
            start: NDArray | torch.Tensor = data.check_start(centers)
        else:
            # Recorded launches refer to memory by its address.
            start = centers.clone() if overlap(centers, data.X) else centers
            data.start = start
    else:
        # A copy if it may be needed again, since the caller may change the array.
        start = (np.array if data.kind.measures else np.asarray)(
            centers, dtype=data.dtype, order="C"
        )
    return RunRequest(start, settings.empty_stops, settings.max_iter, tolerance)


def measures(data: Dataset) -> bool:
    """Return whether the next run begins with measuring."""
    return data.kind.measures and not data.is_measured


def guesses(data: Dataset) -> bool:
    """Return whether the next run begins with storing the rows, for a grid that is guessed."""
    unknown = not data.is_measured and data.weights is None
    stores = data.kind.stores_fp16 and data.fp16_rows is None
    return stores and unknown and data.limbs_before is not None


# -- the run ---------------------------------------------------------------------------------------


def build(data: Dataset, request: RunRequest) -> tuple[Run, int]:
    """Return a run, and how many of its iterations may be in flight.

    The last run must have been released: its memory is used again.
    """
    if data.unchecked:
        # That of a run whose grid the host has not checked.
        data.variance = None
    if data.variance is not None and data.variance.queued:
        # It may be part of the last run's memory, which is released.
        data.variance.part_with()
    data.unchecked = measures(data)
    if data.kind.measures and not data.unchecked:
        data.magnitudes()
    lag = lag_of(data, request.k)
    per_batch = lag + 1
    stops = request.limited or request.tolerance == 0.0
    if data.kind is LOW_DIM and stops and data.n_samples > SMALL_FIT_ROWS:
        # The device stops by itself, so it may continue while the host reads earlier reports.
        lag += per_batch
    check_memory(needed_bytes(data, request.k, lag), data.device)
    if data.kind is LOW_DIM:
        return _low_run(data, request, min(lag, request.max_iter) + 4, per_batch), lag
    if data.fp16_rows is None:
        # The device stores them while the host continues.
        data.halve(later=isinstance(request.centers, torch.Tensor))
    run = TensorRun(data, request.centers.shape, lag, request.empty_stops)
    run.begin(request.centers, request.tolerance)
    return run, lag


def _low_run(data: Dataset, request: RunRequest, n_slots: int, per_batch: int) -> LowRun:
    """Return a run over few features."""
    grid = None if data.unchecked else data.fixed_point_grid
    run = LowRun(data, grid, request.centers, n_slots, request.empty_stops)
    run.launches_per_batch = per_batch
    if request.limited:
        data.variance = _variance_of(data, run, request.tolerance)
        run.limit_by(data.variance)
    return run


def _variance_of(data: Dataset, run: LowRun, tolerance: float) -> MeanVariance:
    """Return the mean variance that a run is to queue, unless it was."""
    found = data.variance
    if found is not None and found.queued:
        found.aim(tolerance)
        return found
    if data.unchecked:
        arena = run.memory.arena
        grid = grid_found_on_device(data.X, arena.numbers, LIMBS)
        return MeanVariance(data, grid, tolerance, arena.bounds, arena.variance)
    return MeanVariance(data, data.fixed_point_grid, tolerance)


def lag_of(data: Dataset, k: int) -> int:
    """Return how many iterations of k clusters to have in flight.

    Many where they are short, since then the host is what they wait for; what is queued past the
    end is lost.
    """
    n, d = data.n_samples, data.n_features
    if data.kind is LOW_DIM:
        microseconds = 4.0 + n * (4 * d + 8) / 3e6 + n * k * (d + 6) / 1e7
    else:
        microseconds = 40.0 + n * d / 5e5 + n * k * d / 2.3e8
    return max(1, min(15, int(2500.0 / microseconds)))


# -- whether it was right --------------------------------------------------------------------------


def check(data: Dataset, request: RunRequest, run: Run) -> RunRequest | None:
    """Look at what a run has found of its rows, or guessed; waits for what was launched.

    Rows and starts that are not finite are refused.  Returns None where the run was right, else
    what to build another one from.
    """
    data.unchecked = False
    if run.verify() or data.X.is_meta:
        if data.in_range:
            data.magnitudes()
        return None
    data.use_grid(None)
    data.variance = None
    centers = np.array(data.check_start(request.centers), dtype=data.dtype, order="C")
    return request._replace(centers=centers)


# -- memory ----------------------------------------------------------------------------------------


def needed_bytes(data: Dataset, k: int, lag: int = 0) -> int:
    """Return the bytes that a run of k clusters takes, beside the rows."""
    d = data.n_features
    width = padded(d) if data.fp16_rows is None else 0
    spare = 16 * SPARE if data.kind is LOW_DIM else 0
    return data.n_samples * data.kind.row_bytes(width) + bytes_of_clusters(data, k, lag) + spare


def bytes_of_clusters(data: Dataset, k: int, lag: int = 0) -> int:
    """Return the bytes of them that belong to clusters."""
    n_limbs = data.grid.n_limbs if data.knows_magnitudes else LIMBS
    center = (lag + 5) * data.dtype.itemsize
    if data.kind is LOW_DIM:
        center += 8 * n_limbs * replicas(data.n_samples, k)
    else:
        center += 8 * n_limbs + 4 + data.dtype.itemsize
    return k * (data.n_features + 1) * center
