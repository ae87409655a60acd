"""Tables from text, NumPy, Parquet and Arrow files, as one array of finite floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.data.columns import Columns, DataError, choose
from lloydia.data.formats.arrow_files import EXTENSIONS as ARROW
from lloydia.data.formats.arrow_files import read_arrow
from lloydia.data.formats.numpy_files import (
    Archive,
    is_part_of_sparse,
    is_sparse,
    load_numpy,
    load_sparse,
)
from lloydia.data.formats.opening import (
    STANDARD_INPUT,
    followed,
    open_input,
    refuse_other_kinds,
    text_of,
)
from lloydia.data.formats.parquet import read_parquet
from lloydia.data.formats.room import check_room
from lloydia.data.numbers import Grammar
from lloydia.data.precision import stored_type
from lloydia.data.proposals import warn_of_unnamed
from lloydia.data.text import TextForm, check_finite, read_pairs, read_text
from lloydia.spelling import option

__all__ = ["Table", "as_floats", "check_squares", "read_table"]

FEWER = "choose fewer rows or columns"


@dataclass(frozen=True)
class Table:
    """A numeric table.

    Parameters
    ----------
    X : ndarray or CSR matrix of float32 or float64, shape (n, d)
        Finite numbers, C-contiguous.
    columns : Columns
        The d columns: their positions in the file, and their names if it has a header.
    where : str
        The name of the table in errors.
    """

    X: Any
    columns: Columns
    where: str

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the d columns, or None if the file has no header."""
        return self.columns.names

    def dense(self) -> Table:
        """Return the table as a dense array.

        Raises
        ------
        DataError
            If the dense array does not fit into memory.
        """
        if not sp.issparse(self.X):
            return self
        n, d = self.X.shape
        check_room(n * d * self.X.dtype.itemsize, f"{self.where}, with its zeros,", FEWER)
        return Table(self.X.toarray(order="C"), self.columns, self.where)


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
    sparse: bool = False,
    id_column: str | None = None,
) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : str or Path
        A .npy, .npz (with one array, one named X or data, or a sparse matrix of SciPy), .parquet,
        .feather or .arrow file; "-" for standard input, whose format is detected by its first
        bytes; or a text file with any other name, which may end in .gz, .bz2, .xz or .zst.
    columns : str, sequence of str or None
        Columns to read: a text of names, numbers from 1 and ranges, such as ``"age,income,5-8"``,
        in which a name with a comma has double quotes; or a sequence of names.  None reads all
        columns.
    header : bool or None
        Whether the first row of a text is a header; None detects it.
    pairs : bool
        Whether to read all numbers, one after another, as points: x y x y.
    dtype : {"float32", "float64"} or None
        Type of the result.  None keeps float32 and float64, converts half precision to float32, and
        everything else to float64.
    decimal : {".", ","}
        The decimal mark of numbers in a text.
    thousands : {",", ".", " ", "'"} or None
        The mark between groups of three digits in a text.
    n_rows : int or None
        The expected number of rows of a file for which the user cannot set `header`.  It decides
        whether a first row of numbers in a text is a header.
    sparse : bool
        Whether to keep a sparse matrix sparse; otherwise it becomes dense.
    id_column : str or None
        Name or number of the column that holds the ids of rows, of any type; it is not a feature.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        If the file cannot be read or is not a table of finite numbers; the message says where.

    Warns
    -----
    UserWarning
        If it is not certain whether the first row of a text is a header, if its first column is
        left out because it holds names of rows, or if a column has no name under a header.

    Examples
    --------
    >>> from lloydia.data.files import read_table
    >>> table = read_table("iris.csv", columns="sepal,petal")  # doctest: +SKIP
    >>> table.X.shape, table.names  # doctest: +SKIP
    ((150, 2), ('sepal', 'petal'))
    """
    if pairs and (columns is not None or header is not None):
        raise DataError(
            f"{option('pairs', True)} reads a stream without columns; leave out "
            f"{option('columns')} and {option('header')}."
        )
    if id_column is not None and pairs:
        raise DataError(f"{option('pairs', True)} reads a stream without a column of ids.")
    form = TextForm(header, Grammar(decimal, thousands, n_rows is None), n_rows)
    where = "standard input" if str(path) in STANDARD_INPUT else str(path)
    with open_input(path) as (stream, suffix):
        if suffix in (".npy", ".npz"):
            refuse_other_kinds(stream, suffix, where, "a NumPy file")
            with followed(stream):
                raw, chosen = _arrays(stream, suffix, where, columns, pairs)
        elif suffix == ".parquet":
            refuse_other_kinds(stream, suffix, where, "a Parquet file")
            raw, chosen = read_parquet(stream, where, columns, id_column)
        elif suffix in ARROW:
            refuse_other_kinds(stream, ".arrow", where, "an Arrow file")
            raw, chosen = read_arrow(stream, where, columns, id_column)
        else:
            with followed(stream):
                stream, suffix = text_of(stream, suffix, where)
                if pairs:
                    raw, chosen = read_pairs(stream, where, form.grammar), Columns((0, 1), None)
                else:
                    raw, chosen = read_text(
                        stream, where, suffix=suffix, form=form, wanted=columns, id_column=id_column
                    )
    table = Table(as_floats(raw, dtype, chosen, where), chosen, where)
    if columns is None and n_rows is None:
        warn_of_unnamed(chosen, where)
    return table if sparse else table.dense()


def _arrays(
    stream: BinaryIO, suffix: str, where: str, wanted: str | Sequence[str] | None, pairs: bool
) -> tuple[NDArray[Any], Columns]:
    loaded = load_numpy(stream, where)
    if isinstance(loaded, np.ndarray) != (suffix == ".npy"):
        raise DataError(f"{where} is not a {suffix} file.")
    X = loaded if isinstance(loaded, np.ndarray) else _of_archive(loaded)
    if X.dtype.names is not None:
        raise DataError(
            f"{where} holds records with the fields {', '.join(map(repr, X.dtype.names))}; "
            "numpy.lib.recfunctions.structured_to_unstructured makes a table of them."
        )
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


def _of_archive(archive: Archive) -> Any:
    """Return an archive's sparse matrix, its only array, or its array named X or data."""
    if is_sparse(archive):
        return load_sparse(archive)
    names, where = archive.files, archive.where
    name = names[0] if len(names) == 1 else next((n for n in ("X", "data") if n in names), None)
    if is_part_of_sparse(archive):
        raise DataError(
            f"{where} holds the parts of a sparse matrix ({', '.join(names)}); save the matrix by "
            "scipy.sparse.save_npz."
        )
    if name is None and "header" in names:
        raise DataError(f"{where} is a model or a checkpoint of Lloydia, not a table; give data.")
    if name is None:
        listed = ", ".join(names) or "nothing"
        raise DataError(f"{where} holds {listed}; keep one array, or name one X or data.")
    return archive[name]


def _sparse_floats(raw: Any, dtype: np.dtype, columns: Columns, where: str) -> Any:
    """Return a sparse matrix in another type, and refuse numbers that are not finite in it."""
    with np.errstate(over="ignore"):
        X = raw.astype(dtype)
    if not np.isfinite(X.data).all():
        place = int(np.argmin(np.isfinite(X.data)))
        row, j = int(np.searchsorted(X.indptr, place, side="right")) - 1, int(X.indices[place])
        value = raw.data[place]
        what = f"{value:g}, too large for {dtype}" if np.isfinite(value) else f"{value:g}"
        raise DataError(
            f"{where}: row {row + 1}, {columns.label(j)} is {what}; remove the row, "
            "or choose other columns."
        )
    return X


def check_squares(table: Table, count: int) -> None:
    """Refuse a value so large that a sum of `count` squared distances could overflow float64.

    Raises
    ------
    DataError
        If there is one; the message names the row and the column of the largest value.
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
    """Return numbers in the type that :func:`read_table` returns, or raise its errors."""
    read_as = stored_type(raw.dtype, where)
    if 0 in raw.shape:
        raise DataError(f"{where} is empty: its shape is {raw.shape}.")
    dtype = read_as if dtype is None else dtype
    if sp.issparse(raw):
        return _sparse_floats(raw, np.dtype(dtype), columns, where)
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
