"""Labels from files: one a row of the data, numbers or words."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrow import feature_names
from lloydia.data.columns import DataError
from lloydia.data.files import STANDARD_INPUT, decode, load_numpy, open_input, pyarrow_parquet


def read_labels(path: str | Path, n: int) -> NDArray[Any]:
    """Read one label for each of n rows.

    Parameters
    ----------
    path : str or Path
        A .npy or .parquet file, "-" for standard input, or text with one label a line.  A text has
        a header if it has n + 1 lines, or a word above whole numbers.
    n : int
        Number of rows of the data.

    Returns
    -------
    ndarray of shape (n,)
        Integers where all labels are whole numbers, else text.

    Raises
    ------
    DataError
        The file cannot be read, is not one column, or does not hold n labels.
    """
    where = "standard input" if str(path) in STANDARD_INPUT else str(path)
    with open_input(path) as (stream, suffix):
        if suffix == ".npy":
            labels = load_numpy(stream, where)
        elif suffix == ".parquet":
            table = pyarrow_parquet(where).read_table(stream)
            columns = [table[name].to_numpy() for name in feature_names(table.schema)]
            if len(columns) != 1:
                raise DataError(f"{where} has {len(columns)} columns; labels are one column.")
            labels = columns[0]
        elif suffix == ".npz":
            raise DataError(f"{where} is an archive; give labels as .npy, .csv, .tsv or .txt.")
        else:
            labels = _words(decode(stream, where), where, n)
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


def _words(text: Any, where: str, n: int) -> NDArray[Any]:
    words: list[str] = []
    try:
        for cells in csv.reader(text):
            if len(cells) > 1:
                raise DataError(f"{where} has {len(cells)} columns; labels are one column.")
            if cells and cells[0].strip():
                words.append(cells[0].strip())
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"{where} is not a text with one label a line.") from None
    headed = len(words) > 1 and not _is_whole(words[0]) and all(map(_is_whole, words[1:]))
    words = words[1:] if headed or len(words) == n + 1 else words
    try:
        return np.array([int(word) for word in words], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(words)


def _is_whole(word: str) -> bool:
    try:
        int(word)
    except ValueError:
        return False
    return True
