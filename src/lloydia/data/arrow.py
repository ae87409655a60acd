"""Arrow tables: which of their columns are features, and their rows as one array.

Each number of a column of vectors (``list``, ``large_list`` or ``fixed_size_list``, such as
embeddings) is a feature, named ``name[0]``, ``name[1]`` and so on.  A DECIMAL becomes the nearest
float64.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrow_values import (
    element,
    not_numbers,
    numbers,
    numpy_type,
    plain,
    refuse_missing,
    stored,
    stored_in,
    vectors,
)
from lloydia.data.columns import (
    Columns,
    DataError,
    choose,
    id_place,
    name_column,
    parts_of,
    refuse_unknown,
)
from lloydia.data.formats.room import check_room
from lloydia.data.proposals import proposed, refuse_text

__all__ = ["Features", "all_but_id", "feature_names", "features_of", "id_name"]

# The beginning of pandas' names of columns that hold an index without a name.
UNNAMED_INDEX = "__index_level_"

# Bytes of memory of the name and the position of a feature, measured.
A_FEATURE = 400


@dataclass(frozen=True)
class Features:
    """The features of a table with an Arrow schema.

    Attributes
    ----------
    columns : Columns
        The chosen features: places of their columns in the file, and names.
    sources : tuple of str
        For each feature, the name of the Arrow column.
    components : tuple of int
        For each feature, which number of the column's vectors it is; 0 for a column of numbers.
    widths : dict of str to int
        Of the chosen columns of vectors: how many numbers each vector has.
    raw : numpy.dtype
        The type that holds the numbers of all chosen columns exactly.
    """

    columns: Columns
    sources: tuple[str, ...]
    components: tuple[int, ...]
    widths: Mapping[str, int]
    raw: np.dtype

    @property
    def names(self) -> list[str]:
        """The Arrow columns to read, each once."""
        return list(dict.fromkeys(self.sources))

    def typed(self, types: Iterable[Any], where: str) -> Features:
        """Return the same features of a table whose columns `names` have other types.

        Raises
        ------
        DataError
            If a column does not hold numbers, or holds vectors instead of numbers or vice versa.
        """
        plain_types = [stored(kind) for kind in types]
        for name, kind in zip(self.names, plain_types, strict=True):
            if not_numbers(kind) or (element(kind) is None) == (name in self.widths):
                what = "vectors" if name in self.widths else "numbers"
                held = not_numbers(kind) or ("numbers" if name in self.widths else "vectors")
                raise DataError(f"{where} holds {held} in column {name!r}, not {what}.")
        return replace(self, raw=np.result_type(*map(numpy_type, plain_types)))

    def table_rows(self, table: Any, where: str) -> NDArray[Any]:
        """Return the rows of an Arrow table: shape (n, d), of the type `raw`.

        Raises
        ------
        DataError
            As :meth:`rows`.
        """
        rows = np.empty((table.num_rows, len(self.sources)), dtype=self.raw)
        start = 0
        for batch in table.to_batches():
            place = partial(_place_in, where, start)
            rows[start : start + batch.num_rows] = self.rows(batch, place)
            start += batch.num_rows
        return rows

    def rows(self, batch: Any, place: Callable[[int], str]) -> NDArray[Any]:
        """Return the rows of a record batch: shape (n, d), of the type `raw`.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            A batch with at least the columns `names`.
        place : callable
            It returns the name of a row of the batch, counted from 0, in errors.

        Raises
        ------
        DataError
            If a value is missing, or a vector has another length than the first one.
        """
        rows = np.empty((batch.num_rows, len(self.sources)), dtype=self.raw)
        places: dict[str, list[int]] = {}
        for j, name in enumerate(self.sources):
            places.setdefault(name, []).append(j)
        for name, features in places.items():
            column = plain(batch.column(name))
            label = name_column(self.columns.places[features[0]], name)
            if name in self.widths:
                values = vectors(column, self.widths[name], label, place)
                rows[:, features] = values[:, [self.components[j] for j in features]]
            else:
                refuse_missing(column, label, place)
                rows[:, features[0]] = numbers(column)
        return rows


def features_of(
    schema: Any,
    wanted: str | Sequence[str] | None,
    where: str,
    first_row: Callable[[list[str]], Any],
) -> Features:
    """Return the features of a table with an Arrow schema.

    Parameters
    ----------
    schema : pyarrow.Schema
    wanted : str, sequence of str or None
        Columns, as in :func:`lloydia.data.columns.choose`.  A pandas index is read only if its name
        is given.
    where : str
        The name of the table in errors.
    first_row : callable
        It takes names of columns and returns a record batch or a table of them that begins with the
        first row, or None if there are no rows.  The first row gives the length of vectors if the
        schema does not.

    Raises
    ------
    DataError
        If a chosen column does not hold numbers, or a name occurs twice.
    """
    names = feature_names(schema)
    asked = [part.text for part in parts_of(wanted)]
    names += [name for name in asked if name in schema.names and name not in names]
    twice = next((name for name in names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{where} has two columns named {twice!r}; rename one of them.")
    if not names:
        raise DataError(f"{where} has no columns.")
    types = [stored_in(schema.field(name)) for name in names]
    widths = _widths(dict(zip(names, types)), first_row)
    n_features = sum(widths.values())
    check_room(
        A_FEATURE * n_features,
        f"{where}, which declares vectors of {n_features:,} numbers in all,",
        "write it without the longest ones",
    )
    columns, components = _choose(names, widths, wanted, where)
    kinds = [
        "empty vectors" if widths.get(name) == 0 else not_numbers(kind)
        for name, kind in zip(names, types)
    ]
    numeric = [place for place, kind in enumerate(kinds) if not kind]
    held = [kinds[place] for place in columns.places]
    refuse_text(columns, held, where, proposed(numeric, names))
    sources = tuple(names[place] for place in columns.places)
    widths = {name: width for name, width in widths.items() if name in set(sources)}
    raw = np.result_type(*(numpy_type(types[place]) for place in set(columns.places)))
    return Features(columns, sources, components, widths, raw)


def _place_in(where: str, start: int, row: int) -> str:
    return f"{where}: row {start + row + 1:,}"


def feature_names(schema: Any) -> list[str]:
    """Return the names of a schema's columns, without those of a pandas index."""
    index = index_names(schema)
    return [
        name for name in schema.names if name not in index and not name.startswith(UNNAMED_INDEX)
    ]


def all_but_id(
    schema: Any, wanted: str | Sequence[str] | None, id_column: str | None, where: str
) -> str | Sequence[str] | None:
    """Return the choice of columns `wanted`; None becomes all columns except the ids.

    Raises
    ------
    DataError
        If there is no such column of ids, or no other column.
    """
    if id_column is None or wanted is not None:
        return wanted
    ids = id_name(schema, id_column, where)
    rest = [name for name in feature_names(schema) if name != ids]
    if not rest:
        raise DataError(f"{where} has no column besides that of the ids, {ids!r}.")
    return rest


def id_name(schema: Any, id_column: str, where: str) -> str:
    """Return the name of the column of ids, which may be a pandas index.

    Raises
    ------
    DataError
        If there is no such column.
    """
    names = feature_names(schema)
    if schema.names.count(id_column) == 1:
        return id_column
    return names[id_place(id_column, names, len(names), where)]


def index_names(schema: Any) -> list[str]:
    """Return the columns that hold the index of a data frame, from the metadata of pandas.

    An index that is a range has no column.
    """
    try:
        found = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        listed = found.get("index_columns", [])
        return [name for name in listed if isinstance(name, str)]
    except (ValueError, AttributeError, TypeError):
        return []  # other tools write this key as well


def _choose(
    names: Sequence[str],
    widths: Mapping[str, int],
    wanted: str | Sequence[str] | None,
    where: str,
) -> tuple[Columns, tuple[int, ...]]:
    """Return the columns of the chosen features, and the position of each in its vector.

    The name or the number of a column of vectors chooses all its features.
    """
    expanded = [
        (place, i, f"{name}[{i}]" if widths.get(name) else name)
        for place, name in enumerate(names)
        for i in range(widths.get(name) or 1)
    ]
    by_name = {name: (place, i, name) for place, i, name in expanded}
    if len(by_name) < len(expanded):
        twice = next(one for one in expanded if one != by_name[one[2]])
        raise DataError(f"{where} has two columns named {twice[2]!r}; rename one of them.")
    features: dict[int, list[tuple[int, int, str]]] = {}
    for one in expanded:
        features.setdefault(one[0], []).append(one)
    chosen = expanded if wanted is None else []
    known = dict.fromkeys([*names, *by_name])
    refuse_unknown(parts_of(wanted), list(known), where)
    for part in parts_of(wanted):
        if part.text in by_name:
            chosen.append(by_name[part.text])
        else:
            asked = [part.text] if part.is_name else part.text
            places = choose(names, len(names), asked, where).places
            chosen += [one for place in places for one in features[place]]
    seen: set[str] = set()
    for place, _, name in chosen:
        if name in seen:
            raise DataError(f"{where}: {name_column(place, name)} is chosen twice.")
        seen.add(name)
    columns = Columns(tuple(one[0] for one in chosen), tuple(one[2] for one in chosen))
    return columns, tuple(one[1] for one in chosen)


def _widths(types: Mapping[str, Any], first_row: Callable[[list[str]], Any]) -> dict[str, int]:
    """Return the length of the vectors of each column of vectors."""
    from pyarrow import types as kinds

    vectors = {name: kind for name, kind in types.items() if element(kind) is not None}
    widths = {
        name: kind.list_size for name, kind in vectors.items() if kinds.is_fixed_size_list(kind)
    }
    open_ended = [name for name in vectors if name not in widths]
    row = first_row(open_ended) if open_ended else None
    for name in open_ended:
        first = row.column(name)[0].as_py() if row is not None and len(row) else None
        # If the first vector is missing, reading its row raises the error.
        widths[name] = 1 if first is None else len(first)
    return widths
