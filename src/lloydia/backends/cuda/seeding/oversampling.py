"""The rounds of k-means|| on a GPU: each row has a random number, see :mod:`exact.counter`."""

from __future__ import annotations

import struct

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import rint
from lloydia.backends.cuda.rows.totals import exponent_of, scaled, term_of
from lloydia.backends.cuda.runtime.launching import EXACT, ceil_div, given, launch
from lloydia.exact import sums as exact
from lloydia.exact.counter import GOLDEN, MIX

__all__ = ["chosen", "integers", "loads"]

BLOCK = tl.constexpr(1024)


def signed(number: int) -> int:
    """Return the int64 with the bits of an unsigned number."""
    return number - (1 << 64) if number >> 63 else number


STEP = tl.constexpr(signed(GOLDEN))
SHIFT1, SHIFT2, SHIFT3 = (tl.constexpr(shift) for shift, _ in MIX)
BY1, BY2, BY3 = (tl.constexpr(signed(multiplier)) for _, multiplier in MIX)


@triton.jit
def shifted(z, SHIFT: tl.constexpr):
    """Shift right and fill with zeros."""
    return (z >> SHIFT) & ((tl.full((), 1, tl.int64) << (64 - SHIFT)) - 1)


@triton.jit
def uniform(key, rows):
    """Return the random numbers of rows: float64; see :func:`lloydia.exact.counter.uniforms`."""
    z = (rows + 1) * STEP + key
    z = (z ^ shifted(z, SHIFT1)) * BY1
    z = (z ^ shifted(z, SHIFT2)) * BY2
    z = (z ^ shifted(z, SHIFT3)) * BY3
    return shifted(z, 11).to(tl.float64) * 1.1102230246251565e-16


@triton.jit(do_not_specialize=["weighted", "n", "bits"], do_not_specialize_on_alignment=["largest"])
def choose_kernel(nearest, weights, weighted, largest, total, draw, marks, n, bits):
    """Mark the rows with ``u * total < factor * term``.

    Parameters
    ----------
    nearest : float64 (n,), IN
    weights, weighted
        As for :func:`~lloydia.backends.cuda.rows.totals.load_weights`.
    largest : float64 (1,), IN
        The grid of the terms follows from it and from `bits`.
    total : int64 (1,), IN
    draw : int64 (3,), IN
        The key, the rows that come before these, and the bits of the factor.
    marks : uint8 (n,), OUT
    n, bits : int, IN
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = rows < n
    exponent = bits - exponent_of(tl.load(largest))
    term = rint(scaled(term_of(nearest, weights, weighted, rows, inside), exponent))
    u = uniform(tl.load(draw), tl.load(draw + 1) + rows)
    factor = tl.load(draw + 2).to(tl.float64, bitcast=True)
    mark = u * tl.load(total).to(tl.float64) < factor * term
    tl.store(marks + rows, mark.to(tl.uint8), mask=inside)


def chosen(
    nearest: torch.Tensor,
    weights: torch.Tensor | None,
    largest: torch.Tensor,
    bits: int,
    total: torch.Tensor,
    key: int,
    factor: float,
    before: int = 0,
) -> torch.Tensor:
    """Return the rows with ``u * total < factor * term``, ascending: int64.

    Parameters
    ----------
    nearest : tensor of shape (n,), float64
        D; the terms are weight times D, as integers.
    weights : tensor of shape (n,), float64, or None
    largest : tensor of shape (1,), float64
    bits : int
        The grid of the terms follows from these two.
    total : int64 tensor of one element
        The sum of the terms of all parts.
    key : int
        Below 2**64; it determines u, the random number of a row.
    factor : float
    before : int
        How many rows of other parts precede these.
    """
    n, device = len(nearest), nearest.device
    (word,) = struct.unpack("q", struct.pack("d", factor))
    draw = torch.tensor([signed(key), before, word], device=device)
    marks = torch.empty(n, dtype=torch.uint8, device=device)
    launch(
        choose_kernel, (ceil_div(n, BLOCK.value),),
        nearest, *given(weights, nearest), largest, total, draw, marks, n, bits, num_warps=4,
        **EXACT,
    )  # fmt: skip
    return torch.nonzero(marks)[:, 0]


def integers(
    values: torch.Tensor, weights: torch.Tensor | None, grid: tuple[int, int]
) -> torch.Tensor:
    """Return weight times values as integers on a grid: the shape of `values`, as float64."""
    low, high = exact.two_factors(grid[0] - grid[1])
    terms = values * 1.0 if weights is None else weights * values
    return terms.mul_(low).mul_(high).round_()


def loads(
    owners: torch.Tensor, weights: torch.Tensor | None, n_seeds: int, grid: tuple[int, int]
) -> torch.Tensor:
    """Return the integer sum of the weights of each seed's rows, on a grid: (n_seeds,), int64."""
    if weights is None:
        one = integers(torch.ones(1, dtype=torch.float64, device=owners.device), None, grid)
        return torch.bincount(owners, minlength=n_seeds) * one.to(torch.int64)
    out = torch.zeros(n_seeds, dtype=torch.int64, device=owners.device)
    terms = integers(weights, None, grid).to(torch.int64)
    return out.scatter_add_(0, owners.to(torch.int64), terms)
