"""The pairs of a row and a candidate that may be nearer than the row's seed, by 8-bit products."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import wait_for_previous_kernel
from lloydia.backends.cuda.runtime.launching import EXACT, ceil_div, launch
from lloydia.backends.cuda.seeding.int8_rows import CANDIDATES, CHUNK, SLACK, Int8Rows, reach_of

__all__ = ["queue_reach", "queue_screen"]

# Rows of a program, its warps, and steps of a product that are loaded ahead.
ROWS, WARPS, STAGES = 128, 4, 3
# The fewest columns of a product on matrix units.  k-means++ draws at most as many candidates for
# up to 1,096 clusters.
FEWEST = 8
BLOCK = tl.constexpr(1024)


@triton.jit
def list_pairs(
    block, hit, pairs, n_pairs, capacity, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Append ``16 row + candidate`` of each hit to a list, which stores the first `capacity`.

    Parameters
    ----------
    block : int64, IN
        The first row is ``ROWS block``.
    hit : bool (ROWS, COLUMNS), IN
    pairs : int64 (capacity,), OUT
    n_pairs : int64 (1,), IN and OUT
        It also counts the pairs that do not fit.
    """
    ones = tl.reshape(hit.to(tl.int32), (ROWS * COLUMNS,))
    total = tl.sum(ones, 0)
    if total > 0:
        first = tl.atomic_add(n_pairs, total.to(tl.int64), sem="relaxed")
        at = tl.cumsum(ones, 0) - ones
        room = tl.minimum(tl.maximum(capacity - first, 0), ROWS * COLUMNS).to(tl.int32)
        p = tl.arange(0, ROWS * COLUMNS)
        pair = block * (ROWS * CANDIDATES) + (p // COLUMNS * CANDIDATES + p % COLUMNS)
        tl.store(pairs + first + at, pair, mask=(ones != 0) & (at < room))


@triton.jit(do_not_specialize=["n", "count", "capacity"])
def screen_kernel(
    digits, scales, norms, reach, candidate_digits, candidate_numbers, pairs, n_pairs, n, width,
    count, capacity, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """List the pairs for which :mod:`int8_rows` does not prove that the row keeps its seed.

    Parameters
    ----------
    digits, scales, norms, candidate_digits, candidate_numbers
        Of :class:`Int8Rows`, IN.
    reach : float32 (n,), IN
        u.
    pairs, n_pairs, capacity
        See :func:`list_pairs`; `n_pairs` is 0 before.
    n, width, count : int, IN
        Rows, their stored features, candidates: at most COLUMNS.
    """
    wait_for_previous_kernel()
    block = tl.program_id(0).to(tl.int64)
    rows = block * ROWS + tl.arange(0, ROWS)
    inside = rows < n
    t, f = tl.arange(0, COLUMNS), tl.arange(0, CHUNK)
    # These loads are in flight while products are computed.
    u = tl.load(reach + rows, mask=inside, other=0.0)
    norm = tl.load(norms + rows, mask=inside, other=0.0)
    scale = tl.load(scales + rows, mask=inside, other=0.0)
    ends = tl.load(candidate_numbers + t)
    steps = tl.load(candidate_numbers + CANDIDATES + t)
    residuals = tl.load(candidate_numbers + 2 * CANDIDATES + t)
    x_at = digits + rows[:, None] * width + f[None, :]
    c_at = candidate_digits + t[None, :] * width + f[:, None]
    high = tl.zeros((ROWS, COLUMNS), tl.int32)
    low = tl.zeros((ROWS, COLUMNS), tl.int32)
    for first in tl.range(0, width, CHUNK, num_stages=STAGES):
        q = tl.load(x_at + first, mask=inside[:, None], other=0)
        high = tl.dot(q, tl.load(c_at + first), high, out_dtype=tl.int32)
        low = tl.dot(q, tl.load(c_at + CANDIDATES * width + first), low, out_dtype=tl.int32)
    products = high.to(tl.float32) * 256.0 + low.to(tl.float32)
    begin = norm - u * u * (1.0 + SLACK)
    above = begin[:, None] + ends[None, :]
    above -= scale[:, None] * (steps[None, :] * products)
    above -= u[:, None] * residuals[None, :]
    # NaN proves nothing.
    hit = ~(above > 0.0) & inside[:, None] & (t < count)[None, :]
    list_pairs(block, hit, pairs, n_pairs, capacity, ROWS, COLUMNS)


def queue_screen(
    rows: Int8Rows, reach: torch.Tensor, count: int, pairs: torch.Tensor, n_pairs: torch.Tensor
) -> None:
    """Queue the list of the pairs to evaluate, for `count` encoded candidates."""
    n = len(reach)
    launch(
        screen_kernel, (ceil_div(n, ROWS),),
        rows.digits, rows.scales, rows.norms, reach, rows.candidate_digits, rows.candidate_numbers,
        pairs, n_pairs, n, rows.width, count, len(pairs),
        ROWS=ROWS, COLUMNS=FEWEST if count <= FEWEST else CANDIDATES.value,
        CHUNK=min(CHUNK, rows.width), STAGES=STAGES if rows.width > CHUNK else 1,
        num_warps=WARPS, **EXACT,
    )  # fmt: skip


@triton.jit(do_not_specialize=["n"])
def reach_kernel(nearest, residuals, frame, reach, n):
    """Write u of all rows."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = rows < n
    near = tl.load(nearest + rows, mask=inside, other=0.0)
    residual = tl.load(residuals + rows, mask=inside, other=0.0)
    tl.store(reach + rows, reach_of(near, residual, frame), mask=inside)


def queue_reach(rows: Int8Rows, nearest: torch.Tensor, reach: torch.Tensor) -> None:
    """Queue u of all rows, float32, from their D to the nearest seed."""
    n = len(nearest)
    launch(
        reach_kernel, (ceil_div(n, BLOCK.value),),
        nearest, rows.residuals, rows.frame, reach, n, num_warps=4, **EXACT,
    )  # fmt: skip
