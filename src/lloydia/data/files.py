"""Tables from text, .npy, .npz, Parquet and standard input, as one array of finite floats."""

from __future__ import annotations

import io
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrow import features_of
from lloydia.data.columns import Columns, DataError, choose
from lloydia.data.numbers import Grammar
from lloydia.data.precision import stored_type
from lloydia.data.text import TextForm, check_finite, read_pairs, read_text
from lloydia.spelling import option

# A Path spells the second with the separators of its system.
STANDARD_INPUT = ("-", "/dev/stdin", str(Path("/dev/stdin")))
# What NumPy and zipfile raise on bytes that are no sound file.
DAMAGE = (
    *(ValueError, TypeError, KeyError, EOFError, OSError, OverflowError, SyntaxError),
    *(NotImplementedError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error),
)
_MAGIC = {b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"PAR1": ".parquet"}
_NO_TEXT = {
    b"\x1f\x8b": "compressed by gzip, not text; decompress it first",
    b"PK\x03\x04": "a zip archive, not text; name it .npz if NumPy wrote it, else extract it",
    b"\x93NUMPY": "a NumPy array, not text; name it .npy",
    b"PAR1": "a Parquet file, not text; name it .parquet",
    b"\xff\xd8\xff": "a JPEG picture, not text; lloydia segment and quantize take pictures",
    b"\x89PNG": "a PNG picture, not text; lloydia segment and quantize take pictures",
}


@dataclass(frozen=True)
class Table:
    """A numeric table.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d)
        Finite numbers, C-contiguous.
    columns : Columns
        The d columns: their places in the file, and their names where it has a header.
    where : str
        What an error calls the table.
    """

    X: NDArray[np.floating]
    columns: Columns
    where: str

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the d columns, where the file has a header."""
        return self.columns.names


def read_table(
    path: str | Path,
    *,
    columns: str | Sequence[str] | None = None,
    header: bool | None = None,
    pairs: bool = False,
    dtype: str | np.dtype | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    n_rows: int | None = None,
) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : str or Path
        A .npy, .npz (one array, or one named X or data) or .parquet file, "-" for standard input
        (recognised by its first bytes), or a text file with any other name.
    columns : str, sequence of str or None
        Columns to read, as in `lloydia.data.columns.choose`; None reads all.
    header : bool or None
        Whether the first row of a text is a header; None finds out.
    pairs : bool
        Read a stream of numbers as consecutive x y.
    dtype : {"float32", "float64"} or None
        Type of the result. None keeps float32 and float64, reads half precision as float32, and
        everything else as float64.
    decimal : {".", ","}
        What divides the whole part of a number in a text from its fraction.
    thousands : {",", ".", " ", "'"} or None
        What divides groups of three digits in a text.
    n_rows : int or None
        How many rows there must be, where the user has no options for the file: it tells whether
        a first row of numbers in a text is a header.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        The file cannot be read or is not a table of finite numbers; one sentence says where.
    """
    if pairs and (columns is not None or header is not None):
        raise DataError(
            f"{option('pairs', True)} reads a stream without columns; leave out "
            f"{option('columns')} and {option('header')}."
        )
    form = TextForm(header, Grammar(decimal, thousands, n_rows is None), n_rows)
    where = "standard input" if str(path) in STANDARD_INPUT else str(path)
    with open_input(path) as (stream, suffix):
        if suffix in (".npy", ".npz"):
            raw, chosen = _arrays(stream, suffix, where, columns, pairs)
        elif suffix == ".parquet":
            raw, chosen = _parquet(stream, where, columns)
        else:
            stream = only_text(stream, where)
            if pairs:
                raw, chosen = read_pairs(stream, where, form.grammar), Columns((0, 1), None)
            else:
                raw, chosen = read_text(stream, where, suffix=suffix, form=form, wanted=columns)
    return Table(as_floats(raw, dtype, chosen, where), chosen, where)


@contextmanager
def open_input(path: str | Path) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file or standard input; yield the bytes and the extension that says how to read them.

    Raises
    ------
    DataError
        There is no such file, or it is a folder, or it cannot be read.
    """
    if str(path) in STANDARD_INPUT:
        if sys.stdin is None:
            raise DataError("standard input is closed; give a file.")
        data = sys.stdin.buffer.read()
        found = [kind for magic, kind in _MAGIC.items() if data.startswith(magic)]
        yield io.BytesIO(data), found[0] if found else ""
        return
    if not str(path):
        raise DataError("an empty file name; give a file.")
    path = Path(path)
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        raise DataError(f"no such file: {path}") from None
    except OSError as error:
        if path.is_dir():  # Windows calls that a lack of permission
            raise DataError(f"{path} is a folder, not a file.") from None
        raise DataError(f"cannot read {path}: {(error.strerror or 'unknown').lower()}.") from None
    with stream:
        yield stream, path.suffix.lower()


def only_text(stream: BinaryIO, where: str) -> BinaryIO:
    """Return the stream of a text, after a look at its first bytes.

    Raises
    ------
    DataError
        The first bytes are those of a file that is no text.
    """
    reader = io.BufferedReader(stream)  # type: ignore[type-var]
    start = reader.peek(8)[:8]
    for magic, what in _NO_TEXT.items():
        if start.startswith(magic):
            raise DataError(f"{where} is {what}.")
    return reader


def load_numpy(stream: BinaryIO, where: str) -> Any:
    """Load a .npy or .npz file without pickle.

    Raises
    ------
    DataError
        The file is damaged, or holds Python objects.
    """
    try:
        return np.load(stream, allow_pickle=False)
    except DAMAGE as error:
        if "allow_pickle" in str(error) and "Object arrays" in str(error):
            raise DataError(f"{where} holds Python objects; save it as numbers.") from None
        raise DataError(f"{where} is damaged or not a NumPy file.") from None


def _arrays(
    stream: BinaryIO, suffix: str, where: str, wanted: str | Sequence[str] | None, pairs: bool
) -> tuple[NDArray[Any], Columns]:
    loaded = load_numpy(stream, where)
    if isinstance(loaded, np.ndarray) != (suffix == ".npy"):
        raise DataError(f"{where} is not a {suffix} file.")
    X = loaded if isinstance(loaded, np.ndarray) else _only_array(loaded, where)
    if pairs:
        if X.ndim != 1 or X.size % 2:
            raise DataError(
                f"{where} holds an array of shape {X.shape}; "
                f"{option('pairs', True)} needs an even count of numbers in one dimension."
            )
        return X.reshape(-1, 2), Columns((0, 1), None)
    if X.ndim == 1:
        raise DataError(
            f"{where} holds an array of one dimension, shape {X.shape}; reshape(-1, 1) makes each "
            f"value a row, and {option('pairs', True)} reads it as x y x y."
        )
    if X.ndim != 2:
        raise DataError(f"{where} holds an array of shape {X.shape}; a table has two dimensions.")
    chosen = choose(None, X.shape[1], wanted, where)
    return (X if wanted is None else X[:, chosen.places]), chosen


def _only_array(archive: Any, where: str) -> NDArray[Any]:
    names = list(archive.files)
    name = names[0] if len(names) == 1 else next((n for n in ("X", "data") if n in names), None)
    if name is None:
        listed = ", ".join(names) or "nothing"
        raise DataError(f"{where} holds {listed}; keep one array, or name one X or data.")
    try:
        return archive[name]
    except DAMAGE:
        raise DataError(f"{where} is damaged, or {name} holds Python objects.") from None


def pyarrow_parquet(where: str) -> Any:
    """Return pyarrow.parquet.

    Raises
    ------
    DataError
        pyarrow is not installed.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        raise DataError(f"{where} needs pyarrow; pip install 'lloydia[files]'.") from None
    return parquet


def _parquet(
    stream: BinaryIO, where: str, wanted: str | Sequence[str] | None
) -> tuple[NDArray[Any], Columns]:
    parquet = pyarrow_parquet(where)
    import pyarrow as pa

    try:
        file = parquet.ParquetFile(stream)
        features = features_of(
            file.schema_arrow,
            wanted,
            where,
            lambda names: next(file.iter_batches(1, columns=names), None),
        )
        table = file.read(columns=features.names)
    except (pa.ArrowException, OSError):
        raise DataError(f"{where} is damaged or not a Parquet file.") from None
    return features.table_rows(table, where), features.columns


def check_squares(table: Table, count: int) -> None:
    """Refuse a value so large that `count` squared distances, added up, overflow float64.

    Raises
    ------
    DataError
        The sentence names the row and the column of the largest value.
    """
    from lloydia.exact.distance import largest_magnitude

    X = table.X
    limit = largest_magnitude(X.shape[1], count)
    if X.dtype != np.float64 or max(float(X.max()), -float(X.min())) <= limit:
        return
    row, j = divmod(int(np.abs(X).argmax()), X.shape[1])
    raise DataError(
        f"{table.where}: row {row + 1}, {table.columns.label(j)} is {X[row, j]:g}, and its squared "
        f"distances overflow float64 above {limit:.3g} here; rescale the data."
    )


def as_floats(
    raw: NDArray[Any], dtype: str | np.dtype | None, columns: Columns, where: str
) -> NDArray[np.floating]:
    """Return numbers as :func:`read_table` does, or raise as it does."""
    read_as = stored_type(raw.dtype, where)
    if 0 in raw.shape:
        raise DataError(f"{where} is empty: its shape is {raw.shape}.")
    dtype = read_as if dtype is None else dtype
    if raw.dtype.kind == "f":
        check_finite(raw, columns, where)
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(raw, dtype=dtype)
    if X.dtype.itemsize < raw.dtype.itemsize and not np.isfinite(X).all():
        row, j = (int(i) for i in np.argwhere(~np.isfinite(X))[0])
        raise DataError(
            f"{where}: row {row + 1}, {columns.label(j)} is {raw[row, j]:g}, too large for {dtype}."
        )
    return X
