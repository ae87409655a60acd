"""Blocks of equal length from the pieces of a source: read ahead, checked, and partly kept."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lloydia.data.chunks.source import Chunks
from lloydia.data.chunks.spill import Spill
from lloydia.progress.stages import steps

__all__ = ["Reader", "mingled"]

# The number of rows of a block on whose order a mark depends.
SAMPLE = 256


class Reader:
    """A reader of a source's rows in blocks.

    In the first pass, the values of each block must be finite; in later passes, they must not have
    changed.

    Parameters
    ----------
    source : Chunks
    rows : int
        Rows per block.
    n_kept : int
        The number of blocks that stay in memory.
    spill : Path, optional
        A folder to which the other blocks are written in the first pass; later passes read them
        from there.

    Attributes
    ----------
    lengths : list of int
        The number of rows of each block.
    edges : ndarray
        The first row of each block, and the number of rows at the end.
    block_bytes : int
        The size of the largest block in bytes.
    kept : range
        The blocks that stay in memory after they have been read.
    """

    def __init__(
        self, source: Chunks, rows: int, n_kept: int = 0, spill: Path | None = None
    ) -> None:
        self.source, n = source, source.shape[0]
        self.edges = np.append(np.arange(0, n, rows), n)
        self.lengths = np.diff(self.edges).tolist()
        self.block_bytes = rows * source.shape[1] * source.dtype.itemsize
        self.kept = range(n_kept)
        self.cache: dict[int, NDArray] = {}
        self.marks: dict[int, tuple[int, int]] = {}
        self.stamp = source.stamp()
        row_bytes = source.shape[1] * source.dtype.itemsize
        n_bytes = max(n - n_kept * rows, 0) * row_bytes
        self.spill = None if spill is None else Spill(spill, n_bytes)

    def blocks(self, wanted: Iterable[int]) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """Yield some blocks with their numbers; the next block is read while one is in use.

        Raises
        ------
        DataError
            If a value is not finite, or the source has changed; the message names the place.
        """
        wanted = sorted(wanted)
        held, missing = ([i for i in wanted if (i in self.cache) == kept] for kept in (True, False))
        if not missing:
            yield from ((i, self.cache[i]) for i in held)
            return
        fresh = self._read(missing)
        with ThreadPoolExecutor(1, thread_name_prefix="lloydia-reader") as thread:
            ahead = thread.submit(next, fresh)
            for i in steps("blocks", mingled(held, missing)):
                if i in self.cache:
                    yield i, self.cache[i]
                    continue
                found = ahead.result()
                if i != missing[-1]:
                    ahead = thread.submit(next, fresh)
                if i in self.kept:
                    self.cache[i] = found
                yield i, found
        if self.source.stamp() != self.stamp:
            raise self.source.changed("its size or its modification time is another")

    def _read(self, wanted: list[int]) -> Iterator[NDArray[np.floating]]:
        """Read blocks of ascending numbers from the source."""
        source, at = self.source, -1
        rows: Iterator[NDArray] = iter(())
        rest = np.empty((0, source.shape[1]), dtype=source.raw)
        for i in wanted:
            start, stop = self.edges[i : i + 2].tolist()
            if self.spill is not None and i in self.spill:
                block = self.spill.read(i, (stop - start, source.shape[1]), source.dtype)
                self._check(i, block)
                yield block
                continue
            if at < 0 or self._apart(at + len(rest), start):
                at, rows, rest = start, source.rows_from(start), rest[:0]
            # `at` is where the rest begins.
            while at + len(rest) <= start:
                at, rest = at + len(rest), next(rows)
            at, rest = start, rest[start - at :]
            block = np.empty((stop - start, source.shape[1]), dtype=source.dtype)
            while at < stop:
                rest = rest if len(rest) else next(rows)
                some = rest[: stop - at]
                with np.errstate(over="ignore"):
                    block[at - start : at - start + len(some)] = some
                at, rest = at + len(some), rest[len(some) :]
            self._check(i, block)
            if stop == source.shape[0] and next(rows, None) is not None:
                raise source.changed(f"there are more rows than {stop:,}")
            if self.spill is not None and i not in self.kept:
                self.spill.write(i, block)
            yield block

    def _apart(self, at: int, start: int) -> bool:
        """Return whether jumping to `start` reads less than continuing at `at`."""
        here, there = np.searchsorted(self.source.edges, [at, start], side="right")
        return bool(here < there) and not self.source.in_order

    def _check(self, i: int, block: NDArray[np.floating]) -> None:
        mark = mark_of(block)
        if i in self.marks and self.marks[i] != mark:
            span = f"{self.edges[i] + 1:,} to {self.edges[i + 1]:,}"
            raise self.source.changed(f"rows {span} have other values than before")
        if i not in self.marks:
            with np.errstate(over="ignore", invalid="ignore"):
                sound = np.isfinite(block.sum(dtype=np.float64))
            if not sound and not (finite := np.isfinite(block)).all():
                row, j = (int(x) for x in np.argwhere(~finite)[0])
                raise self.source.refuse(int(self.edges[i]) + row, j, float(block[row, j]))
            self.marks[i] = mark
            if self.source.on_first_read is not None:
                self.source.on_first_read(block)


def mingled(held: list[int], missing: list[int]) -> list[int]:
    """Return the numbers of both lists merged evenly, so that reading never pauses for long."""
    places = [((j + 0.5) / len(one), i) for one in (held, missing) for j, i in enumerate(one)]
    return [i for _, i in sorted(places)]


def mark_of(block: NDArray[np.floating]) -> tuple[int, int]:
    """Return two numbers that almost certainly change when a value or the order of rows changes."""
    words = block.reshape(-1).view(np.uint32)
    few = np.ascontiguousarray(block[:: max(len(block) // SAMPLE, 1)])
    return int(words.sum(dtype=np.uint64)), zlib.crc32(few.data)
