"""How tables in shared memory are laid out, and rows cut for them: see :mod:`table_sums`."""

from __future__ import annotations

from typing import NamedTuple

from lloydia.backends.cuda.runtime.launching import ceil_div

__all__ = ["WORDS", "Table", "Tiling"]

# Words that a table takes at most, of the 48 KiB of shared memory that a program may declare: what
# threads pass to each other takes the rest.
WORDS = 11520
# Clusters that a table has room for are a multiple of it, so that few kernels are compiled; or the
# most that fit, if those are fewer.
STEP = 32
# Words, a bank each.
BANKS = 32
# Bytes of shared memory that the driver takes for each program.
RESERVED = 1024


class Tiling(NamedTuple):
    """How the rows are cut.

    A tile has a number a thread at least: of a smaller one Triton gives several threads the same,
    and each would add it.

    Attributes
    ----------
    threads : int
        Of a program.
    resident, registers : int
        Programs a multiprocessor, and registers of a thread that leave room for as many.
    numbers : int
        Of a tile, that come to a thread, which moves them together.
    prefetch_depth : int
        Tiles that are on their way.
    """

    threads: int
    resident: int
    registers: int
    numbers: int
    prefetch_depth: int

    @staticmethod
    def choose(itemsize: int, vectors: bool) -> Tiling:
        """Return the threads and registers that were fastest on an H200, and what has room there.

        `vectors` is what :meth:`Table.of` takes.  The more threads share a table, the fewer tables
        there are to be added to memory.  More registers are needed where numbers come one by one.
        While a tile is added the next ones are loaded.
        """
        numbers = 2 if itemsize == 8 else 4
        if vectors:
            return Tiling(1024, 1, 64, numbers=numbers, prefetch_depth=2)
        return Tiling(256, 3, 80, numbers=numbers, prefetch_depth=3 if itemsize == 8 else 2)


class Table(NamedTuple):
    """The layout of a program's table, for clusters and a spare one, which nobody reads.

    It is for what fills the last tile, and loses what rows bring that were in no cluster.
    First come the lower words of the sums of a limb, then its upper words; then the next limb; at
    last what counts rows.  The sums of a cluster are as many as a row has columns, for each copy.

    Attributes
    ----------
    table_limbs : int
        Limbs: those that are mostly not 0.
    columns : int
        Of a row: those of a program.
    each : int
        Columns, side by side, of a row that come to a thread.
    copies : int
        Of the sums of each cluster.
    clusters : int
        That there is room for, the spare one among them.
    """

    table_limbs: int
    columns: int
    each: int
    copies: int
    clusters: int

    @staticmethod
    def of(k: int, itemsize: int, vectors: bool) -> Table | None:
        """Return that of k clusters of rows of a type, None if there is no room.

        `vectors` is whether Triton knows that rows begin at multiples of 16 bytes: a thread then
        loads several numbers at a time, else one.
        """
        table_limbs, columns, each = (2, 8, 2) if itemsize == 8 else (1, 16, 4)
        if not vectors:
            each = 1
        copies = BANKS // columns
        while copies:
            table = Table(table_limbs, columns, each, copies, ceil_div(k + 1, STEP) * STEP)
            most = WORDS // table.words_each
            if k < most:
                return table._replace(clusters=min(most, table.clusters))
            copies //= 2
        return None

    @property
    def words_each(self) -> int:
        """Words of a cluster: two a sum, and one that counts rows."""
        return 2 * self.table_limbs * self.columns * self.copies + 1

    @property
    def words(self) -> int:
        """Of all clusters."""
        return self.clusters * self.words_each

    @property
    def size(self) -> int:
        """Sums of a limb."""
        return self.clusters * self.columns * self.copies

    def shared(self, programs: int) -> int:
        """Return the bytes of shared memory that so many programs take."""
        return programs * (4 * self.words + RESERVED)
