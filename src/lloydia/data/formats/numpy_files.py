"""NumPy's files: what they declare is compared with the file and the memory before it is read."""

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

# A model or a checkpoint is written uncompressed; one that was compressed since is read as well,
# but none that declares many times its size.
TIMES, FEW = 16, 64_000_000

BY_BLOCKS = "save the array as .npy, which is read by blocks"
INDICES = {"indices", "indptr", "row", "col", "offsets"}
SPARSE_FORMATS = ("csr", "csc", "bsr", "coo", "dia")


class Header(NamedTuple):
    """What a .npy file declares."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"an array of shape {self.shape} of {self.dtype}"


def header_of(stream: BinaryIO, where: str) -> Header | None:
    """Read the header of a .npy file; None where it is no such file.

    Raises
    ------
    DataError
        It is damaged, or holds Python objects.
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
    # The third version differs from the second in the encoding of names alone.
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
        One that can be sought in.
    where : str
        What errors call it.
    ours : bool
        Whether it is to be an archive that Lloydia wrote, none of whose arrays declares many times
        what the file holds.

    Raises
    ------
    DataError
        The file is damaged, holds Python objects, or does not fit into memory.
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
        It is damaged, cut short, holds Python objects, or does not fit into memory.
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
    """The arrays of an .npz file, each read when it is asked for.

    Parameters
    ----------
    stream : binary file
        One that can be sought in.
    where : str
        What errors call it.

    Attributes
    ----------
    files : list of str
        Names of the arrays.

    Raises
    ------
    DataError
        It is damaged.
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
            There is none of that name.
        DataError
            It is damaged, holds Python objects, or does not fit into memory.
        """
        check_room(self.header(name).nbytes, f"{self.where}, {name}", BY_BLOCKS)
        try:
            with self.zip.open(self._members[name]) as member:
                return np.lib.format.read_array(member, allow_pickle=False)
        except DAMAGE:
            raise self._damaged() from None

    def header(self, name: str) -> Header:
        """Return what the header of an array declares.

        Raises
        ------
        KeyError
            There is none of that name.
        DataError
            It is damaged, holds Python objects, or declares more than there is.
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
            It does.
        """
        declared = 0
        for name, member in self._members.items():
            try:
                declared += self.header(name).nbytes
            except DataError:
                # Whoever reads it says what is wrong with it, and reads as much as this at most.
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
    """Return whether `data` is only the values of a sparse matrix, whose places are beside it."""
    names = set(archive.files)
    places = ({"indices", "indptr"}, {"row", "col"}, {"coords"})
    if "data" not in names or not any(found <= names for found in places):
        return False
    return len(archive.header("data").shape) == 1


def load_sparse(archive: Archive) -> Any:
    """Return the sparse matrix of an archive, in CSR format and checked.

    Raises
    ------
    DataError
        It is damaged, is no table of numbers, or does not fit into memory.
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
    # Once as it is stored, once by rows.
    check_room(2 * declared + 8 * lengths[0], where, "use fewer rows or columns")
    archive.stream.seek(0)
    try:
        matrix = sp.load_npz(archive.stream)
        if matrix.format in ("csr", "csc", "bsr"):
            # Indices beyond the shape would be read and written out of bounds.
            matrix.check_format(full_check=True)
        rows = matrix.tocsr()
        rows.sum_duplicates()
    except (*DAMAGE, IndexError):
        raise damaged from None
    return rows
