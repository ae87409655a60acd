r"""Sums of rows that changed by matrix products, for few clusters of not many features.

A row's integers :math:`v_f` (a limb of :func:`lloydia.exact.sums.limbs`) are written in base 4096
with digits :math:`-2048 \le b_{fi} < 2048`: :math:`v_f = \sum_{i<q} 4096^i b_{fi}`, and float16
holds each.  With :math:`M_j` = 1 for the cluster that a row joins and -1 for the one it leaves,
:math:`M^T B` are sums of whole numbers below :math:`2^{24}`: matrix units add them in float32
without an error.  Rows come as they are listed, whatever their clusters, and a program adds to
memory once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.exact_numbers import SHIFT
from lloydia.backends.cuda.flow import HALT, N_CHANGED, first_row, own_flow, programs_each
from lloydia.backends.cuda.launching import EXACT, ceil_div, next_power, processors
from lloydia.backends.cuda.recording import launch
from lloydia.backends.cuda.sums import Lattice

__all__ = ["few_limbs", "few_sums", "queue_digits"]

# Sums whose digits the registers of a program hold; their limbs; columns of clusters, as many as
# matrix units take.
MOST_SUMS, FEW_LIMBS, LEAST_CLUSTERS = 1 << 11, 2, 64
# Bits of a digit, and what is added to it so that it is not negative.
BITS, HALF = tl.constexpr(12), tl.constexpr(2048)
# So many digits leave the first bits of a float64 number alone; HALF in each of four, and of three.
MOST_RAISED = tl.constexpr(4)
RAISE_FOUR, RAISE_THREE = tl.constexpr(0x800800800800), tl.constexpr(0x800800800)
# Rows of a tile, and tiles of a program before sums may come to 2**24.
ROWS = tl.constexpr(128)
STEPS = tl.constexpr((2**24 - 1) // 2048 // 128)
# Programs a multiprocessor, and their warps; they have a tile each, or more.
RESIDENT, WARPS = 2, 4
# Float16 numbers as bits.
ONE, MINUS_ONE = tl.constexpr(0x3C00), tl.constexpr(0xBC00)
# The last bit of float32 numbers from here on is worth 1.
LARGE = tl.constexpr(1 << 23)
LARGE_BITS = tl.constexpr(0x4B000000)


def n_digits(bits: int) -> int:
    """Return how many digits the integers of magnitude ``2**bits`` have."""
    return ceil_div(bits + 2, BITS.value)


def few_sums(k: int, d: int) -> bool:
    """Return whether the sums of k clusters of d features are few enough."""
    return next_power(d, 16) * next_power(k, LEAST_CLUSTERS) <= MOST_SUMS


@triton.jit
def joined(columns, COUNT: tl.constexpr):
    """Return vectors as the columns of a matrix; there are COUNT, a power of two up to 64."""
    for level in tl.static_range(1, 7):
        if COUNT >> level > 0:
            before = columns
            columns = ()
            for i in tl.static_range(COUNT >> level):
                columns = columns + (tl.join(before[i], before[i + (COUNT >> level)]),)
    return columns[0]


def few_limbs(lattice: Lattice) -> bool:
    """Return whether the sums have few enough limbs, and weights of 1."""
    return lattice.grid.n_limbs <= FEW_LIMBS and lattice.weights is None


@triton.jit
def listed_tile(tile, changed_rows, changed_old, n_changed):
    """Return a tile's rows, the clusters that they leave, and which are there."""
    at = tile * ROWS + tl.arange(0, ROWS)
    there = at < n_changed
    rows = tl.load(changed_rows + at, mask=there, other=0)
    return rows, tl.load(changed_old + at, mask=there, other=-1), there


@triton.jit
def values(X, rows, there, d, labels, f):
    """Return rows and their labels."""
    at = rows.to(tl.int64)[:, None] * d + f[None, :]
    x = tl.load(X + at, mask=there[:, None] & (f < d)[None, :], other=0.0)
    return x, tl.load(labels + rows, mask=there, other=-1)


@triton.jit
def move_matrix(new, old, CLUSTERS: tl.constexpr):
    """Return 1 for the clusters that rows join, -1 for those that they leave: (ROWS, CLUSTERS)."""
    # Two clusters at a time, as the halves of an integer.
    joins = tl.full((ROWS,), ONE, tl.int32) << (16 * (new & 1))
    leaves = tl.full((ROWS,), MINUS_ONE, tl.int32) << (16 * (old & 1))
    pairs = ()
    for pair in tl.static_range(CLUSTERS // 2):
        both = tl.where(new >> 1 == pair, joins, 0) | tl.where(old >> 1 == pair, leaves, 0)
        pairs = pairs + (both,)
    both = joined(pairs, CLUSTERS // 2)
    halves = tl.join(both.to(tl.int16), (both >> 16).to(tl.int16))
    return halves.reshape(ROWS, CLUSTERS).to(tl.float16, bitcast=True)


@triton.jit
def digit_matrix(shifted, shift, DIGITS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr):
    """Return the digits of rows' integers: (ROWS, COLUMNS WIDTH).

    They are the last bits of `shifted`, a sum with what :func:`shift_of` returns.
    """
    u = shifted.to(tl.int64, bitcast=True)
    if DIGITS > MOST_RAISED:
        halves = tl.full((), 0, tl.int64)
        for _ in tl.static_range(DIGITS):
            halves = (halves << BITS) + HALF
        u += halves - shift.to(tl.int64, bitcast=True)
    columns = ()
    for i in tl.static_range(COLUMNS):
        digit = tl.zeros(u.shape, tl.float16)
        if i < DIGITS:
            large = ((u >> (BITS * i)).to(tl.int32) & (2 * HALF - 1)) | LARGE_BITS
            digit = (large.to(tl.float32, bitcast=True) - (LARGE + HALF)).to(tl.float16)
        columns = columns + (digit,)
    return joined(columns, COLUMNS).reshape(ROWS, COLUMNS * WIDTH)


@triton.jit
def shift_of(quantum, DIGITS: tl.constexpr):
    """Return numbers that round to a quantum, and raise each of a few digits by a half of 4096."""
    if DIGITS > MOST_RAISED:
        return quantum * SHIFT
    # The halves are even: ties are rounded as without them.
    if DIGITS == 4:
        return quantum * (SHIFT + RAISE_FOUR)
    return quantum * (SHIFT + RAISE_THREE)


@triton.jit
def add_totals(
    found, sums, k, d, COLUMNS: tl.constexpr, WIDTH: tl.constexpr, CLUSTERS: tl.constexpr
):
    """Add sums of digits, (CLUSTERS, COLUMNS WIDTH), to those of clusters."""
    i = (tl.arange(0, COLUMNS * WIDTH) % COLUMNS).to(tl.int64)
    # Columns beyond the digits are 0.
    parts = found.to(tl.int32).to(tl.int64) << tl.minimum(BITS * i, 63)[None, :]
    total = tl.sum(parts.reshape(CLUSTERS, WIDTH, COLUMNS), 2)
    j = tl.arange(0, CLUSTERS)[:, None]
    f = tl.arange(0, WIDTH)[None, :]
    mask = (j < k) & (f < d) & (total != 0)
    tl.atomic_add(sums + j * (d + 1) + f, total, mask=mask, sem="relaxed")


@triton.jit(do_not_specialize=["n", "k", "bits"])
def digit_kernel(
    X, n, d, lattice, labels, changed_rows, changed_old, flow, sums, k, bits,
    LIMBS: tl.constexpr, DIGITS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr,
    CLUSTERS: tl.constexpr,
):  # fmt: skip
    """Move the listed rows; programs beyond the tiles have nothing to do."""
    member = tl.program_id(2).to(tl.int64)
    flow = own_flow(flow)
    halted, n_changed = tl.load(flow + HALT), tl.load(flow + N_CHANGED)
    tiles = tl.cdiv(n_changed, ROWS)
    programs = tl.num_programs(0)
    if (halted != 0) | (tl.program_id(0) >= tiles):
        return
    # The listed numbers count the rows of all members.
    changed_rows += first_row(n)
    changed_old += first_row(n)
    lattice += member * 3 * (d + 1)
    sums += member * LIMBS * k * (d + 1)
    f = tl.arange(0, WIDTH)
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    kind: tl.constexpr = tl.float64 if double else tl.float32
    scale = tl.load(lattice + f, mask=f < d, other=1.0)[None, :]
    quantum = tl.load(lattice + d + 1 + f, mask=f < d, other=1.0)[None, :]
    if not double:
        # No float32 number is so small that its limbs would underflow.
        quantum = quantum / scale
        # Numbers of this magnitude are multiples of the quantum: they have 24 bits.
        least = (quantum * 8388608.0).to(tl.float32)
    shift = shift_of(quantum, DIGITS)
    finer = ((1023 - bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    for begin in range(tl.program_id(0), tiles, programs * STEPS):
        found = tl.zeros((CLUSTERS, COLUMNS * WIDTH), tl.float32)
        second = found
        count = tl.zeros((CLUSTERS, 16), tl.float32)
        # What is loaded is of the next tile, and of the one after it.
        rows, old, there = listed_tile(begin, changed_rows, changed_old, n_changed)
        x, new = values(X, rows, there, d, labels, f)
        moves = move_matrix(new, old, CLUSTERS)
        rows, old, there = listed_tile(begin + programs, changed_rows, changed_old, n_changed)
        end = tl.minimum(begin + programs * STEPS, tiles)
        for tile in tl.range(begin, end, programs, num_stages=1):
            next_x, next_new = values(X, rows, there, d, labels, f)
            next_old = old
            after = tile + 2 * programs
            rows, old, there = listed_tile(after, changed_rows, changed_old, n_changed)
            p = x.to(kind).to(tl.float64)
            if double:
                p *= scale
            shifted = p + shift
            digits = digit_matrix(shifted, shift, DIGITS, COLUMNS, WIDTH)
            found = tl.dot(tl.trans(moves), digits, found)
            count = tl.dot(tl.trans(moves), tl.full((ROWS, 16), 1.0, tl.float16), count)
            if LIMBS > 1:
                left = double
                if not double:
                    size = tl.abs(x.to(kind))
                    some = (size < least) & (size != 0.0)
                    left = tl.max(tl.max(some.to(tl.int32), 1), 0) != 0
                if left:
                    rest = p - (shifted - shift) + shift * finer
                    digits = digit_matrix(rest, shift * finer, DIGITS, COLUMNS, WIDTH)
                    second = tl.dot(tl.trans(moves), digits, second)
            x = next_x
            # Carried from tile to tile, so that matrix units read them from shared memory.
            moves = move_matrix(next_new, next_old, CLUSTERS)
        add_totals(found, sums, k, d, COLUMNS, WIDTH, CLUSTERS)
        if LIMBS > 1:
            add_totals(second, sums + k * (d + 1), k, d, COLUMNS, WIDTH, CLUSTERS)
        j = tl.arange(0, CLUSTERS)
        weight = tl.max(count.to(tl.int32), 1).to(tl.int64) << bits
        mask = (j < k) & (weight != 0)
        tl.atomic_add(sums + j * (d + 1) + d, weight, mask=mask, sem="relaxed")


def queue_digits(
    X: torch.Tensor, lattice: Lattice, labels: torch.Tensor, changed_rows: torch.Tensor,
    changed_old: torch.Tensor, flow: torch.Tensor, sums: torch.Tensor,
) -> None:  # fmt: skip
    """Queue the moves of listed rows, where :func:`few_sums` and :func:`few_limbs` allow it.

    Parameters
    ----------
    X : tensor of shape (n, d), or (members, n, d) of a batch
    lattice : Lattice
    labels : int32 tensor of shape (members n,)
    changed_rows, changed_old : int32 tensors of shape (members n,)
        As many rows, and their old labels, as ``flow[N_CHANGED]`` says.
    flow : int32 tensor
    sums : int64 tensor of shape (members, n_limbs, k, d + 1)
    """
    members, n_limbs, k, m = sums.shape
    n, bits = X.shape[-2], lattice.grid.bits
    programs = min(programs_each(RESIDENT * processors(X.device), members), ceil_div(n, ROWS.value))
    launch(
        digit_kernel, (programs, 1, members),
        X, n, m - 1, lattice.columns, labels, changed_rows, changed_old, flow, sums, k, bits,
        LIMBS=n_limbs, DIGITS=n_digits(bits), COLUMNS=next_power(n_digits(bits)),
        WIDTH=next_power(m - 1, 16), CLUSTERS=next_power(k, LEAST_CLUSTERS), num_warps=WARPS,
        **EXACT,
    )  # fmt: skip
