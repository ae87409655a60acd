"""NumPy files; their declared sizes are compared with the file and the memory before reading."""

from __future__ import annotations

import io
import math
import zipfile
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.data.columns import DataError
from lloydia.data.formats.damage import DAMAGE
from lloydia.data.formats.room import check_room

__all__ = [
    "Archive",
    "Header",
    "is_part_of_sparse",
    "is_sparse",
    "load_array",
    "load_numpy",
    "load_sparse",
]

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 65_535

# Lloydia writes models and checkpoints uncompressed.  A file that was compressed later is read as
# well, unless it declares many times its size.
TIMES, FEW = 16, 64_000_000

BY_BLOCKS = "save the array as .npy, which is read by blocks"
INDICES = {"indices", "indptr", "row", "col", "offsets"}
SPARSE_FORMATS = ("csr", "csc", "bsr", "coo", "dia")


class Header(NamedTuple):
    """The shape and the type that a .npy file declares."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        """The size of the array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"an array of shape {self.shape} of {self.dtype}"


def header_of(stream: BinaryIO, where: str) -> Header | None:
    """Read the header of a .npy file; return None for another file.

    Raises
    ------
    DataError
        If the file is damaged, or holds Python objects.
    """
    start = stream.read(8)
    if start[:6] != MAGIC or len(start) < 8:
        return None
    first = start[6] == 1
    told = stream.read(2 if first else 4)
    length = int.from_bytes(told, "little")
    damaged = DataError(f"{where} is damaged or not a NumPy file.")
    if length > LONGEST_HEADER:
        raise damaged
    told += stream.read(length)
    lib = np.lib.format
    # The third version differs from the second only in the encoding of names.
    read = lib.read_array_header_1_0 if first else lib.read_array_header_2_0
    try:
        shape, _, dtype = read(io.BytesIO(told))
    except DAMAGE:
        raise damaged from None
    if dtype.hasobject:
        raise DataError(f"{where} holds Python objects; save it as numbers.")
    return Header(tuple(int(length) for length in shape), dtype)


def load_numpy(stream: BinaryIO, where: str, *, ours: bool = False) -> NDArray[Any] | Archive:
    """Load a .npy file without pickle, or open an .npz file.

    Parameters
    ----------
    stream : binary file
        A seekable file.
    where : str
        The name of the file in errors.
    ours : bool
        Whether the file should be an archive that Lloydia wrote; then its arrays must not declare
        many times the size of the file.

    Raises
    ------
    DataError
        If the file is damaged, holds Python objects, or does not fit into memory.
    """
    place = stream.tell()
    start = stream.read(2)
    stream.seek(place)
    if start != b"PK":
        return load_array(stream, where)
    archive = Archive(stream, where)
    if ours:
        archive.check_size()
    return archive


def load_array(stream: BinaryIO, where: str) -> NDArray[Any]:
    """Load a .npy file without pickle.

    Raises
    ------
    DataError
        If the file is damaged, is cut short, holds Python objects, or does not fit into memory.
    """
    place = stream.tell()
    size = stream.seek(0, io.SEEK_END) - place
    stream.seek(place)
    header = header_of(stream, where)
    if header is None:
        raise DataError(f"{where} is damaged or not a NumPy file.")
    left = size - (stream.tell() - place)
    if header.nbytes > left:
        raise DataError(
            f"{where} is cut short: it declares {header}, {header.nbytes:,} bytes, and holds "
            f"{max(left, 0):,}."
        )
    check_room(header.nbytes, where, "read it by blocks, or free memory")
    stream.seek(place)
    try:
        return np.load(stream, allow_pickle=False)
    except DAMAGE:
        raise DataError(f"{where} is damaged or not a NumPy file.") from None


class Archive:
    """The arrays of an .npz file, each read on access.

    Parameters
    ----------
    stream : binary file
        A seekable file.
    where : str
        The name of the file in errors.

    Attributes
    ----------
    files : list of str
        Names of the arrays.

    Raises
    ------
    DataError
        If the file is damaged.
    """

    def __init__(self, stream: BinaryIO, where: str) -> None:
        self.stream, self.where = stream, where
        self.size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        try:
            self.zip = zipfile.ZipFile(stream)
            names = self.zip.namelist()
        except DAMAGE:
            raise self._damaged() from None
        self.files = [name.removesuffix(".npy") for name in names]
        self._members = dict(zip(self.files, names))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Read an array.

        Raises
        ------
        KeyError
            If there is no array with that name.
        DataError
            If the array is damaged, holds Python objects, or does not fit into memory.
        """
        check_room(self.header(name).nbytes, f"{self.where}, {name}", BY_BLOCKS)
        try:
            with self.zip.open(self._members[name]) as member:
                return np.lib.format.read_array(member, allow_pickle=False)
        except DAMAGE:
            raise self._damaged() from None

    def header(self, name: str) -> Header:
        """Return the header of an array.

        Raises
        ------
        KeyError
            If there is no array with that name.
        DataError
            If the array is damaged, holds Python objects, or is shorter than declared.
        """
        member = self._members[name]
        try:
            with self.zip.open(member) as opened:
                header = header_of(opened, f"{self.where}, {name}")  # type: ignore[arg-type]
        except DataError:
            raise
        except DAMAGE:
            raise self._damaged() from None
        if header is None or header.nbytes > self.zip.getinfo(member).file_size:
            raise self._damaged()
        return header

    def check_size(self) -> None:
        """Refuse an archive that declares many times its own size.

        Raises
        ------
        DataError
            If it does.
        """
        declared = 0
        for name, member in self._members.items():
            try:
                declared += self.header(name).nbytes
            except DataError:
                # Reading this array raises the error, and reads at most its size in the file.
                declared += self.zip.getinfo(member).file_size
        if declared > TIMES * self.size + FEW:
            raise DataError(
                f"{self.where} is damaged: its arrays declare {declared:,} bytes, and it has "
                f"{self.size:,}."
            )

    def _damaged(self) -> DataError:
        return DataError(f"{self.where} is damaged or not a NumPy file.")


def is_sparse(archive: Archive) -> bool:
    """Return whether an archive is a matrix that :func:`scipy.sparse.save_npz` wrote."""
    if not {"format", "shape", "data"} <= set(archive.files):
        return False
    header = archive.header("format")
    if header.shape != () or header.dtype.kind not in "SU" or header.dtype.itemsize > 100:
        return False
    name = archive["format"].item()
    return (name.decode("latin-1") if isinstance(name, bytes) else name) in SPARSE_FORMATS


def is_part_of_sparse(archive: Archive) -> bool:
    """Return whether `data` holds values of a sparse matrix whose indices are in other arrays."""
    names = set(archive.files)
    places = ({"indices", "indptr"}, {"row", "col"}, {"coords"})
    if "data" not in names or not any(found <= names for found in places):
        return False
    return len(archive.header("data").shape) == 1


def load_sparse(archive: Archive) -> Any:
    """Return the sparse matrix of an archive, checked and in CSR format.

    Raises
    ------
    DataError
        If the matrix is damaged, is not a table of numbers, or does not fit into memory.
    """
    where = archive.where
    damaged = DataError(f"{where} is a damaged sparse matrix; save it again.")
    kind, shape = archive.header("data"), archive.header("shape")
    if kind.dtype.kind not in "fiub":
        raise DataError(f"{where} holds {kind.dtype}, not real numbers.")
    if shape.dtype.kind not in "iu" or len(shape.shape) != 1 or shape.shape[0] > 32:
        raise damaged
    lengths = tuple(int(length) for length in archive["shape"])
    if len(lengths) != 2:
        raise DataError(f"{where} holds an array of shape {lengths}; a table has two dimensions.")
    if min(lengths) < 0:
        raise damaged
    if any(archive.header(name).dtype.kind not in "iu" for name in INDICES & set(archive.files)):
        raise damaged
    declared = sum(archive.header(name).nbytes for name in archive.files)
    # The matrix is in memory twice: in its stored format, and in CSR.
    check_room(2 * declared + 8 * lengths[0], where, "use fewer rows or columns")
    archive.stream.seek(0)
    try:
        matrix = sp.load_npz(archive.stream)
        if matrix.format in ("csr", "csc", "bsr"):
            # Indices beyond the shape would cause reads and writes out of bounds.
            matrix.check_format(full_check=True)
        rows = matrix.tocsr()
        rows.sum_duplicates()
    except (*DAMAGE, IndexError):
        raise damaged from None
    return rows
