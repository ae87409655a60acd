"""How tables in shared memory are laid out, and rows cut for them: see :mod:`table_sums`."""

from __future__ import annotations

from typing import NamedTuple

from lloydia.backends.cuda.launching import ceil_div

__all__ = ["WORDS", "Table", "Tiling"]

# Words that a table takes at most, of the 48 KiB of shared memory that a program may declare:
# Triton needs the rest.  Smaller ones are a multiple of STEP, so that few kernels are compiled.
WORDS, STEP = 11520, 1024
# Copies of the sums of few clusters: as many as a warp has rows at most, which then never meet.
COPIES = 8


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
    ahead : int
        Tiles that are on their way.
    """

    threads: int
    resident: int
    registers: int
    numbers: int
    ahead: int

    @staticmethod
    def choose(itemsize: int, d: int) -> Tiling:
        """Return the threads and registers that were fastest on an H200, and what has room there.

        The more threads share a table, the fewer tables there are to be added to memory.  More
        registers are needed where numbers take two, or Triton knows nothing of where rows begin.
        While a tile is added the next ones are loaded: two, where there are registers for three.
        """
        if itemsize == 8:
            return Tiling(256, 3, 80, numbers=2, ahead=3)
        if d % 16:
            return Tiling(256, 3, 80, numbers=4, ahead=2)
        return Tiling(1024, 1, 64, numbers=4, ahead=3)


class Table(NamedTuple):
    """The layout of a program's table: of k clusters, and a spare one for rows that are not there.

    Attributes
    ----------
    held : int
        Limbs: those that are mostly not 0.
    columns : int
        Of a row: those of a program.
    each : int
        Columns of a row that come to a thread where d is a multiple of 16; columns are laid out for
        that case.
    pitch : int
        Words from the sums of one copy to the next: more than columns, so that copies, and
        clusters, begin in different banks.
    copies : int
        Of the sums of each cluster.
    words : int
        All that is reserved.
    """

    held: int
    columns: int
    each: int
    pitch: int
    copies: int
    words: int

    @staticmethod
    def of(k: int, itemsize: int) -> Table | None:
        """Return that of k clusters of rows of a type, None if there is no room."""
        held, columns, each = (2, 8, 2) if itemsize == 8 else (1, 16, 4)
        for copies, padding in ((COPIES, columns // each), (1, columns // each), (1, 2)):
            pitch = columns + padding
            # Two words for a sum, and one that counts rows.  One more cluster than there are: rows
            # that are not there would all add their zeros to one that is busy.
            words = (k + 1) * (2 * held * pitch * copies + 1)
            if words <= WORDS:
                reserved = min(WORDS, ceil_div(words, STEP) * STEP)
                return Table(held, columns, each, pitch, copies, reserved)
        return None
