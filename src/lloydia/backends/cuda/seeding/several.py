"""Makes several rows seeds: an assignment to only these, then each row's nearer seed.

The assignment is that of an iteration, with the labels of :func:`lloydia.exact.distance.nearest`:
scores on matrix units (:mod:`matmul`) or, of few features, in float32 (:mod:`low_dim`) prove most
labels, and D decides the others.  D itself is then computed to one seed per row.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import SIZE
from lloydia.backends.cuda.low_dim.run import LowRun
from lloydia.backends.cuda.matmul.scan import RowsWithFp16, TensorScan
from lloydia.backends.cuda.protocols import LabelChanges, RunRows
from lloydia.backends.cuda.rows.distances import levels, pair_distances
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.rows.totals import load_weights, raise_to
from lloydia.backends.cuda.run_kinds import LOW_DIM, RunKind
from lloydia.backends.cuda.runtime.launching import (
    EXACT,
    ceil_div,
    given,
    launch,
    next_power,
    where_given,
)
from lloydia.backends.cuda.runtime.relocation import replay
from lloydia.exact import sums as exact

__all__ = ["SeededRows", "nearest_of", "take_nearer"]

ROWS = tl.constexpr(32)  # rows of a program, which is one warp


class SeededRows(RunRows, RowsWithFp16, Protocol):
    """Rows that seeds are chosen from.

    Attributes
    ----------
    kind : RunKind
        Which kernels assign rows.
    """

    kind: RunKind

    def magnitudes(self) -> exact.Magnitudes:
        """Measure the rows; NaN is refused."""


def nearest_of(rows: SeededRows, centers: torch.Tensor) -> torch.Tensor | None:
    """Return the number of each row's nearest centre, ties to the lowest: shape (n,), int32.

    None for a single centre.  The half-precision copy of the rows is stored with them for their
    next run; all other memory is released.

    Parameters
    ----------
    rows : SeededRows
    centers : tensor of shape (m, d), in the rows' ``wide`` type
    """
    if len(centers) == 1:
        return None
    if rows.kind is LOW_DIM:
        grid = FixedPointGrid.of(rows, rows.grid, None)
        run = LowRun(rows, grid, centers, 1, False)
        run.memory.current.copy_(centers)
        run.assign_once()
        return run.memory.labels
    if rows.fp16_rows is None:
        rows.fp16_rows = Fp16Rows(rows)
        replay(*rows.fp16_rows.storing)
    new = {"dtype": torch.int32, "device": rows.device}
    labels = torch.full((rows.n_samples,), -1, **new)
    # All rows change, and nothing reads the list of them.
    unread = torch.empty(rows.n_samples, **new)
    changes = LabelChanges(labels, unread, unread, torch.zeros(SIZE, **new))
    TensorScan(rows, len(centers)).scan(centers, changes)
    return labels


@triton.jit(do_not_specialize=["labelled", "weighted", "n", "n_seeds"])
def nearer_kernel(
    X, labels, labelled, centers, weights, weighted, nearest, owners, largest, n, d, n_seeds,
    LEVELS: tl.constexpr,
):  # fmt: skip
    """Give each row the seed of its label, if that is nearer than the nearest so far.

    Parameters
    ----------
    X : (n, d), IN
    labels : int32 (n,), IN
    labelled : int, IN
        0: `labels` are not read, and all rows have the first centre.
    centers : (m, d), IN
    weights, weighted
        As for :func:`~lloydia.backends.cuda.rows.totals.load_weights`.
    nearest : float64 (n,), IN and OUT
    owners : int32 (n,), IN and OUT
    largest : float64 (1,), IN and OUT
        Raised to the largest weight times D.
    n, d : int, IN
    n_seeds : int, IN
        The seeds before these.
    """
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = rows < n
    label = tl.load(labels + rows, mask=where_given(labelled, inside), other=0)
    c_at = centers + label.to(tl.int64) * d
    D = pair_distances(X + rows * d, c_at, inside, d, LEVELS)
    near = tl.load(nearest + rows, mask=inside, other=0.0)
    nearer = D < near
    tl.store(nearest + rows, D, mask=nearer)
    tl.store(owners + rows, n_seeds + label, mask=nearer)
    top = tl.max(load_weights(weights, weighted, rows, inside) * tl.minimum(D, near), axis=0)
    # A plain load first: few programs find a larger term.
    if top > tl.load(largest, volatile=True):
        raise_to(largest, top)


def take_nearer(
    rows: SeededRows,
    labels: torch.Tensor | None,
    centers: torch.Tensor,
    nearest: torch.Tensor,
    owners: torch.Tensor,
    largest: torch.Tensor,
    n_seeds: int,
) -> None:
    """Queue that `centers` follow `n_seeds` others as seeds; of equal D the earlier seed is nearer.

    Parameters
    ----------
    rows : SeededRows
    labels : tensor of shape (n,), int32, or None
        What :func:`nearest_of` returns.
    centers : tensor of shape (m, d), in the rows' ``wide`` type, contiguous
    nearest, owners : tensors of shape (n,), float64 and int32
        Each row's D to its nearest seed, and that seed; they are overwritten.
    largest : tensor of shape (1,), float64
        It becomes the largest weight times D.
    n_seeds : int
    """
    n, d = rows.n_samples, rows.n_features
    if n_seeds == 0:
        nearest.fill_(math.inf)
        owners.zero_()
    largest.zero_()
    # As in :func:`rows.distances.own_distances`, which computes the same.
    most = max(0, next_power(d).bit_length() - 2)
    launch(
        nearer_kernel, (ceil_div(n, ROWS.value),),
        rows.X, *given(labels, owners), centers, *given(rows.weights, nearest),
        nearest, owners, largest, n, d, n_seeds,
        LEVELS=min(levels(rows.X), most), num_warps=1, **EXACT,
    )  # fmt: skip
