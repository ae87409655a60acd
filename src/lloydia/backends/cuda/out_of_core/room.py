"""How much of a GPU's memory rows take that do not fit: what is kept of each, and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt

from lloydia.backends.cuda.device_functions.run_state import LOW_DIM_FEATURES
from lloydia.backends.cuda.low_dim.run import SPARE
from lloydia.backends.cuda.rows.fp16_rows import padded
from lloydia.backends.cuda.rows.memory import WEIGHT, row_bytes
from lloydia.data.chunks.memory import spell
from lloydia.spelling import option

__all__ = ["Division", "Room"]

# Bytes of a block at most, as it comes, and its least rows.
LARGEST_BLOCK_BYTES, SMALLEST_BLOCK = 1 << 28, 1024

# What the bus carries, in bytes, while the host queues a block: what each one costs.
QUEUED = 1 << 24

# Blocks on their way: one is computed while another comes.
AT_ONCE = 2

# Bytes that are kept of a row: its label, and what seeding needs (the D to the nearest seed, which
# that is, what candidates would change) or a run (the D).
STATE = 20

# Bytes that each block has of its own, and for each feature; what measuring it takes at a time.
OWN, OWN_FEATURE, MEASURING = 1 << 14, 32, 1 << 26

# Bytes of a row that is listed in an iteration of half-precision copies; see :mod:`listed`.
LISTED = 48

# What torch's blocks of memory leave unused: a part of what is free, and at most so many bytes.
UNUSED, UNUSED_BYTES = 1 / 32, 1 << 26


@dataclass(frozen=True)
class Division:
    """What stays on a GPU: blocks, by number; the others are sent whenever they are needed.

    Attributes
    ----------
    rows, fp16_rows : set of int
        Whose rows stay, and of which only the half-precision copy does.
    left : int
        Bytes; below 0: too little for what has to be there.
    """

    rows: set[int]
    fp16_rows: set[int]
    left: int


@dataclass(frozen=True)
class Room:
    """The memory of a GPU and what is taken of it; :meth:`of` divides it.

    Attributes
    ----------
    free : int
        Bytes.
    rows, n_blocks : int
        Rows of a block, and how many there are.
    state, flow, unused : int
        Bytes: what is kept of rows; blocks on their way and what is made of one; of torch.
    """

    free: int
    rows: int
    n_blocks: int
    state: int
    flow: int
    unused: int

    @classmethod
    def of(
        cls, n: int, d: int, itemsize: int, weighted: bool, free: int, rows: int | None = None
    ) -> Room:
        """Divide what is free among n rows; `rows` are those of a block, if that is settled.

        With more memory for blocks on their way, F, there are fewer of them, in all of ``A / F``,
        and with less F more rows stay: the least bytes, ``QUEUED A / F + F``, are those of
        ``F = sqrt(QUEUED A)``.  At most half of what is there is taken: clusters want some.

        Raises
        ------
        MemoryError
            It is too little for two blocks and what is kept of all rows.
        """
        unused = int(UNUSED * free) + min(UNUSED_BYTES, free // 8)
        each = AT_ONCE * d * itemsize + row_bytes(d, padded(d))
        if itemsize == 8:  # what came narrow, widened
            each += d * itemsize
        if d > LOW_DIM_FEATURES:
            each += row_bytes(d, 0) + LISTED
        fixed = min(MEASURING, free // 16)
        if d <= LOW_DIM_FEATURES:
            fixed += 12 * SPARE
        resident = n * (STATE + WEIGHT * weighted) + unused + fixed
        if rows is None:
            best = min((free - resident) // 2, isqrt(QUEUED * n * each))
            most = min(best // each, LARGEST_BLOCK_BYTES // (d * itemsize))
            rows = min(max(most, SMALLEST_BLOCK), n)
        n_blocks = -(-n // rows)
        state = resident - fixed - unused + n_blocks * (OWN + OWN_FEATURE * d)
        flow = rows * each + fixed
        if state + flow + unused > free:
            raise MemoryError(
                f"{state + flow + unused:,} bytes of GPU memory are needed to send {n:,} rows in "
                f"blocks ({spell(state)} for what is kept of them, {spell(flow)} for blocks on "
                f"their way), and {free:,} are free: free some, or use {option('device', 'cpu')}."
            )
        return cls(free, rows, n_blocks, state, flow, unused)

    @property
    def left(self) -> int:
        """Bytes for rows that stay, and for clusters."""
        return self.free - self.state - self.flow - self.unused

    def divide(self, rows: Sequence[int], fp16_rows: Sequence[int], clusters: int) -> Division:
        """Decide which blocks stay beside clusters that take so many bytes.

        Half-precision copies of all blocks come first: of a block that has one, little is sent in
        an iteration.

        Parameters
        ----------
        rows, fp16_rows : sequence of int
            The bytes of each block, and of its copy; no `fp16_rows` where copies are of no use.
        """
        left = self.left - clusters
        found = Division(set(), set(), left)
        later = sum(fp16_rows)
        for p, size in enumerate(rows):
            half = fp16_rows[p] if fp16_rows else 0
            later -= half
            if size <= left - later:
                found.rows.add(p)
                left -= size
            elif 0 < half <= left:
                found.fp16_rows.add(p)
                left -= half
        return replace(found, left=left)
