"""Labels from files: one label per row of the data, as numbers or words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, starmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrow import feature_names
from lloydia.data.columns import DataError, id_place
from lloydia.data.formats.arrow_files import EXTENSIONS as ARROW
from lloydia.data.formats.arrow_files import arrow_table
from lloydia.data.formats.numpy_files import load_array
from lloydia.data.formats.opening import (
    STANDARD_INPUT,
    open_input,
    refuse_other_kinds,
    text_of,
)
from lloydia.data.formats.parquet import parquet_table
from lloydia.data.numbers import MISSING, WHOLE, Grammar, shown
from lloydia.data.text import QuoteError, Row, decoded, not_utf8, rows
from lloydia.data.text.records import HEAD, WHITE, Text
from lloydia.data.text.separators import separator_of
from lloydia.spelling import either

CLUSTER = "cluster"  # the column of labels in a table with several columns
OF_TABLE = f"the column {CLUSTER!r} of a table with a header"
TWO = f"labels with ids are two columns, first the id and then the label, or {OF_TABLE}"
SEPARATORS = {".tsv": "\t", ".txt": WHITE}


def read_labels(
    path: str | Path,
    n: int,
    ids: Iterable[Sequence[str]] | None = None,
    id_column: str = "1",
) -> NDArray[Any]:
    """Read one label for each of n rows.

    Parameters
    ----------
    path : str or Path
        A .npy, .parquet, .feather or .arrow file, "-" for standard input, or a text with one label
        per line, which may be compressed.  The first line is a header if it is a word above whole
        numbers; or, if there are n + 1 lines, if it is 0, as pandas writes it, or if no other label
        is like it.  In a table with several columns, as ``lloydia fit --out`` writes it, the column
        ``cluster`` is read.
    n : int
        Number of rows of the data.
    ids : iterable of sequences of str, or None
        The ids of the rows of the data, in blocks.  The file then has two columns: these ids, in
        the same order, and the labels.  They are separated by tabs in .tsv, by white space in .txt,
        and by commas otherwise.
    id_column : str
        Name or number of the column of ids, if the file is a table with a column ``cluster``.

    Returns
    -------
    ndarray of shape (n,)
        Integers if all labels are whole numbers, otherwise text.

    Raises
    ------
    DataError
        If the file cannot be read, has no column of labels, does not hold n labels, or holds other
        ids than the data.
    """
    if ids is not None:
        return _identified(path, n, ids, id_column)
    where = "standard input" if str(path) in STANDARD_INPUT else str(path)
    with open_input(path) as (stream, suffix):
        if suffix == ".npy":
            refuse_other_kinds(stream, suffix, where, "a NumPy file")
            labels = load_array(stream, where)
        elif suffix == ".parquet":
            refuse_other_kinds(stream, suffix, where, "a Parquet file")
            labels = _only_column(parquet_table(stream, where), where)
        elif suffix in ARROW:
            refuse_other_kinds(stream, ".arrow", where, "an Arrow file")
            labels = _only_column(arrow_table(stream, where), where)
        elif suffix == ".npz":
            raise DataError(f"{where} is an archive; give labels as .npy, .csv, .tsv or .txt.")
        else:
            stream, suffix = text_of(stream, suffix, where)
            labels, _ = _of_text(stream, where, suffix, n)
    return _checked(labels, where, n)


def _identified(
    path: str | Path, n: int, ids: Iterable[Sequence[str]], id_column: str
) -> NDArray[Any]:
    """Read labels with ids, which must be the ids of the rows."""
    where = "standard input" if str(path) in STANDARD_INPUT else str(path)
    with open_input(path) as (stream, suffix):
        if suffix in (".parquet", *ARROW):
            read = parquet_table if suffix == ".parquet" else arrow_table
            table = read(stream, where)
            names, places = table.schema.names, (0, 1)
            if table.num_columns != 2:
                if names.count(CLUSTER) != 1:
                    raise DataError(f"{where} has {table.num_columns} columns; {TWO}.")
                places = (id_place(id_column, names, len(names), where), names.index(CLUSTER))
            identities, clusters = map(table.column, places)
            own = ["" if value is None else str(value) for value in identities.to_pylist()]
            labels = clusters.to_numpy()
        elif suffix in (".npy", ".npz"):
            raise DataError(f"{where} has no column of ids; {TWO}, as in a .csv file.")
        else:
            stream, suffix = text_of(stream, suffix, where)
            labels, own = _of_text(stream, where, suffix, n, id_column)
    labels = _checked(labels, where, n)
    for row, (mine, theirs) in enumerate(zip(own, chain.from_iterable(ids))):
        if mine != theirs:
            raise DataError(
                f"{where}: row {row + 1} has the id {shown(mine)}, and that row of the data has "
                f"{shown(theirs)}: labels stand in the order of the data."
            )
    return labels


def _checked(labels: NDArray[Any], where: str, n: int) -> NDArray[Any]:
    """Return `labels` as one dimension, and refuse another number of them than n."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(f"{where} has shape {labels.shape}; labels are one column.")
    if labels.dtype.kind not in "iubfUSO":
        raise DataError(f"{where} holds {labels.dtype}; labels are whole numbers or text.")
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        row = int(np.flatnonzero(np.isnan(labels))[0]) + 1
        raise DataError(f"{where}: row {row} is missing (nan); every row needs a label.")
    if len(labels) != n:
        raise DataError(f"{where} holds {len(labels)} labels for the {n} rows of the data.")
    return labels


def _only_column(table: Any, where: str) -> NDArray[Any]:
    """Return the only column of an Arrow table, apart from a pandas index, or the clusters."""
    names = feature_names(table.schema)
    places = [i for i, name in enumerate(table.schema.names) if name in names]
    if len(places) != 1 and names.count(CLUSTER) == 1:
        return table.column(CLUSTER).to_numpy()
    if len(places) != 1:
        raise DataError(f"{where} has {len(places)} columns; labels are one column, or {OF_TABLE}.")
    return table.column(places[0]).to_numpy()


def _words(lines: list[Row], where: str, n: int) -> NDArray[Any]:
    """Return the labels of one column, which may have a header."""
    if not lines:
        return np.array([], dtype=np.int64)
    words = [row.cells[0].strip() for row in lines]
    numbers = [WHOLE.fullmatch(word) is not None for word in words]
    above_numbers = not numbers[0] and len(numbers) > 1 and all(numbers[1:])
    if above_numbers or (len(words) == n + 1 and _is_header(lines, words, numbers)):
        lines = lines[1:]
    return _values(lines, where)


def _values(lines: list[Row], where: str) -> NDArray[Any]:
    """Return labels as integers if all of them are whole numbers, otherwise as words."""
    words = [row.cells[0].strip() for row in lines]
    numbers = [WHOLE.fullmatch(word) is not None for word in words]
    for row, word in zip(lines, words):
        # Among words, such a word may be a label.
        missing = word == "" or (word.lower() in MISSING and any(numbers))
        if missing:
            raise DataError(
                f"{where}: line {row.line} is missing{f' ({word})' * bool(word)}; every row needs "
                "a label."
            )
    if all(numbers):
        try:
            return np.array([int(word) for word in words], dtype=np.int64)
        except (ValueError, OverflowError):  # labels too large for int64 are words
            pass
    return np.array(words)


def _of_text(
    stream: BinaryIO, where: str, suffix: str, n: int, id_column: str | None = None
) -> tuple[NDArray[Any], list[str]]:
    """Return the labels of a text, and their ids if there is a column of ids."""
    try:
        with decoded(stream) as lines:
            head = list(islice(lines, HEAD))
            separator = _separator_of_table(head, suffix, where)
            every = chain(head, lines)
            if separator is not None:
                return _of_table(every, separator, where, id_column)
            separator = "," if id_column is None else SEPARATORS.get(suffix, ",")
            found = list(starmap(Row, rows(every, separator)))
    except UnicodeDecodeError:
        raise DataError(f"{where} is not UTF-8 text; save it as UTF-8.") from None
    except QuoteError as error:
        raise DataError(f"{where}: {error}") from None
    _check_rows(found, where, 1 if id_column is None else 2)
    if id_column is None:
        return _words(found, where, n), []
    labels = _words([Row(row.line, row.cells[1:]) for row in found], where, n)
    return labels, [row.cells[0] for row in found[len(found) - len(labels) :]]


def _separator_of_table(head: list[str], suffix: str, where: str) -> str | None:
    """Return the separator of a table with a column of clusters; None for other texts."""
    text = Text(iter(head))
    separator = separator_of(text, suffix, Grammar(), where)
    sample = text.sample(separator)
    names = [cell.strip() for cell in sample[0].cells] if sample else []
    return separator if len(names) > 1 and names.count(CLUSTER) == 1 else None


def _of_table(
    lines: Iterator[str], separator: str, where: str, id_column: str | None
) -> tuple[NDArray[Any], list[str]]:
    """Return the clusters of a table, and the ids of its rows if there is a column of ids."""
    header, *found = starmap(Row, Text(lines).rows(separator))
    names = [cell.strip() for cell in header.cells]
    if found and all(len(row.cells) == len(names) + 1 for row in found):
        names = ["", *names]  # R names the rows in a column without a name
    for row in found:
        if len(row.cells) != len(names):
            have = f"{len(row.cells)} cell{'s' * (len(row.cells) != 1)}"
            width = len(names)
            raise DataError(f"{where}: line {row.line} has {have} where the header has {width}.")
    place = names.index(CLUSTER)
    clusters = [Row(row.line, [row.cells[place]]) for row in found]
    if id_column is None:
        return _values(clusters, where), []
    ids = id_place(id_column, names, len(names), where)
    return _values(clusters, where), [row.cells[ids] for row in found]


def _check_rows(found: list[Row], where: str, width: int) -> None:
    """Refuse rows of a text that do not have `width` cells, or that are not UTF-8."""
    for row in found:
        if len(row.cells) != width:
            count = f"{len(row.cells)} column{'s' * (len(row.cells) > 1)}"
            beside = either("", "or two with --id COLUMN, ")
            one = f"labels are one column, {beside}or {OF_TABLE}"
            raise DataError(f"{where} has {count}; {TWO if width > 1 else one}.")
        if not_utf8("".join(row.cells)):
            raise DataError(f"{where} is not UTF-8 text in line {row.line}; save it as UTF-8.")


def _is_header(rows: list[Row], words: list[str], numbers: list[bool]) -> bool:
    """Return whether the first of n + 1 lines is a header."""
    if words[0] == "0":
        return True
    if numbers[0]:
        in_quotes = bool(rows[0].quoted) and not any(row.quoted for row in rows[1:])
        return in_quotes or not any(numbers[1:])
    return words[0] not in words[1:]
