"""Rows of a batch in half precision: :mod:`half_rows`, in frames that the device chooses itself.

A frame follows from a sample of a member's rows.  One member's is soon looked at on the host; for
many that would take longer than their iterations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from lloydia.backends.cuda.half_rows import (
    LEAST_SAMPLED,
    MOST_RADIUS,
    MOST_SAMPLED,
    NUMBERS,
    RADIUS,
    REACH,
    SAMPLE,
    padded,
    reach_kernel,
    rows_kernel,
)
from lloydia.backends.cuda.half_scores import CHUNK
from lloydia.backends.cuda.launching import EXACT, ceil_div
from lloydia.backends.cuda.recording import launch

if TYPE_CHECKING:
    from lloydia.backends.cuda.batch_rows import BatchRows

__all__ = ["BatchHalves"]


class BatchHalves:
    """Rows of all members in half precision, as :class:`lloydia.backends.cuda.half_rows.HalfRows`.

    Attributes
    ----------
    origin : torch.Tensor of shape (members, d), float64
    numbers : torch.Tensor of shape (members, 6), float64
    width : int
    high : torch.Tensor of shape (members * n, width), float16
    norm, rest : torch.Tensor of shape (members * n,), float32
    """

    def __init__(self, rows: BatchRows) -> None:
        n, d, total = rows.n_samples, rows.n_features, rows.members * rows.n_samples
        single = {"device": rows.device, "dtype": torch.float32}
        self.rows, self.width = rows, padded(d)
        offset, scale, usual = frames(rows.X)
        self.origin = offset / scale[:, None]
        self.numbers = torch.zeros((rows.members, NUMBERS.value), device=rows.device).double()
        self.numbers[:, 0] = scale
        self.numbers[:, RADIUS.value] = (REACH * usual).clamp(1.0, MOST_RADIUS)
        self.high = torch.empty((total, self.width), device=rows.device, dtype=torch.float16)
        self.norm, self.rest = torch.empty(total, **single), torch.empty(total, **single)
        block = min(self.width, CHUNK)
        per_program = 4096 // block
        launch(
            rows_kernel, (ceil_div(n, per_program), 1, rows.members),
            rows.X, n, d, self.width, offset, self.numbers, self.high, self.norm, self.rest,
            BLOCK=block, ROWS=per_program, **EXACT,
        )  # fmt: skip
        launch(reach_kernel, (1, 1, rows.members), self.numbers, **EXACT)


def frames(X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return ``m s``, s and an ordinary norm in the frame of each member.

    As :func:`lloydia.backends.cuda.half_rows.frame` does for one, for X of shape (members, n, d).
    """
    _, n, d = X.shape
    size = min(MOST_SAMPLED, max(LEAST_SAMPLED, SAMPLE // d))
    sample = X[:, :: max(1, n // size)].to(torch.float64)
    reach = (sample - sample.median(1, keepdim=True).values).abs().amax(2)
    ascending = reach.sort(1).values
    # Those that are not 0 come last; the median is the middle one of them.
    some = (ascending > 0).sum(1, keepdim=True)
    at = ascending.shape[1] - some + some // 2
    typical = ascending.gather(1, at.clamp(max=ascending.shape[1] - 1))
    ordinary = (reach <= 8.0 * typical)[:, :, None]
    origin = torch.where(ordinary, sample, 0.0).sum(1) / ordinary.sum(1)
    most = 500 if X.dtype == torch.float64 else 100
    scale = power_of_two((4 - exponents(typical)).clamp(-2 * most, most))
    # Where all are alike there is no scale to choose.
    scale = torch.where(typical > 0, scale, 1.0)
    offset = origin * scale
    if X.dtype != torch.float64:
        offset = offset.float().double()
    norms = (sample * scale[:, None] - offset[:, None]).square().sum(2).sqrt()
    usual = norms.sort(1).values[:, int(0.9 * norms.shape[1])]
    return offset, scale[:, 0], usual


def exponents(x: torch.Tensor) -> torch.Tensor:
    """Return E of positive float64 numbers with ``x = m * 2**E``, m in [1/2, 1), as int64."""
    return (x.view(torch.int64) >> 52) - 1022


def power_of_two(exponent: torch.Tensor) -> torch.Tensor:
    """Return ``2.0**exponent`` for int64 exponents from -1022 to 1023."""
    return ((exponent + 1023) << 52).view(torch.float64)
