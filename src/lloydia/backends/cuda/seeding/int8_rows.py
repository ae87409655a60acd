r"""Rows in 8 bits, which prove for most rows that a candidate is no nearer than their seed.

In the frame of :mod:`~lloydia.backends.cuda.rows.fp16_frame` a row is ``x' = a q + e``: q are
integers of 8 bits, a is a scale of the row, and ``r >= |e|``.  A candidate is ``c' = b p + f``,
with p in 16 bits, as ``256 high + low``, and ``g >= |f|``.  The products q.p of integers are exact.
Let N be the row's D to its nearest seed, s the scale of the frame, and ``u >= s sqrt(N) + r``.

**The proof.**  With ``L = |a q - b p|^2`` the candidate's distance is at least ``sqrt(L) - r - g``.
Hence it is at least ``s sqrt(N)``, and the candidate is not nearer, if ``L > (u + g)^2``:

    A + B - 2 a b q.p - u^2 - g^2 - 2 u g > 0,    A = |a q|^2,  B = |b p|^2.

**Roundings.**  That is evaluated in float32, as ``(A - u^2) + (B - g^2) - a (2 b q.p) - u (2 g)``.
All partial results are at most ``2 M``, with ``M = A + B + u^2 + g^2``, as ``2 a b |q| |p|`` is at
most ``A + B``.  The roundings, added up in units of ``2**-24 M``, are fewer than 32, so their sum
is less than ``2**-19 M``.  So it is enough that A and B are taken smaller by ``2**-18`` of
themselves, and ``u^2`` and ``g^2`` larger: SLACK.

The products: ``256 |q.high|`` and ``|q.low|`` are at most ``4 |q| |p|``, since the largest
coordinate of p is ``127 * 256`` (up to 2**17 features); their three roundings are 12 of these
units.

**The bounds.**  x' is computed with one rounding, or two from float64, relative to itself, and the
residual ``x' - a q`` with two more.  ``2**-21 (|a q| + r)`` covers them (ROUNDING); GROW covers the
roots, and the part ``(d + 4) 2**-53`` by which D may be off (up to 2**17 features).  Underflow,
also that of D (``sqrt(d) 2**-537`` at a scale of at most ``2**500``), costs less than TINY.

**Range.**  Rows and candidates with a coordinate above FAR have infinite r and g: nothing is proved
for them.  Below FAR all terms are finite: ``A <= 2**17 FAR**2 = 2**117``; u may be infinite, which
proves nothing either.
"""

from __future__ import annotations

from functools import partial

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.fp16_frame import NUMBERS, queue_frame
from lloydia.backends.cuda.runtime.launching import EXACT, ceil_div, launch, next_power
from lloydia.backends.cuda.runtime.relocation import Stages

__all__ = ["CANDIDATES", "CHUNK", "Int8Rows", "encode_candidate", "encode_candidates", "reach_of"]

# Candidates that are evaluated at a time.
CANDIDATES = tl.constexpr(16)
# Features of one step of a product: rows of fewer are padded to a power of two.
CHUNK = 128
# The most features, for which integers and bounds hold.
MOST_FEATURES = 1 << 17
# See "Roundings", "The bounds" and "Range".
SLACK = tl.constexpr(2.0**-18)
ROUNDING, GROW = tl.constexpr(2.0**-21), tl.constexpr(1.0 + 2.0**-20)
TINY, FAR = tl.constexpr(2.0**-24), tl.constexpr(2.0**50)
# A row or candidate whose coordinates are all smaller is treated as 0.
SMALL = tl.constexpr(2.0**-60)
# The largest coordinates of q and p.
LARGEST, LARGEST_CANDIDATE = tl.constexpr(127.0), tl.constexpr(127.0 * 256.0)
# Added to a float32 number of magnitude up to 2**21, this rounds it to an integer, ties to even.
ROUNDER = tl.constexpr(1.5 * 2.0**23)
# Numbers that a program encodes at a time.
TILE = 4096


@triton.jit
def framed(x, offset, frame, double: tl.constexpr):
    """Return coordinates in the frame, as float32."""
    kind: tl.constexpr = tl.float64 if double else tl.float32
    return (x.to(kind) * tl.load(frame).to(kind) - offset.to(kind)).to(tl.float32)


@triton.jit
def step_of(top, largest):
    """Return a scale that brings the largest coordinate to an integer, and its inverse."""
    representable = (top > SMALL) & (top < FAR)
    return tl.where(representable, top / largest, 0.0), tl.where(representable, largest / top, 0.0)


@triton.jit
def integers(x, inverse, largest):
    """Return coordinates as integers of magnitude up to `largest`, stored as float32."""
    # Where the inverse is 0 a coordinate may be infinite.
    p = (tl.where(inverse > 0.0, x * inverse, 0.0) + ROUNDER) - ROUNDER
    return tl.minimum(tl.maximum(p, -largest), largest)


@triton.jit
def residual_of(squares, norm, top):
    """Return an upper bound of the norm of a residual, from its computed square."""
    residual = tl.sqrt(squares) * GROW
    residual = (residual + (norm + residual) * ROUNDING) * GROW + TINY
    return tl.where(top < FAR, residual, float("inf"))


@triton.jit
def reach_of(near, residual, frame):
    """Return u, float32, of rows with this float64 D and this residual."""
    return ((tl.sqrt(near) * tl.load(frame) + residual.to(tl.float64)) * GROW).to(tl.float32)


@triton.jit(do_not_specialize=["n"])
def encode_rows(
    X, offsets, frame, digits, scales, norms, residuals, n, d, width,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Store q of rows, a, A minus its slack, and r.

    Parameters
    ----------
    X : (n, d), IN
    offsets, frame : float64 (d,) and (1,), IN
        The frame: ``m s`` and s.
    digits : int8 (n, width), OUT
    scales, norms, residuals : float32 (n,), OUT
    n, d, width : int, IN
    """
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = rows < n
    step = tl.arange(0, BLOCK)
    top = tl.zeros((ROWS,), tl.float32)
    for first in range(0, d, BLOCK):
        f = first + step
        there = inside[:, None] & (f < d)[None, :]
        x = tl.load(X + rows[:, None] * d + f[None, :], mask=there, other=0.0)
        offset = tl.load(offsets + f, mask=f < d, other=0.0)[None, :]
        x = tl.where(there, framed(x, offset, frame, double), 0.0)
        top = tl.maximum(top, tl.max(tl.abs(x), 1))
    scale, inverse = step_of(top, LARGEST)
    squares = tl.zeros((ROWS,), tl.int32)
    errors = tl.zeros((ROWS,), tl.float32)
    for first in range(0, width, BLOCK):
        f = first + step
        there = inside[:, None] & (f < d)[None, :]
        x = tl.load(X + rows[:, None] * d + f[None, :], mask=there, other=0.0)
        offset = tl.load(offsets + f, mask=f < d, other=0.0)[None, :]
        x = tl.where(there, framed(x, offset, frame, double), 0.0)
        q = integers(x, inverse[:, None], LARGEST)
        gap = x - scale[:, None] * q
        squares += tl.sum((q * q).to(tl.int32), 1)
        errors += tl.sum(gap * gap, 1)
        at = digits + rows[:, None] * width + f[None, :]
        tl.store(at, q.to(tl.int8), mask=inside[:, None] & (f < width)[None, :])
    norm = scale * scale * squares.to(tl.float32)
    # At most width + 32 roundings of positive numbers.
    errors *= 1.0 + (width + 32).to(tl.float32) * ROUNDING
    tl.store(scales + rows, scale, mask=inside)
    tl.store(norms + rows, norm * (1.0 - SLACK), mask=inside)
    tl.store(residuals + rows, residual_of(errors, tl.sqrt(norm), top), mask=inside)


@triton.jit
def encode_candidate(
    x_at, t, offsets, frame, digits, numbers, d, width, double: tl.constexpr, BLOCK: tl.constexpr
):
    """Store p of a candidate, and the numbers ``B - g^2`` with slack, 2 b and 2 g.

    Parameters
    ----------
    x_at : pointer, IN
        To its first feature.
    t : int, IN
        Its number.
    offsets, frame : float64 (d,) and (1,), IN
    digits : int8 (2, CANDIDATES, width), OUT
        high and low.
    numbers : float32 (3, CANDIDATES), OUT
    d, width : int, IN
    """
    step = tl.arange(0, BLOCK)
    top = tl.zeros([], tl.float32)
    for first in range(0, d, BLOCK):
        f = first + step
        x = tl.load(x_at + f, mask=f < d, other=0.0)
        x = framed(x, tl.load(offsets + f, mask=f < d, other=0.0), frame, double)
        top = tl.maximum(top, tl.max(tl.where(f < d, tl.abs(x), 0.0), 0))
    scale, inverse = step_of(top, LARGEST_CANDIDATE)
    squares = tl.zeros([], tl.float64)
    errors = tl.zeros([], tl.float64)
    for first in range(0, width, BLOCK):
        f = first + step
        x = tl.load(x_at + f, mask=f < d, other=0.0)
        x = framed(x, tl.load(offsets + f, mask=f < d, other=0.0), frame, double)
        x = tl.where(f < d, x, 0.0)
        p = integers(x, inverse, LARGEST_CANDIDATE)
        gap = (x - scale * p).to(tl.float64)
        squares += tl.sum(p.to(tl.float64) * p.to(tl.float64), 0)
        errors += tl.sum(gap * gap, 0)
        p = p.to(tl.int32)
        high = (p + 128) >> 8
        tl.store(digits + t * width + f, high.to(tl.int8), mask=f < width)
        low = (p - (high << 8)).to(tl.int8)
        tl.store(digits + (CANDIDATES + t) * width + f, low, mask=f < width)
    b = scale.to(tl.float64)
    norm = b * b * squares
    residual = residual_of(errors, tl.sqrt(norm), top)
    begin = norm * (1.0 - SLACK) - residual * residual * (1.0 + SLACK)
    tl.store(numbers + t, begin.to(tl.float32))
    tl.store(numbers + CANDIDATES + t, scale * 2.0)
    tl.store(numbers + 2 * CANDIDATES + t, (residual * 2.0).to(tl.float32))


@triton.jit
def encode_candidates(
    table, offsets, frame, digits, numbers, d, width, double: tl.constexpr, BLOCK: tl.constexpr
):
    """Encode each candidate of a table of shape (CANDIDATES, d)."""
    t = tl.program_id(0)
    encode_candidate(
        table + t.to(tl.int64) * d, t, offsets, frame, digits, numbers, d, width, double, BLOCK
    )


class Int8Rows:
    """The memory of rows in 8 bits, and of up to CANDIDATES candidates in 16.

    Parameters
    ----------
    rows : WholeRows

    Attributes
    ----------
    offsets, frame : torch.Tensor, float64
        ``m s`` of shape (d,), and numbers that begin with s.
    width : int
        Features of a stored row, the last ones 0.
    digits : torch.Tensor of shape (n, width), int8
        q.
    scales, norms, residuals : torch.Tensor of shape (n,), float32
        a, A minus its slack, and r.
    candidate_digits, candidate_numbers : torch.Tensor
        See :func:`encode_candidate`.
    """

    def __init__(self, rows: WholeRows) -> None:
        n, d, new = rows.n_samples, rows.n_features, {"device": rows.device}
        self.width, self.double = width_of(d), rows.wide == torch.float64
        self.frame = torch.empty(NUMBERS.value, dtype=torch.float64, **new)
        self.offsets = torch.empty(d, dtype=torch.float64, **new)
        self.digits = torch.empty((n, self.width), dtype=torch.int8, **new)
        self.scales, self.norms, self.residuals = (
            torch.empty(n, dtype=torch.float32, **new) for _ in range(3)
        )
        count = CANDIDATES.value
        self.candidate_digits = torch.zeros((2 * count, self.width), dtype=torch.int8, **new)
        self.candidate_numbers = torch.zeros(3 * count, dtype=torch.float32, **new)

    def stages(self, rows: WholeRows) -> Stages:
        """Return what queues the frame of the rows, and the rows in 8 bits."""
        origin, block = torch.empty_like(self.offsets), min(next_power(self.width), 512)
        encode = partial(
            launch, encode_rows, (ceil_div(rows.n_samples, TILE // block),),
            rows.X, self.offsets, self.frame, self.digits, self.scales, self.norms, self.residuals,
            *rows.X.shape, self.width, ROWS=TILE // block, BLOCK=block, **EXACT,
        )  # fmt: skip
        return [partial(queue_frame, rows, (self.frame, origin, self.offsets)), encode]

    def encode(self, table: torch.Tensor) -> None:
        """Queue the encoding of candidates: `table` has shape (CANDIDATES, d)."""
        launch(
            encode_candidates, (len(table),),
            table, self.offsets, self.frame, self.candidate_digits, self.candidate_numbers,
            table.shape[1], self.width, double=self.double, BLOCK=block_of(table.shape[1]),
            **EXACT,
        )  # fmt: skip


def block_of(d: int) -> int:
    """Return how many features of a candidate are encoded at a time."""
    return min(next_power(d, 32), 1024)


def width_of(d: int) -> int:
    """Return the features of a stored row."""
    return next_power(d, 32) if d <= CHUNK else ceil_div(d, CHUNK) * CHUNK


def bytes_a_row(d: int) -> int:
    """Return the bytes of a row and its numbers."""
    return width_of(d) + 12
