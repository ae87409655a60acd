"""The layout of tables in shared memory, and the tiling of rows for them: see :mod:`table_sums`."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["WORDS", "Table", "Tiling"]

# The most words of a table, of the 48 KiB of shared memory that a program may declare; the rest is
# for the exchange between threads.
WORDS = 11520
# Banks of shared memory, one word wide.
BANKS = 32
# Bytes of shared memory that the driver takes for each program.
RESERVED = 1024


class Tiling(NamedTuple):
    """How rows are tiled.

    A tile has at least one number for each thread: of a smaller tile Triton would give the same
    number to several threads, and each would add it.

    Attributes
    ----------
    threads : int
        Threads of a program.
    resident, registers : int
        Programs on a multiprocessor, and the registers of a thread that this allows.
    numbers : int
        Numbers of a tile for each thread, which adds them at once.
    prefetch_depth : int
        Tiles that are prefetched.
    """

    threads: int
    resident: int
    registers: int
    numbers: int
    prefetch_depth: int

    @staticmethod
    def choose(itemsize: int, vectors: bool) -> Tiling:
        """Return the fastest tiling measured on an H200.

        `vectors` is as in :meth:`Table.of`.  The more threads share a table, the fewer tables are
        added to global memory.  Loads of single numbers need more registers.
        """
        numbers = 2 if itemsize == 8 else 4
        if vectors:
            return Tiling(1024, 1, 64, numbers=numbers, prefetch_depth=2)
        return Tiling(256, 3, 80, numbers=numbers, prefetch_depth=3 if itemsize == 8 else 2)


class Table(NamedTuple):
    """The layout of a program's table, for all clusters and a spare one, which is never read.

    The spare cluster takes the padding of the last tile, and rows that were in no cluster are
    subtracted from it.  The table has, for each limb, the lower words of its sums, then the upper
    words; at the end are the row counts.  Each copy of a cluster's sums has one sum for each
    column.

    A table takes the same memory for any k that it has room for, so that few kernels are compiled.

    Attributes
    ----------
    table_limbs : int
        Limbs in the table: those that are mostly not 0.
    columns : int
        Columns of a row that a program adds.
    each : int
        Neighbouring columns of a row for each thread.
    copies : int
        Copies of the sums of each cluster.
    """

    table_limbs: int
    columns: int
    each: int
    copies: int

    @staticmethod
    def of(k: int, itemsize: int, vectors: bool) -> Table | None:
        """Return the table for k clusters and rows of this item size; None if there is no room.

        `vectors` is whether Triton knows that rows begin at multiples of 16 bytes: then a thread
        loads several numbers at once.
        """
        table_limbs, columns, each = (2, 8, 2) if itemsize == 8 else (1, 16, 4)
        if not vectors:
            each = 1
        copies = BANKS // columns
        while copies:
            table = Table(table_limbs, columns, each, copies)
            if k < table.clusters:
                return table
            copies //= 2
        return None

    @property
    def words_each(self) -> int:
        """Words of a cluster: two for each sum, and one row count."""
        return 2 * self.table_limbs * self.columns * self.copies + 1

    @property
    def clusters(self) -> int:
        """Clusters that there is room for, the spare one included."""
        return WORDS // self.words_each

    @property
    def words(self) -> int:
        """Words of the table."""
        return self.clusters * self.words_each

    @property
    def size(self) -> int:
        """The number of sums of one limb."""
        return self.clusters * self.columns * self.copies

    def shared(self, programs: int) -> int:
        """Return the bytes of shared memory that this many programs take."""
        return programs * (4 * self.words + RESERVED)
