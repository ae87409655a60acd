"""The memory of a run over rows of few features: labels, centres, and one arena."""

from __future__ import annotations

from copy import copy

import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.low_dim.shape import LowShape
from lloydia.backends.cuda.protocols import RunRows
from lloydia.backends.cuda.runtime.arena import Arena

__all__ = ["LowMemory"]


class LowMemory:
    """The tensors of a run; recorded launches need none of the arena's parts.

    Parameters
    ----------
    rows : RunRows
    shape : LowShape
    start : ndarray of shape (k, d), or a tensor on the device
        The first launch copies a tensor, which must not change before.
    empty_stops : bool
        Whether iterations end at one with empty clusters.

    Attributes
    ----------
    labels : int32 (n,)
        Not known before the first assignment.
    current : (k, d)
    start : (k, d)
        The tensor of this name, or else `current`.
    arena : Arena
        Its parts follow.  The host reads those before `all_sums` in one copy; `all_sums` and those
        before it begin with zeros.
    numbers : int64 (5 (d + 1),)
        Those of the fixed-point grid that the first launch finds.
    bounds : int64 (2 d + 1,)
        See :func:`lloydia.backends.cuda.low_dim.grid.measure_kernel`.
    cost : int64 (COST,)
        The inertia that the run ends with.
    seen : int32 (k,)
        Not 0: the last labels have this one.
    run_state : int32 (SIZE,)
        See :mod:`lloydia.backends.cuda.device_functions.run_state`.
    arrivals : int32 (2,)
        See :mod:`lloydia.backends.cuda.device_functions.ptx.barrier`.
    no_limit : float64 (1,)
        0: the limit of a run that has none.
    report : int64 (n_slots, HEAD + k)
    variance : int64 (...)
        That of a :class:`~lloydia.backends.cuda.update.mean_variance.MeanVariance`.
    all_sums : int64
        The sums, with room for the most limbs.
    changed_rows, changed_old, changed_new, ambiguous_rows : int32 (n_lists room,)
    n_changed, n_ambiguous : int32 (n_lists,)
        See :func:`lloydia.backends.cuda.low_dim.assign.assign_kernel`.
    table : float32 (table_size(k, d),)
        See :mod:`lloydia.backends.cuda.low_dim.center_table`.
    interpreter_table : int32 (WORDS,), or empty
        See :mod:`lloydia.backends.cuda.device_functions.ptx.shared_table`.
    history : (n_slots, k, d)
        The centres after iteration i in slot i modulo n_slots.
    """

    def __init__(
        self, rows: RunRows, shape: LowShape, start: NDArray | torch.Tensor, empty_stops: bool
    ) -> None:
        device = rows.device
        self.rows, self.shape, self.empty_stops = rows, shape, int(empty_stops)
        if isinstance(start, torch.Tensor):
            self.start, self.current = start, torch.empty_like(start)
        else:
            # The memory is not pinned: the host continues once the driver has a copy of its own.
            self.start = self.current = torch.from_numpy(start).to(device, non_blocking=True)
        self.labels = torch.empty(rows.n_samples, dtype=torch.int32, device=device)
        self.arena = Arena(device, shape.offsets)

    def over(self, rows: RunRows, labels: torch.Tensor) -> LowMemory:
        """Return the memory of a run over other rows: the same but for labels."""
        memory = copy(self)
        memory.rows, memory.labels = rows, labels
        return memory

    @property
    def zeros(self) -> torch.Tensor:
        """What begins with zeros: int64."""
        return self.arena.whole[: 8 * self.shape.n_zeros].view(torch.int64)

    @property
    def message(self) -> torch.Tensor:
        """What the host reads: int64."""
        return self.arena.whole[: self.shape.message_bytes].view(torch.int64)

    @property
    def history(self) -> torch.Tensor:
        return self.arena.history

    @property
    def report(self) -> torch.Tensor:
        return self.arena.report

    @property
    def run_state(self) -> torch.Tensor:
        return self.arena.run_state

    @property
    def sums(self) -> torch.Tensor:
        """The sums, once the grid is known: int64 (n_replicas, n_limbs, k, d + 1)."""
        k, d = self.current.shape
        shape = self.shape.n_replicas, self.rows.grid.n_limbs, k, d + 1
        return self.arena.all_sums[: shape[0] * shape[1] * k * (d + 1)].view(shape)

    def slot(self, iteration: int) -> int:
        """Return where the centres and the report of an iteration are."""
        return iteration % self.shape.n_slots
