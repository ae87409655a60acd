"""The sum of weight times D of rows of few features, in one launch.

The integers of :mod:`lloydia.backends.cuda.totals`: their grid follows from the largest term, so
that the rows are read twice, and programs wait for each other in between.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.launching import EXACT, INTERPRETED, ceil_div, processors
from lloydia.backends.cuda.low_scan import wait_for_all
from lloydia.backends.cuda.low_scores import features
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.totals import Cost, exponent_of, power, raise_to, rounded, scaled
from lloydia.exact import sums as exact

__all__ = ["low_cost"]

BLOCK = tl.constexpr(512)

# Programs that a multiprocessor holds at a time.
RESIDENT = 4


@triton.jit
def terms(X, rows, inside, labels, centers, weights, d: tl.constexpr):
    """Return weight times D of some rows to the centres of their labels; 0 outside."""
    label = tl.load(labels + rows, mask=inside, other=0)
    x = features(X, rows.to(tl.int64) * d, inside, d)
    c = features(centers, label.to(tl.int64) * d, inside, d)
    D = tl.zeros((BLOCK,), tl.float64)
    for f in tl.static_range(d):
        difference = x[f].to(tl.float64) - c[f].to(tl.float64)
        D += difference * difference
    if weights is not None:
        D = tl.load(weights + rows, mask=inside, other=0.0) * D
    return D


@triton.jit(do_not_specialize=["n", "bits"])
def low_cost_kernel(X, n, labels, centers, weights, out, bits, d: tl.constexpr):
    """Add up limbs in `out`: three, the exponent, the largest term and arrivals; zeros before."""
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    top = tl.zeros((BLOCK,), tl.float64)
    for block in range(program, tl.cdiv(n, BLOCK), n_programs):
        rows = block * BLOCK + tl.arange(0, BLOCK)
        top = tl.maximum(top, terms(X, rows, rows < n, labels, centers, weights, d))
    raise_to(out + 4, tl.max(top, axis=0))
    wait_for_all((out + 5).to(tl.pointer_type(tl.int32)), n_programs, 0)
    largest = tl.load(out + 4, volatile=True).to(tl.float64, bitcast=True)
    exponent = exponent_of(largest)
    limb0 = tl.zeros((BLOCK,), tl.int64)
    limb1 = tl.zeros((BLOCK,), tl.int64)
    limb2 = tl.zeros((BLOCK,), tl.int64)
    for block in range(program, tl.cdiv(n, BLOCK), n_programs):
        rows = block * BLOCK + tl.arange(0, BLOCK)
        term = terms(X, rows, rows < n, labels, centers, weights, d)
        rest = scaled(term, -exponent) * power(bits)
        limb = rounded(rest)
        limb0 += limb.to(tl.int64)
        rest = (rest - limb) * power(bits)
        limb = rounded(rest)
        limb1 += limb.to(tl.int64)
        limb2 += rounded((rest - limb) * power(bits)).to(tl.int64)
    tl.atomic_add(out, tl.sum(limb0, axis=0), sem="relaxed")
    tl.atomic_add(out + 1, tl.sum(limb1, axis=0), sem="relaxed")
    tl.atomic_add(out + 2, tl.sum(limb2, axis=0), sem="relaxed")
    if program == 0:
        tl.store(out + 3, exponent.to(tl.int64))


def low_cost(
    rows: Placed, labels: torch.Tensor, centers: torch.Tensor, weights: torch.Tensor | None
) -> Cost:
    """Return the weighted sum of D to the centres of these labels, for few features."""
    n, d = rows.X.shape
    out = torch.zeros(6, dtype=torch.int64, device=rows.device)
    programs = min(ceil_div(n, BLOCK.value), RESIDENT * processors(rows.device))
    # All programs have to be resident: a thread may have so many registers.
    options = {"launch_cooperative_grid": True, "maxnreg": 65536 // (128 * RESIDENT) // 8 * 8}
    low_cost_kernel[(1 if INTERPRETED else programs,)](
        rows.X, n, labels, centers, weights, out, exact.bits_a_limb(n),
        d=d, **EXACT, **({} if INTERPRETED else options),
    )  # fmt: skip
    return Cost(out, n)
