"""The protocol of a source of rows: pieces in an order, read from any of them on."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from lloydia.data.chunks.memory import Plan, Purpose
from lloydia.data.columns import Columns, DataError
from lloydia.data.precision import stored_type
from lloydia.imports import load
from lloydia.spelling import option

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["Chunks"]

# Rows that a function is given to see how much it makes of them.
FEW = 1024


class Chunks(ABC):
    """A table of numbers that is read in pieces; :func:`lloydia.chunks` opens one.

    A subclass says what pieces there are, and reads them.

    Parameters
    ----------
    where : str
        What errors call the source.
    raw : numpy.dtype
        The type in which the numbers are stored.
    columns : Columns
        The columns that are read.
    lengths : sequence of int
        Rows of each piece.

    Attributes
    ----------
    dtype : numpy.dtype
        float32 (of half precision too) or float64 (of all else): as in memory.
    memory : int
        Bytes that the process may take.
    block : int or None
        Rows of a block, if that was given.
    spill : Path or None
        The folder that blocks are written to, if one was given.
    path : Path or None
        The file or folder, if it is one.
    """

    # Whether what comes before a piece is read too.
    in_order = False
    path: Path | None = None
    memory: int
    block: int | None
    spill: Path | None = None
    # Is called with each block when it is read the first time, in the thread that reads.
    on_first_read: Callable[[NDArray[np.floating]], object] | None = None

    def __init__(self, where: str, raw: np.dtype, columns: Columns, lengths: Sequence[int]) -> None:
        self.where, self.raw, self.columns = where, raw, columns
        self.dtype = stored_type(raw, where)
        self.lengths = lengths
        self.purpose = Purpose()

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<{type(self).__name__} {self.where}: {n:,} rows of {d} features, {self.dtype}>"

    @abstractmethod
    def read(self, piece: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Read from a piece on: give its number and rows, in any portions, in order."""

    @property
    @abstractmethod
    def at_once(self) -> int:
        """Rows that :meth:`read` gives at a time, at most."""

    @property
    def overhead(self) -> int:
        """Bytes that reading takes beside what :meth:`read` gives."""
        return 0

    def stamp(self) -> object:
        """Return something that differs once the source is written to, if that can be told."""
        return None

    def label(self, piece: int) -> str:
        """Return what an error calls a piece; empty if only the row matters."""
        return ""

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """Where the pieces begin, and the number of rows."""
        return np.cumsum([0, *self.lengths], dtype=np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.edges[-1]), len(self.columns.places)

    def astype(self, dtype: Any) -> Chunks:
        """Return the same rows in another type, float32 or float64."""
        other = copy.copy(self)
        other.dtype = stored_type(np.dtype(dtype), self.where)
        return other

    def meant_for(self, estimator: BaseEstimator, reset: bool, a_row: int = 0) -> Chunks:
        """Return the same rows for a fit of an estimator, or with ``reset=False`` for a prediction.

        It gets the number and the names of the features, or is compared with them.

        Parameters
        ----------
        estimator : KMeans or MiniBatchKMeans
        reset : bool
        a_row : int
            Bytes that the result takes, a row.

        Raises
        ------
        ValueError
            The features are not those of the fit.
        """
        names, fitted = self.columns.names, getattr(estimator, "feature_names_in_", None)
        if reset or names is None or fitted is None:
            some = np.empty((1, self.shape[1]))
            validate_data(estimator, some, reset=reset, skip_check_array=True)
        elif list(names) != fitted.tolist():
            raise ValueError(
                f"The feature names should match those of the fit, {', '.join(fitted)}, and are "
                f"{', '.join(names)}: choose them with {option('columns')}."
            )
        if reset and names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        other = copy.copy(self)
        if reset:
            init = estimator.init if isinstance(estimator.init, str) else "given"
            algorithm = getattr(estimator, "algorithm", "lloyd")
            other.purpose = Purpose(estimator.n_clusters, algorithm, init)
        else:
            other.purpose = Purpose(len(estimator.cluster_centers_), a_row=a_row)
        return other

    def block_by_block(self) -> Chunks:
        """Return the same rows for what is done with a block at a time, and keeps nothing of it."""
        other = copy.copy(self)
        other.purpose = Purpose(keeps=False)
        return other

    def plan(self, weighted: bool, n_threads: int | None) -> Plan:
        """Return how the rows will be held, and what that takes.

        Parameters
        ----------
        weighted : bool
        n_threads : int or None
            None: as many as this process may use.

        Raises
        ------
        MemoryError
            `memory` is too small; the sentence names what is needed.
        """
        n_threads = load("lloydia.backends.cpu.runtime.pool").threads_of(n_threads)
        return Plan.of(self, self.purpose, weighted, n_threads)

    def rows_from(self, start: int) -> Iterator[NDArray[Any]]:
        """Read all rows from one on, as they are stored, in arrays of any length.

        Raises
        ------
        DataError
            A piece has another width or type, or another number of rows than it had.
        """
        edges = self.edges
        first = int(np.searchsorted(edges, start, side="right")) - 1
        at = int(edges[first])
        for piece, given in self.read(first):
            rows = self._checked(given, piece)
            if len(rows) == 0:
                continue
            if not edges[piece] <= at <= at + len(rows) <= edges[piece + 1]:
                raise self.changed(
                    f"{self.label(piece) or 'it'} has another number of rows than at first"
                )
            at += len(rows)
            yield rows[max(len(rows) - (at - start), 0) :]
        if at < edges[-1]:
            raise self.changed(f"it has {at:,} rows, and had {edges[-1]:,} at first")

    def _checked(self, given: NDArray[Any], piece: int) -> NDArray[Any]:
        """Return the chosen columns of a piece, if it is like the first."""
        what = f"{self.where}: {self.label(piece) or f'what follows row {self.edges[piece]:,}'}"
        if given.ndim != 2:
            raise DataError(f"{what} has shape {given.shape}; rows have two dimensions.")
        if len(given) == 0:
            return given
        d = self.shape[1]
        if given.shape[1] != d:
            raise DataError(f"{what} has {given.shape[1]} columns, and those before have {d}.")
        read_as, before = stored_type(given.dtype, what), stored_type(self.raw, what)
        if read_as != before:
            raise DataError(
                f"{what} holds {given.dtype}, and those before hold {self.raw}: they are read as "
                f"{read_as} and {before}, so convert one."
            )
        return given

    def changed(self, how: str) -> DataError:
        """Return the error for a source that is not what it was."""
        return DataError(
            f"{self.where} changed while it was read: {how}; try again when nothing changes it."
        )

    def refuse(self, row: int, j: int, value: float) -> DataError:
        """Return the error for a value that is not finite."""
        return DataError(
            f"{self.where}: {self.place(row)}, {self.columns.label(j)} is {value:g}; every value "
            f"must be a finite {self.dtype}."
        )

    def place(self, row: int) -> str:
        """Return what an error calls a row: its number in its piece, and of all rows."""
        piece = int(np.searchsorted(self.edges, row, side="right")) - 1
        place = f"row {row + 1:,}"
        if label := self.label(piece):
            place = f"{label}, row {row - self.edges[piece] + 1:,} ({place} of all)"
        return place

    def load(self, plan: Plan) -> NDArray[np.floating]:
        """Read all rows into one array, in the blocks of a plan: shape (n, d), finite."""
        from lloydia.data.chunks.reader import Reader

        X = np.empty(self.shape, dtype=self.dtype)
        reader = Reader(self, plan.rows)
        for i, rows in reader.blocks(range(len(reader.lengths))):
            X[reader.edges[i] : reader.edges[i + 1]] = rows
        return X

    def write(self, function: Callable[[NDArray], NDArray], path: str | Path) -> None:
        """Write what a function makes of the rows, block by block, so that it need not fit either.

        ``chunks("big.parquet").write(model.predict, "labels.parquet")``, or ``model.transform``.
        The file appears when it is whole.

        Parameters
        ----------
        function : callable
            Takes an array of shape (m, d), returns one of m rows.  If it is a method of an
            estimator that was fitted with names of features, the columns must have these names.
        path : str or Path
            .npy, .parquet, .csv, .tsv or .txt.

        Raises
        ------
        DataError
            A block is not finite, or the source changed, or the file would be the source, or a
            part of it.
        OSError
            The file cannot be written.
        TypeError
            `function` is none.
        ValueError
            The names of the columns are not those of the fit.
        """
        from lloydia.data.chunks.writing import write_blocks

        if not callable(function):
            raise TypeError(
                f"write needs a function of rows, such as model.predict, and got "
                f"{type(function).__name__}: use numpy.save to write an array."
            )
        owner = getattr(function, "__self__", None)
        portions = self.portions(function)
        with warnings.catch_warnings():
            if hasattr(owner, "cluster_centers_"):
                # The names are compared here; blocks have none.
                self.meant_for(owner, reset=False)
                warnings.filterwarnings("ignore", "X does not have valid feature", UserWarning)
            write_blocks(Path(path), portions, self.shape[0], self.path)

    def portions(self, function: Callable[[NDArray], NDArray]) -> Iterator[NDArray]:
        """Return an iterator of what a function makes of the rows, as for :meth:`write`.

        Raises
        ------
        DataError
            A block is not finite, or the source changed.
        """
        from lloydia.data.chunks.reader import Reader

        reader = Reader(self, self.block_by_block().plan(False, 1).rows)
        blocks = (rows for _, rows in reader.blocks(range(len(reader.lengths))))
        return _made(blocks, reader.block_bytes, function)


def _made(
    blocks: Iterable[NDArray], block_bytes: int, function: Callable[[NDArray], NDArray]
) -> Iterator[NDArray]:
    """Give what a function makes of blocks, in portions that take no more bytes than a block."""
    step = FEW
    for rows in blocks:
        start = 0
        while start < len(rows):
            found = function(rows[start : start + step])
            start += step
            # How much it makes of a row is known once it has made something.
            step = max(block_bytes * len(found) // max(found.nbytes, 1), 1)
            yield found
