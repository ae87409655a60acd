"""The division of a GPU's memory for rows that do not fit: the state of all rows, and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt

from lloydia.backends.cuda.low_dim.run import SPARE
from lloydia.backends.cuda.rows.fp16_rows import padded
from lloydia.backends.cuda.rows.memory import WEIGHT
from lloydia.backends.cuda.run_kinds import LOW_DIM, run_kind
from lloydia.data.chunks.memory import spell
from lloydia.spelling import option

__all__ = ["Division", "Room"]

# The most bytes of a block that is sent, and its fewest rows.
LARGEST_BLOCK_BYTES, SMALLEST_BLOCK = 1 << 28, 1024

# The bytes that the bus sends while the host queues one block: the overhead of a block.
QUEUED = 1 << 24

# Blocks in flight: one is computed while another arrives.
AT_ONCE = 2

# Bytes that are kept of a row: its label, and what seeding needs (the D to the nearest seed, which
# that is, what candidates would change) or a run (the D).
STATE = 20

# Bytes that each block has of its own, and for each feature; what measuring it takes at a time.
OWN, OWN_FEATURE, MEASURING = 1 << 14, 32, 1 << 26

# Bytes of a row that is listed in an iteration of half-precision copies; see :mod:`listed`.
LISTED = 48

# The memory that torch's allocator leaves unused: a fraction of the free memory, and its maximum.
UNUSED, UNUSED_BYTES = 1 / 32, 1 << 26


@dataclass(frozen=True)
class Division:
    """What stays on a GPU: blocks, by number; the other blocks are sent whenever they are needed.

    Attributes
    ----------
    rows, fp16_rows : set of int
        Blocks whose rows stay, and blocks of which only the half-precision copy stays.
    left : int
        The bytes that remain; below 0 the memory does not suffice.
    """

    rows: set[int]
    fp16_rows: set[int]
    left: int


@dataclass(frozen=True)
class Room:
    """The free memory of a GPU and its use; :meth:`of` divides it.

    Attributes
    ----------
    free : int
        Bytes.
    rows, n_blocks : int
        Rows of a block, and the number of blocks.
    state, in_flight, unused : int
        Bytes of the state of rows; of blocks in flight and their copy; unused by torch.
    """

    free: int
    rows: int
    n_blocks: int
    state: int
    in_flight: int
    unused: int

    @classmethod
    def of(
        cls, n: int, d: int, itemsize: int, weighted: bool, free: int, rows: int | None = None
    ) -> Room:
        """Divide what is free among n rows; `rows` are those of a block, if that is settled.

        With more memory for blocks on their way, F, there are fewer of them, in all of ``A / F``,
        and with less F more rows stay: the least bytes, ``QUEUED A / F + F``, are those of
        ``F = sqrt(QUEUED A)``.  At most half of what is there is taken, since clusters need some.

        Raises
        ------
        MemoryError
            There is too little memory for two blocks and the state of all rows.
        """
        kind = run_kind(d)
        unused = int(UNUSED * free) + min(UNUSED_BYTES, free // 8)
        each = AT_ONCE * d * itemsize + kind.row_bytes(padded(d))
        if itemsize == 8:  # rows that were sent in a narrower type are converted
            each += d * itemsize
        if kind.stores_fp16:
            each += kind.row_bytes(0) + LISTED
        fixed = min(MEASURING, free // 16)
        if kind is LOW_DIM:
            fixed += 16 * SPARE
        resident = n * (STATE + WEIGHT * weighted) + unused + fixed
        if rows is None:
            best = min((free - resident) // 2, isqrt(QUEUED * n * each))
            most = min(best // each, LARGEST_BLOCK_BYTES // (d * itemsize))
            rows = min(max(most, SMALLEST_BLOCK), n)
        n_blocks = -(-n // rows)
        state = resident - fixed - unused + n_blocks * (OWN + OWN_FEATURE * d)
        in_flight = rows * each + fixed
        if state + in_flight + unused > free:
            raise MemoryError(
                f"{state + in_flight + unused:,} bytes of GPU memory are needed to send {n:,} rows "
                f"in blocks ({spell(state)} for what is kept of them, {spell(in_flight)} for "
                f"blocks on their way), and {free:,} are free: free some, or use "
                f"{option('device', 'cpu')}."
            )
        return cls(free, rows, n_blocks, state, in_flight, unused)

    @property
    def left(self) -> int:
        """Bytes for rows that stay, and for clusters."""
        return self.free - self.state - self.in_flight - self.unused

    def divide(self, rows: Sequence[int], fp16_rows: Sequence[int], clusters: int) -> Division:
        """Decide which blocks stay, beside clusters that take this many bytes.

        Half-precision copies of all blocks come first: for a block that has one, little is sent in
        an iteration.

        Parameters
        ----------
        rows, fp16_rows : sequence of int
            The bytes of each block, and of its copy; `fp16_rows` is empty where copies do not help.
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
