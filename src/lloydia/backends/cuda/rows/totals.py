"""Sums of weight times D as integers, on a grid that the device finds without the host.

The grid of :func:`lloydia.exact.sums.total` follows from the number of values and the largest.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import rint
from lloydia.backends.cuda.device_functions.run_state import first_row, programs_each
from lloydia.backends.cuda.rows.distinct import n_missing, see
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.launching import (
    EXACT,
    ceil_div,
    given,
    launch,
    processors,
    where_given,
)
from lloydia.exact import sums as exact

__all__ = [
    "Cost",
    "cost_limbs",
    "exponent_of",
    "join_cost",
    "largest_term",
    "load_weights",
    "power",
    "raise_to",
    "scaled",
    "term_of",
]

BLOCK = tl.constexpr(1024)


@triton.jit
def exponent_of(x):
    """Return E of a non-negative float64 with ``x = m * 2**E``, m in [1/2, 1); 0 where x is 0."""
    normal = x >= 2.2250738585072014e-308
    bits = (x * tl.where(normal, 1.0, 18014398509481984.0)).to(tl.int64, bitcast=True)
    exponent = ((bits >> 52) - tl.where(normal, 1022, 1076)).to(tl.int32)
    return tl.where(x > 0, exponent, 0)


@triton.jit
def power(exponent):
    """Return ``2**exponent`` as float64, for exponents from -1022 to 1023."""
    return ((exponent + 1023).to(tl.int64) << 52).to(tl.float64, bitcast=True)


@triton.jit
def scaled(x, exponent):
    """Return ``x * 2**exponent``: two factors, since one power alone may not be a float."""
    half = exponent >> 1
    return x * power(half) * power(exponent - half)


@triton.jit
def raise_to(at, value):
    """Raise a non-negative number in memory to a value, if that is larger."""
    # Bits of non-negative floats are ordered as the floats.
    at = at.to(tl.pointer_type(tl.int64))
    tl.atomic_max(at, value.to(tl.int64, bitcast=True), sem="relaxed")


@triton.jit
def load_weights(weights, weighted, rows, inside):
    """Return the weights of some rows; without weights load nothing and return ones.

    `weights` and `weighted` are what :func:`~lloydia.backends.cuda.runtime.launching.given`
    returns.
    """
    return tl.load(weights + rows, mask=where_given(weighted, inside), other=1.0)


@triton.jit
def term_of(D, weights, weighted, rows, inside):
    """Return weight times D of some rows; 0 outside."""
    term = tl.load(D + rows, mask=inside, other=0.0)
    return load_weights(weights, weighted, rows, inside) * term


@triton.jit(do_not_specialize=["weighted", "n"], do_not_specialize_on_alignment=["largest"])
def largest_kernel(D, weights, weighted, largest, n):
    top = tl.zeros([BLOCK], tl.float64)
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    for _ in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        top = tl.maximum(top, term_of(D, weights, weighted, rows, rows < n))
        rows += tl.num_programs(0) * BLOCK
    raise_to(largest, tl.max(top, axis=0))


@triton.jit(
    do_not_specialize=["weighted", "n", "bits", "k"],
    do_not_specialize_on_alignment=["largest", "out", "seen"],
)
def cost_kernel(D, weights, weighted, largest, out, n, bits, labels, seen, k):
    out += tl.program_id(2) * 4
    exponent = exponent_of(tl.load(largest + tl.program_id(2)))
    limb0 = tl.zeros([BLOCK], tl.int64)
    limb1 = tl.zeros([BLOCK], tl.int64)
    limb2 = tl.zeros([BLOCK], tl.int64)
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    for _ in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        term = term_of(D, weights, weighted, first_row(n) + rows, rows < n)
        rest = scaled(term, -exponent) * power(bits)
        limb = rint(rest)
        limb0 += limb.to(tl.int64)
        rest = (rest - limb) * power(bits)
        limb = rint(rest)
        limb1 += limb.to(tl.int64)
        limb2 += rint((rest - limb) * power(bits)).to(tl.int64)
        rows += tl.num_programs(0) * BLOCK
    tl.atomic_add(out, tl.sum(limb0, axis=0), sem="relaxed")
    tl.atomic_add(out + 1, tl.sum(limb1, axis=0), sem="relaxed")
    tl.atomic_add(out + 2, tl.sum(limb2, axis=0), sem="relaxed")
    if tl.program_id(0) == 0:
        tl.store(out + 3, exponent.to(tl.int64))
    if n_missing(seen, k) > 0:
        for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
            block_rows = block * BLOCK + tl.arange(0, BLOCK)
            see(labels, block_rows, block_rows < n, seen)


def programs(D: torch.Tensor, batch_size: int) -> tuple[int, int, int]:
    """Return the grid for D of this many items."""
    each = programs_each(4 * processors(D.device), batch_size)
    return min(ceil_div(len(D) // batch_size, BLOCK.value), each), 1, batch_size


def largest_term(
    D: torch.Tensor,
    weights: torch.Tensor | None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the largest weight times D, on the device: shape (1,), float64.

    `out` may hold a non-negative value, which is raised.
    """
    if out is None:
        out = torch.zeros(1, dtype=torch.float64, device=D.device)
    launch(largest_kernel, programs(D, 1), D, *given(weights, D), out, len(D), num_warps=4, **EXACT)
    return out


def cost_limbs(
    D: torch.Tensor,
    weights: torch.Tensor | None,
    largest: torch.Tensor,
    out: torch.Tensor | None = None,
    batch_size: int = 1,
    bits: int | None = None,
    labels: torch.Tensor | None = None,
    seen: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the limbs of the sum of weight times D, and their exponent: shape (4,), int64.

    Parameters
    ----------
    D, weights : tensor of shape (n,), float64
        Weights may be None.
    largest : tensor of shape (batch_size,), float64
        The largest weight times D of each item; see :func:`largest_term`.
    out : tensor of shape (4,), int64, optional
        Zeros, to which the limbs are added.
    batch_size : int
        The number of items, whose D follow each other; they are the first axis of the result.
    bits : int, optional
        Bits of a limb; if others add to the sum, those for all values.
    labels : tensor of shape (n,), int32, optional
    seen : tensor of shape (k,), int32, optional
        The marks that :func:`~lloydia.backends.cuda.rows.distances.own_distances` has set; elements
        become 1 for the labels that occur.
    """
    if out is None:
        shape = (4,) if batch_size == 1 else (batch_size, 4)
        out = torch.zeros(shape, dtype=torch.int64, device=D.device)
    n, nothing = len(D) // batch_size, D.view(torch.int32)
    launch(
        cost_kernel, programs(D, batch_size),
        D, *given(weights, D), largest, out, n, bits or exact.bits_a_limb(n),
        given(labels, nothing)[0], given(seen, nothing)[0], 0 if seen is None else len(seen),
        num_warps=4, **EXACT,
    )  # fmt: skip
    return out


class Cost:
    """A sum of weight times D of n values, which is copied to the host; ``float()`` waits for it.

    `limbs` is what :func:`cost_limbs` returned.
    """

    def __init__(self, limbs: torch.Tensor, n: int) -> None:
        self.n, self.limbs = n, AsyncCopy(limbs)

    def __float__(self) -> float:
        return join_cost(self.limbs.numpy().tolist(), self.n)


def join_cost(limbs: list[int], n: int) -> float:
    """Return the sum with the limbs and the exponent of :func:`cost_limbs`, for n values."""
    return exact.join(limbs[:3], exact.bits_a_limb(n), limbs[3])
