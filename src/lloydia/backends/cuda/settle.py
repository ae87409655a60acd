"""The last stage: canonical D of listed rows to every centre, in float64, whatever d."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.flow import HALT, N_RECHECKED
from lloydia.backends.cuda.launching import EXACT, next_power, processors
from lloydia.backends.cuda.row_lists import relabel

__all__ = ["settle"]

# D of a tile, and the most columns of one: few rows, since few are listed.
TILE, COLUMNS = 2048, 512
LAST = tl.constexpr(2147483647)


@triton.jit(do_not_specialize=["k", "d", "center_stride", "feature_stride"])
def settle_kernel(
    X, centers, k, d, center_stride, feature_stride,
    listed, count, labels, changed_rows, changed_old, flow,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    if tl.load(flow + HALT) != 0:
        return
    n_listed = tl.load(count)
    column = tl.arange(0, COLUMNS)
    for block in range(tl.program_id(0), tl.cdiv(n_listed, ROWS), tl.num_programs(0)):
        position = block * ROWS + tl.arange(0, ROWS)
        mask = position < n_listed
        rows = tl.load(listed + position, mask=mask, other=0)
        x_at = X + rows.to(tl.int64) * d
        least = tl.full((ROWS,), float("inf"), tl.float64)
        label = tl.zeros((ROWS,), tl.int32)
        for first in range(0, k, COLUMNS):
            j = first + column
            inside = j < k
            c_at = centers + j.to(tl.int64) * center_stride
            D = tl.zeros((ROWS, COLUMNS), tl.float64)
            for f in tl.range(0, d, loop_unroll_factor=4):
                x = tl.load(x_at + f).to(tl.float64)
                c = tl.load(c_at, mask=inside, other=0.0).to(tl.float64)
                c_at += feature_stride
                difference = x[:, None] - c[None, :]
                D += difference * difference
            D = tl.where(inside[None, :], D, float("inf"))
            nearest = tl.min(D, 1)
            lowest = tl.min(tl.where(D == nearest[:, None], j[None, :], LAST), 1)
            # Only a strictly smaller D displaces a label of an earlier tile: ties to the lowest.
            label = tl.where(nearest < least, lowest, label)
            least = tl.minimum(nearest, least)
        relabel(rows, label, mask, labels, changed_rows, changed_old, flow)
    if tl.program_id(0) == 0:
        tl.atomic_add(flow + N_RECHECKED, n_listed, sem="relaxed")


def settle(
    X: torch.Tensor,
    centers: torch.Tensor,
    listed: torch.Tensor,
    count: torch.Tensor,
    labels: torch.Tensor,
    changed_rows: torch.Tensor,
    changed_old: torch.Tensor,
    flow: torch.Tensor,
) -> None:
    """Queue the settlement of the rows ``listed[:count]``; `count` is a view of one number.

    `centers`, of shape (k, d), may have any strides; a column at a time is read fastest.
    """
    k, d = centers.shape
    columns = min(COLUMNS, next_power(k, 32))
    settle_kernel[(4 * processors(X.device),)](
        X, centers, k, d, centers.stride(0), centers.stride(1),
        listed, count, labels, changed_rows, changed_old, flow,
        ROWS=TILE // columns, COLUMNS=columns, num_warps=4, **EXACT,
    )  # fmt: skip
