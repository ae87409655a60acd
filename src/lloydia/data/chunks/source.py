"""The protocol of a source of rows: ordered pieces, which can be read from any piece on."""

from __future__ import annotations

import copy
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
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


class Chunks(ABC):
    """A table of numbers that is read in blocks; :func:`lloydia.chunks` opens one.

    A subclass defines the pieces of the source (row groups of a file, partitions, ...) and reads
    them.

    Parameters
    ----------
    where : str
        The name of the source in errors.
    raw : numpy.dtype
        The type in which the numbers are stored.
    columns : Columns
        The columns that are read.
    lengths : sequence of int
        The number of rows of each piece.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and of columns.
    dtype : numpy.dtype
        The type of the rows in a fit: float32 for float32 and half precision, otherwise float64.
    memory : int
        Limit on the memory of the process, in bytes.
    block : int or None
        The number of rows per block, if it was given.
    spill : Path or None
        The folder for blocks that do not stay in memory, if it was given.
    path : Path or None
        The file or folder of the source, if it has one.
    """

    # Whether reading a piece also reads all pieces before it.
    in_order = False
    path: Path | None = None
    memory: int
    block: int | None
    spill: Path | None = None
    # The reading thread calls this function with each block that is read for the first time.
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
        """Yield the rows of a piece and all later ones: (piece, rows), in portions of any size."""

    @property
    @abstractmethod
    def at_once(self) -> int:
        """The largest number of rows that :meth:`read` yields at a time."""

    @property
    def overhead(self) -> int:
        """Bytes of memory that reading takes in addition to what :meth:`read` yields."""
        return 0

    def stamp(self) -> object:
        """Return a value that changes when the source is written to, where that is detectable."""
        return None

    def label(self, piece: int) -> str:
        """Return the name of a piece in errors; "" if the row alone identifies the place."""
        return ""

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """The first row of each piece, and the number of rows at the end."""
        return np.cumsum([0, *self.lengths], dtype=np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return int(self.edges[-1]), len(self.columns.places)

    def astype(self, dtype: Any) -> Chunks:
        """Return the same rows in another type.

        Parameters
        ----------
        dtype : dtype
            float32 or float64.

        Returns
        -------
        Chunks
        """
        other = copy.copy(self)
        other.dtype = stored_type(np.dtype(dtype), self.where)
        return other

    def meant_for(self, estimator: BaseEstimator, reset: bool, a_row: int = 0) -> Chunks:
        """Return the same rows, planned for a fit or a prediction of an estimator.

        For a fit, the number and the names of the features are set in the estimator.  For a
        prediction, they are compared.

        Parameters
        ----------
        estimator : KMeans or MiniBatchKMeans
        reset : bool
            True for a fit, False for a prediction.
        a_row : int
            Bytes per row of the result.

        Returns
        -------
        Chunks

        Raises
        ------
        ValueError
            If the features differ from those of the fit.
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
        """Return the same rows, planned for work that keeps nothing of a block after its turn."""
        other = copy.copy(self)
        other.purpose = Purpose(keeps=False)
        return other

    def plan(self, weighted: bool, n_threads: int | None) -> Plan:
        """Return the plan of memory: which rows stay in memory, and how much that takes.

        Parameters
        ----------
        weighted : bool
            Whether the rows have weights.
        n_threads : int or None
            Number of threads; None: as many as this process may use.

        Returns
        -------
        Plan
            Its ``str`` is a sentence about the memory.

        Raises
        ------
        MemoryError
            If `memory` is too small; the message names the amount that is needed.
        """
        n_threads = load("lloydia.backends.cpu.runtime.pool").threads_of(n_threads)
        return Plan.of(self, self.purpose, weighted, n_threads)

    def rows_from(self, start: int) -> Iterator[NDArray[Any]]:
        """Yield all rows from row `start` on, in their stored type, in arrays of any length.

        Parameters
        ----------
        start : int
            The first row, from 0.

        Yields
        ------
        ndarray of shape (m, d)

        Raises
        ------
        DataError
            If a piece has another width, type or number of rows than at first.
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
        """Return the chosen columns of a piece, if its width and type are those of the first."""
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
        """Return the error for a source that changed while it was read."""
        return DataError(
            f"{self.where} changed while it was read: {how}; try again when nothing changes it."
        )

    def refuse(self, row: int, j: int, value: float) -> DataError:
        """Return the error for a value that is not finite, in column `j` of a row."""
        what = "NaN" if math.isnan(value) else f"{value:g}"
        if math.isinf(value) and self.raw.itemsize > self.dtype.itemsize:
            what += f", or too large for {self.dtype}"
        return DataError(
            f"{self.where}: {self.place(row)}, {self.columns.label(j)} is {what}; remove the row "
            "or fill it in."
        )

    def place(self, row: int) -> str:
        """Return the name of a row in errors: its number in its piece, and among all rows."""
        piece = int(np.searchsorted(self.edges, row, side="right")) - 1
        place = f"row {row + 1:,}"
        if label := self.label(piece):
            place = f"{label}, row {row - self.edges[piece] + 1:,} ({place} of all)"
        return place

    def load(self, plan: Plan) -> NDArray[np.floating]:
        """Return all rows, which must be finite, as one ndarray of shape (n, d)."""
        from lloydia.data.chunks.reader import Reader

        X = np.empty(self.shape, dtype=self.dtype)
        reader = Reader(self, plan.rows)
        for i, rows in reader.blocks(range(len(reader.lengths))):
            X[reader.edges[i] : reader.edges[i + 1]] = rows
        return X

    def write(self, function: Callable[[NDArray], NDArray], path: str | Path) -> None:
        """Apply a function to the rows block by block, and write its results to a file.

        Neither the rows nor the results need to fit into memory.  The file appears when it is
        complete.

        Parameters
        ----------
        function : callable
            It takes an array of shape (m, d) and returns an array of m rows, as the ``predict`` and
            ``transform`` of a fitted estimator do.  If the estimator was fitted with feature names,
            the columns must have these names.
        path : str or Path
            The file: .npy, .parquet, .csv, .tsv or .txt.

        Raises
        ------
        DataError
            If a block is not finite, if the source changed, or if `path` is the source or a part of
            it.
        OSError
            If the file cannot be written.
        TypeError
            If `function` is not callable.
        ValueError
            If the columns have other names than those of the fit.

        Examples
        --------
        >>> from lloydia import chunks
        >>> chunks("big.parquet").write(model.predict, "labels.parquet")  # doctest: +SKIP
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
        """Apply a function to the rows block by block, and return an iterator of its results.

        Parameters
        ----------
        function : callable
            As for :meth:`write`.

        Returns
        -------
        iterator of ndarray
            The results, in the order of the rows, in portions of any length.

        Raises
        ------
        DataError
            If a block is not finite, or the source changed.
        """
        from lloydia.data.chunks.reader import Reader
        from lloydia.data.chunks.writing import portions_of

        reader = Reader(self, self.block_by_block().plan(False, 1).rows)
        blocks = (rows for _, rows in reader.blocks(range(len(reader.lengths))))
        return portions_of(blocks, reader.block_bytes, function)
