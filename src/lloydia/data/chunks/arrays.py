"""Arrays that are read by slices: .npy files, memory maps, Zarr and HDF5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrays import refuse_masked
from lloydia.data.chunks.source import Chunks
from lloydia.data.columns import DataError, choose
from lloydia.data.formats.damage import DAMAGE
from lloydia.data.formats.opening import reading_from
from lloydia.data.formats.stamps import stamp_of
from lloydia.imports import load

__all__ = ["NumpyFile", "Slices", "hdf5_dataset", "numpy_file", "zarr_array"]

# The approximate size of a slice in bytes.
SLICE = 4_000_000


class Slices(Chunks):
    """Any object with `shape` and `dtype` whose rows can be read by slices.

    Parameters
    ----------
    array : array-like of shape (n, d)
    wanted : str, sequence of str or None
        Columns.
    where : str
    path : Path, optional
        The file it is in.
    """

    def __init__(
        self,
        array: Any,
        wanted: str | Sequence[str] | None,
        where: str,
        path: Path | None = None,
    ) -> None:
        if len(array.shape) != 2:
            raise DataError(f"{where} has shape {tuple(array.shape)}; a table has two dimensions.")
        self.array, self.path = array, path
        n, width = (int(x) for x in array.shape)
        raw = np.dtype(array.dtype)
        # Slices consist of whole chunks of the array, so that each chunk is read once.
        own = getattr(array, "chunks", None)
        step = int(own[0]) if own else 1
        self.step = -(-max(SLICE // max(width * raw.itemsize, 1), 1) // step) * step
        self.every = wanted is None
        whole, rest = divmod(n, self.step)
        lengths = [self.step] * whole + [rest] * (rest > 0)
        super().__init__(where, raw, choose(None, width, wanted, where), lengths)

    @property
    def at_once(self) -> int:
        return min(self.step, self.shape[0])

    def stamp(self) -> object:
        if self.path is None or not self.path.is_file():
            return tuple(self.array.shape)
        return stamp_of([self.path])

    def read(self, piece: int) -> Iterator[tuple[int, NDArray[Any]]]:
        for i in range(piece, len(self.lengths)):
            start, stop = self.edges[i : i + 2].tolist()
            with reading_from(self.where):
                rows = self._chosen(np.asanyarray(self.array[start:stop]))
            refuse_masked(rows, f"{self.where}, rows from {start + 1:,} on: ")
            yield i, np.asarray(rows)

    def _chosen(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows if self.every else rows[:, self.columns.places]


class NumpyFile(Slices):
    """The rows of a .npy file, read as bytes: a memory map would count as memory of the process."""

    def __init__(self, mapped: np.memmap, wanted: str | Sequence[str] | None, path: Path) -> None:
        self.offset = mapped.offset
        super().__init__(mapped, wanted, str(path), path)

    def read(self, piece: int) -> Iterator[tuple[int, NDArray[Any]]]:
        width = self.array.shape[1]
        with reading_from(self.where), open(self.path, "rb") as stream:  # type: ignore[arg-type]
            stream.seek(self.offset + int(self.edges[piece]) * width * self.raw.itemsize)
            for i in range(piece, len(self.lengths)):
                rows = np.fromfile(stream, self.raw, self.lengths[i] * width)
                yield i, self._chosen(rows[: len(rows) // width * width].reshape(-1, width))


def numpy_file(path: Path, wanted: str | Sequence[str] | None) -> Chunks:
    """Open a .npy file.

    Raises
    ------
    DataError
        If it is damaged, or not a table.
    """
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGE:
        raise DataError(f"{path} is damaged or not a .npy file of numbers.") from None
    if mapped.ndim == 2 and mapped.flags.c_contiguous:
        return NumpyFile(mapped, wanted, path)
    return Slices(mapped, wanted, str(path), path)


def zarr_array(path: Path, wanted: str | Sequence[str] | None) -> Chunks:
    """Open a Zarr array, or the array of a group.

    Raises
    ------
    DataError
        If zarr is not installed, or if the array is damaged or missing.
    """
    zarr = _library("zarr", path)
    try:
        found = zarr.open(str(path), mode="r")
    except DAMAGE:
        raise DataError(f"{path} is damaged or no Zarr array.") from None
    if isinstance(found, zarr.Group):
        found = found[_only(sorted(found.array_keys()), path)]
    return Slices(found, wanted, str(path))


def hdf5_dataset(path: Path, wanted: str | Sequence[str] | None) -> Chunks:
    """Open the data set of an HDF5 file.

    Raises
    ------
    DataError
        If h5py is not installed, or if the file is damaged or has no such data set.
    """
    h5py = _library("h5py", path)
    try:
        file = h5py.File(path, "r")
    except OSError:
        raise DataError(f"{path} is damaged or not an HDF5 file.") from None
    names = sorted(name for name, held in file.items() if isinstance(held, h5py.Dataset))
    return Slices(file[_only(names, path)], wanted, str(path), path)


def _library(name: str, path: Path) -> Any:
    try:
        return load(name)
    except ModuleNotFoundError:
        raise DataError(f"{path} needs {name}; pip install {name}.") from None


def _only(names: Sequence[str], path: Path) -> str:
    """Return the name of the only array, or of the array named X or data."""
    name = names[0] if len(names) == 1 else next((n for n in ("X", "data") if n in names), None)
    if name is None:
        listed = ", ".join(names) or "no array"
        raise DataError(f"{path} holds {listed}; keep one array, or name one X or data.")
    return name
