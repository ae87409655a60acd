"""Blocks on disk in their computed type: decoded once, and read from disk in later passes."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lloydia.data.chunks.memory import spell
from lloydia.spelling import option

__all__ = ["Spill"]


class Spill:
    """A temporary file without a name, which is freed with this object or when the process ends.

    Parameters
    ----------
    folder : Path
    n_bytes : int
        The size of all blocks that will be written.

    Raises
    ------
    OSError
        If the folder cannot be written to, or has too little free space.
    """

    def __init__(self, folder: Path, n_bytes: int) -> None:
        self.folder = folder
        try:
            free = shutil.disk_usage(folder).free
        except OSError as error:
            raise self._refused(error) from None
        if n_bytes > free:
            raise OSError(
                f"{folder} has {spell(free)} free, and the rows that do not stay in memory take "
                f"{spell(n_bytes)}: name a folder of a larger disk as {option('spill')}."
            )
        try:
            self.file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - as long as this lives
        except OSError as error:
            raise self._refused(error) from None
        weakref.finalize(self, self.file.close)
        self.places: dict[int, int] = {}

    def __contains__(self, number: int) -> bool:
        return number in self.places

    def write(self, number: int, block: NDArray) -> None:
        """Write a block.

        Raises
        ------
        OSError
            If the block cannot be written, for instance because the disk is full.
        """
        place = self.file.seek(0, os.SEEK_END)
        try:
            # Not tofile, which does not report an incomplete write.
            rest = block.data.cast("B")
            while rest:
                rest = rest[self.file.write(rest) :]
        except OSError as error:
            raise self._refused(error) from None
        self.places[number] = place

    def _refused(self, error: OSError) -> OSError:
        why = (os.strerror(error.errno) if error.errno else str(error)).lower()
        return OSError(f"cannot write rows into {self.folder}: {why}.")

    def read(self, number: int, shape: tuple[int, int], dtype: np.dtype) -> NDArray:
        """Read a block that was written.

        Raises
        ------
        OSError
            If the block is incomplete.
        """
        block = np.empty(shape, dtype=dtype)
        self.file.seek(self.places[number])
        rest = block.data.cast("B")
        while rest:
            if not (count := self.file.readinto(rest)):
                raise OSError(f"rows that were written into {self.folder} cannot be read again.")
            rest = rest[count:]
        return block
