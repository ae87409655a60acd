"""Sums over clusters in Triton, each in an order that depends on the shapes alone."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.rows.distances import squares
from lloydia.backends.cuda.runtime.launching import ceil_div
from lloydia.metrics.device_partition import DevicePartition

__all__ = ["cluster_sums", "sorted_silhouettes"]

QUERIES = tl.constexpr(8)  # rows per program
LANES = tl.constexpr(128)  # rows of a cluster at a time, one per thread
ROWS, FEATURES = tl.constexpr(32), tl.constexpr(32)  # in a step of sum_kernel
PROGRAMS, STEPS = 2048, 8  # the intended number of programs, and of steps per program


@triton.jit(do_not_specialize=["k"])
def silhouette_kernel(columns, codes, bounds, out, n, k, d):
    query = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    known = query < n
    query = tl.where(known, query, 0).to(tl.int64)
    own = tl.load(codes + query)
    a = tl.zeros([QUERIES], tl.float64)
    b = tl.full([QUERIES], float("inf"), tl.float64)
    alone = query < 0
    for j in range(k):
        start, stop = tl.load(bounds + j), tl.load(bounds + j + 1)
        sums = tl.zeros([QUERIES, LANES], tl.float64)
        for first in range(start, stop, LANES):
            rows = first + tl.arange(0, LANES)
            inside = rows < stop
            D = squares(columns + rows, n, inside, columns + query, n, d, QUERIES)
            sums += tl.where(inside[None, :], tl.sqrt(D), 0.0)
        total = tl.sum(sums, axis=1)
        mine, size = own == j, stop - start
        a = tl.where(mine, total / tl.maximum(size - 1, 1).to(tl.float64), a)
        b = tl.where(mine, b, tl.minimum(b, total / size.to(tl.float64)))
        alone = alone | (mine & (size == 1))
    larger = tl.maximum(a, b)
    score = tl.where(larger > 0, (b - a) / tl.where(larger > 0, larger, 1.0), 0.0)
    tl.store(out + query, tl.where(alone, 0.0, score), mask=known)


def sorted_silhouettes(groups: DevicePartition) -> torch.Tensor:
    """Return the silhouettes of the rows sorted by cluster: shape (n,), float64."""
    n, d = groups.X.shape
    out = torch.empty(n, dtype=torch.float64, device=groups.X.device)
    silhouette_kernel[(ceil_div(n, QUERIES.value),)](
        groups.X.T.contiguous(), groups.codes, groups.bounds, out, n, len(groups.bounds) - 1, d,
        num_warps=4,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["parts", "d"])
def sum_kernel(X, bounds, out, parts, d):
    cluster, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    start, stop = tl.load(bounds + cluster), tl.load(bounds + cluster + 1)
    share = tl.cdiv(stop - start, parts)
    start += part * share
    stop = tl.minimum(start + share, stop)
    f = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    sums = tl.zeros([ROWS, FEATURES], tl.float64)
    for first in range(start, stop, ROWS):
        rows = first + tl.arange(0, ROWS)
        inside = (rows < stop)[:, None] & (f < d)[None, :]
        sums += tl.load(X + rows.to(tl.int64)[:, None] * d + f[None, :], mask=inside, other=0.0)
    tl.store(out + tl.program_id(0).to(tl.int64) * d + f, tl.sum(sums, axis=0), mask=f < d)


def cluster_sums(values: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
    """Return the sum of the rows of each cluster: shape (k, d).

    `values` (n, d), float64, are sorted by cluster; cluster j ends before row ``bounds[j + 1]``.
    """
    d, k = values.shape[1], len(bounds) - 1
    parts = min(ceil_div(PROGRAMS, k), ceil_div(len(values), k * STEPS * ROWS.value))
    out = torch.empty((k * parts, d), dtype=torch.float64, device=values.device)
    sum_kernel[(k * parts, ceil_div(d, FEATURES.value))](values, bounds, out, parts, d, num_warps=4)
    return out.view(k, parts, d).sum(dim=1)
