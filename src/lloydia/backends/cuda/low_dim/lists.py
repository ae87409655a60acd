"""Lists of rows of few features, one for each warp: without gaps, so that all threads have work.

An entry is a row's features, or its number, and a name: the cluster to which it moves, and the one
that it leaves.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.runtime.launching import COMPILED

__all__ = ["WARP", "entry_size", "get", "places", "put"]

LANES, WARP = tl.constexpr(THREADS), tl.constexpr(32)
# The lower bits of names are the cluster to which a row moves, which has to be below 256; the
# others are the one that it leaves, or -1.
NAME_BITS, LOWER = tl.constexpr(8), tl.constexpr((1 << 8) - 1)


@triton.constexpr_function
def width_of(d, itemsize):
    """Return how many numbers of an entry a thread writes or reads at once: a power of two."""
    # At most 16 bytes.
    return min(1 << d.bit_length(), 16 // itemsize)


@triton.constexpr_function
def entry_size(d, itemsize):
    """Return the numbers of an entry: d features, a name, and what fills the last width."""
    width = width_of(d, itemsize)
    return (d + width) // width * width


@triton.constexpr_function
def place_asm(count):
    """Return the PTX of :func:`places` for so many vectors of rows.

    All ballots come first: each takes long, and none needs another.
    """
    each = range(count)
    rows, listed, below = count + 1, 2 * count + 1, 2 * count + 2
    lines = ["{", f".reg .pred there<{count}>;", f".reg .b32 all<{count}>, own<{count}>;"]
    lines += [f"setp.ne.s32 there{e}, ${rows + e}, 0;" for e in each]
    lines += [f"vote.sync.ballot.b32 all{e}, there{e}, -1;" for e in each]
    lines += [f"and.b32 own{e}, all{e}, ${below};" for e in each]
    lines += [f"popc.b32 own{e}, own{e};" for e in each]
    lines += [f"popc.b32 all{e}, all{e};" for e in each]
    for e in each:
        before = f"${count}" if e > 0 else f"${listed}"
        lines += [f"add.s32 ${e}, {before}, own{e};", f"add.s32 ${count}, {before}, all{e};"]
    return "\n".join([*lines, "}"])


@triton.constexpr_function
def operands_of(count):
    """Return the constraints of the operands of :func:`place_asm`."""
    return ",".join(["=&r"] * (count + 1) + ["r"] * (count + 2))


@triton.jit
def places(masks, n_listed):
    """Return the places of rows, one a thread, in the lists of warps, and how long these are then.

    `n_listed` is the same for all threads of a warp.
    """
    count: tl.constexpr = len(masks)
    lane = tl.arange(0, LANES) % WARP
    if COMPILED:
        some = ()
        for e in tl.static_range(count):
            some = some + (masks[e].to(tl.int32),)
        found = tl.inline_asm_elementwise(
            place_asm(count), operands_of(count), some + (n_listed, (1 << lane) - 1),
            dtype=(tl.int32,) * (count + 1), is_pure=True, pack=1,
        )  # fmt: skip
        at = ()
        for e in tl.static_range(count):
            at = at + (found[e],)
        return at, found[count]
    else:
        at = ()
        for e in tl.static_range(count):
            some = masks[e].to(tl.int32).reshape(LANES // WARP, WARP)
            at = at + (n_listed + (tl.cumsum(some, 1) - some).reshape(LANES),)
            n_listed += (tl.sum(some, 1)[:, None] + tl.zeros_like(some)).reshape(LANES)
        return at, n_listed


@triton.jit
def entries(lists, at, WIDTH: tl.constexpr, SIZE: tl.constexpr):
    """Return the addresses of the first WIDTH numbers of entries."""
    memory, room = lists
    own = memory + tl.arange(0, LANES) // WARP * (room * (WARP * SIZE))
    # A product that has 64 bits takes one operation.
    return (own + at.to(tl.int64) * SIZE)[:, None] + tl.arange(0, WIDTH)[None, :]


@triton.jit
def joined(parts):
    """Return vectors side by side: two or four."""
    if len(parts) == 2:
        return tl.join(parts[0], parts[1])
    else:
        even, odd = tl.join(parts[0], parts[2]), tl.join(parts[1], parts[3])
        return tl.join(even, odd).reshape(parts[0].shape[0], 4)


@triton.jit
def parted(block, WIDTH: tl.constexpr):
    """Return the vectors that :func:`joined` has joined."""
    if WIDTH == 2:
        return tl.split(block)
    else:
        even, odd = tl.split(block.reshape(block.shape[0], 2, 2))
        a, c = tl.split(even)
        b, d = tl.split(odd)
        return a, b, c, d


@triton.jit
def put(lists, at, x, old, new, mask, d: tl.constexpr):
    """Write rows, one a thread, as entries of their warps' lists: the features, and the name.

    `lists` are the program's memory, and the room of a list in entries for each thread.
    """
    kind: tl.constexpr = lists[0].dtype.element_ty
    itemsize: tl.constexpr = kind.primitive_bitwidth // 8
    WIDTH: tl.constexpr = width_of(d, itemsize)
    SIZE: tl.constexpr = entry_size(d, itemsize)
    name = (old << NAME_BITS) + new
    if kind == tl.float64:
        name = name.to(tl.int64)
    numbers = ()
    for f in tl.static_range(SIZE):
        if f < d:
            numbers = numbers + (x[f].to(kind),)
        else:
            numbers = numbers + (name.to(kind, bitcast=True),)
    to = entries(lists, at, WIDTH, SIZE)
    for first in tl.static_range(0, SIZE, WIDTH):
        here = ()
        for f in tl.static_range(WIDTH):
            here = here + (numbers[first + f],)
        tl.store(to + first, joined(here), mask=mask[:, None])


@triton.jit
def get(lists, i, n_listed, d: tl.constexpr):
    """Return the i-th listed row of each thread: features, old and new cluster, which are there."""
    kind: tl.constexpr = lists[0].dtype.element_ty
    itemsize: tl.constexpr = kind.primitive_bitwidth // 8
    WIDTH: tl.constexpr = width_of(d, itemsize)
    SIZE: tl.constexpr = entry_size(d, itemsize)
    at = i * WARP + tl.arange(0, LANES) % WARP
    there = at < n_listed
    source = entries(lists, at, WIDTH, SIZE)
    numbers = ()
    for first in tl.static_range(0, SIZE, WIDTH):
        here = tl.load(source + first, mask=there[:, None], other=0.0)
        numbers = numbers + parted(here, WIDTH)
    x = ()
    for f in tl.static_range(d):
        x = x + (numbers[f],)
    if kind == tl.float64:
        name = numbers[d].to(tl.int64, bitcast=True).to(tl.int32)
    else:
        name = numbers[d].to(tl.int32, bitcast=True)
    return x, name >> NAME_BITS, name & LOWER, there
