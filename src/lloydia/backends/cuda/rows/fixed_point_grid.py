"""The fixed-point grid of integer sums on the device, and the sums of all rows.

The integers are those of :func:`lloydia.exact.sums.limbs`.  Atomics add them in any order, which
does not change the sums.  Where few clusters would make many additions collide at one address,
there are replicas of the sums, which :mod:`low_dim.means` and :mod:`update.all_reduce` add.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import product_error, rint
from lloydia.backends.cuda.protocols import DataSetRows
from lloydia.backends.cuda.run_kinds import run_kind
from lloydia.backends.cuda.runtime.arena import Arena
from lloydia.backends.cuda.runtime.launching import (
    EXACT,
    ceil_div,
    given,
    launch,
    next_power,
    processors,
    where_given,
)
from lloydia.exact import sums as exact

__all__ = ["FixedPointGrid", "gather", "queue_gather", "replicas"]

# About how many rows of a cluster are added to one replica, and the most replicas.
ROWS_PER_ADDRESS, MAX_REPLICAS = 256, 512


@dataclass(frozen=True)
class FixedPointGrid:
    """The grid of a data set (:class:`lloydia.exact.sums.Grid`) in the layout that kernels read.

    For a batch, each kind of number is stored for one item after the other.

    Attributes
    ----------
    memory : int64 tensor of shape (5 batch_size (d + 1),), or Arena whose `grid` is one
        The memory of `numbers`.
    numbers : int64 tensor of shape (5 batch_size (d + 1),)
        The `columns`; origin and scale of the frame of float32 scores, if there is one (all bits of
        float64); the `exponents`.
    weights : float64 tensor of shape (n,) or None
        Scaled by ``2**-weight_exponent``.
    """

    grid: exact.Grid
    memory: torch.Tensor | Arena
    weights: torch.Tensor | None

    @cached_property
    def numbers(self) -> torch.Tensor:
        return self.memory.grid if isinstance(self.memory, Arena) else self.memory

    @cached_property
    def columns(self) -> torch.Tensor:
        """The scale, the quantum and its inverse of each column: float64."""
        return self.numbers[: self.numbers.numel() // 5 * 3].view(torch.float64)

    @cached_property
    def exponents(self) -> torch.Tensor:
        """The exponent of each column: int64."""
        return self.numbers[self.numbers.numel() // 5 * 4 :]

    @property
    def key(self) -> tuple:
        """What launches depend on, besides the address of its memory."""
        grid, cut = self.grid, isinstance(self.memory, Arena)
        return grid.bits, grid.n_limbs, grid.recover, self.weights is None, cut

    @property
    def buffers(self) -> list[torch.Tensor]:
        """All its memory."""
        memory = self.memory.whole if isinstance(self.memory, Arena) else self.memory
        return [memory] if self.weights is None else [memory, self.weights]

    @classmethod
    def of(
        cls, rows: DataSetRows, grid: exact.Grid, weights: torch.Tensor | None
    ) -> FixedPointGrid:
        """Copy a grid to the device, in one copy."""
        m = len(grid.exponents)
        # With more features there are no float32 scores.
        frame = np.zeros(m) if run_kind(m - 1).stores_fp16 else rows.frame()
        both = np.concatenate([x.view(np.int64) for x in (grid.columns, frame, grid.exponents)])
        there = torch.from_numpy(both).to(rows.device, non_blocking=True)
        scaled = None
        if weights is not None:
            scaled = torch.ldexp(weights, torch.tensor(-grid.weight_exponent, device=rows.device))
        return cls(grid, there, scaled)


def replicas(n: int, k: int) -> int:
    """Return the number of replicas of the sums of k clusters of n rows: a power of two."""
    return min(MAX_REPLICAS, next_power(max(1, n // (k * ROWS_PER_ADDRESS))))


@triton.jit
def add_rows(p, quantum, inverse, step, n_limbs, sums, m, f, column):
    """Add the limbs of products of shape (rows, columns) to the sums of their columns."""
    limb = 0
    left = 1
    while (limb < n_limbs) & (left != 0):
        v = rint(p * inverse)
        total = tl.sum(v.to(tl.int64), 0)
        tl.atomic_add(sums + limb * m + f, total, mask=column & (total != 0), sem="relaxed")
        p = (p - v * quantum) * step
        left = tl.max(tl.max((p != 0.0).to(tl.int32), 1), 0)
        limb += 1


@triton.jit(
    do_not_specialize=["weighted", "n", "d", "bits", "n_limbs", "counted"],
    do_not_specialize_on_alignment=["numbers", "sums", "needed"],
)
def gather_kernel(
    X, weights, weighted, n, d, numbers, sums, bits, n_limbs, needed, counted,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, RECOVER: tl.constexpr,
):  # fmt: skip
    m = d + 1
    fixed_point_grid = numbers.to(tl.pointer_type(tl.float64))
    if counted != 0:
        n_limbs = tl.minimum(n_limbs, tl.load(needed + 2 * d).to(tl.int32))
    f = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    column = f < m
    scale = tl.load(fixed_point_grid + f, mask=column, other=0.0)[None, :]
    quantum = tl.load(fixed_point_grid + m + f, mask=column, other=0.0)[None, :]
    inverse = tl.load(fixed_point_grid + 2 * m + f, mask=column, other=0.0)[None, :]
    step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    for block in range(tl.program_id(0), tl.cdiv(n, ROWS), tl.num_programs(0)):
        rows = block * ROWS + tl.arange(0, ROWS)
        mask = (rows < n)[:, None] & column[None, :]
        at = rows.to(tl.int64)[:, None] * d + f[None, :]
        x = tl.load(X + at, mask=mask & (f < d)[None, :], other=0.0).to(tl.float64)
        p = tl.where(mask, tl.where((f == d)[None, :], 1.0, x) * scale, 0.0)
        a = p
        w = tl.load(weights + rows, mask=where_given(weighted, rows < n), other=1.0)
        w = w[:, None] + tl.zeros_like(a)
        p = a * w
        if RECOVER:
            error = product_error(a, w, p)
            add_rows(error, quantum, inverse, step, n_limbs, sums, m, f, column)
        add_rows(p, quantum, inverse, step, n_limbs, sums, m, f, column)


def queue_gather(
    X: torch.Tensor,
    fixed_point_grid: FixedPointGrid,
    sums: torch.Tensor,
    needed: torch.Tensor | None = None,
) -> None:
    """Queue the addition of all rows as one cluster, by the weights of the fixed-point grid.

    Parameters
    ----------
    X : tensor of shape (n, d)
    fixed_point_grid : FixedPointGrid
    sums : int64 tensor of shape (1, n_limbs, 1, d + 1)
        Zeros, to which the rows are added.
    needed : int64 tensor, optional
        Element 2 d is the number of those limbs that the rows need.
    """
    n, d = X.shape
    columns = min(64, next_power(d + 1))
    rows = max(1, 4096 // columns)
    blocks = min(ceil_div(n, rows), 4 * processors(X.device))
    launch(
        gather_kernel, (blocks, ceil_div(d + 1, columns)),
        X, *given(fixed_point_grid.weights, fixed_point_grid.columns), n, d,
        fixed_point_grid.numbers, sums, fixed_point_grid.grid.bits, fixed_point_grid.grid.n_limbs,
        *given(needed, sums), ROWS=rows, COLUMNS=columns, RECOVER=fixed_point_grid.grid.recover,
        **EXACT,
    )  # fmt: skip


def gather(X: torch.Tensor, fixed_point_grid: FixedPointGrid) -> torch.Tensor:
    """Return the sums of all rows as one cluster: int64 of shape (1, n_limbs, 1, d + 1)."""
    shape = 1, fixed_point_grid.grid.n_limbs, 1, X.shape[1] + 1
    sums = torch.zeros(shape, dtype=torch.int64, device=X.device)
    queue_gather(X, fixed_point_grid, sums)
    return sums
