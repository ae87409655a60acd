"""How commands read DATA: the options, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lloydia.cli.options import READING, FileName

if TYPE_CHECKING:
    from lloydia.data.files import Table
    from lloydia.data.formats.stamps import Stamp
    from lloydia.data.labelled import Original

__all__ = ["Reading"]


@Parameter(name="*", group=READING)
@dataclass(frozen=True)
class Reading:
    """How DATA is read."""

    columns: Annotated[
        str | None,
        Parameter(
            help="Columns to use as features: names, numbers (from 1) or ranges, with commas "
            "between them: a,b,3-5. Put double quotes around a name that has a comma."
        ),
    ] = None
    id: Annotated[
        str | None,
        Parameter(
            help="The column with the ids of the rows, by name or number, of any type. It is not "
            "a feature; files of labels have it before the label."
        ),
    ] = None
    header: Annotated[
        bool | None, Parameter(help="Whether the first row is a header; detected by default.")
    ] = None
    pairs: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Read all numbers of the file, one after the other, as points: x y x y.",
        ),
    ] = False
    decimal: Annotated[
        str, Parameter(help="The decimal mark in a text file: a point or a comma.")
    ] = "."
    thousands: Annotated[
        str | None,
        Parameter(
            help="The mark between thousands in a text file: a comma, a point, a blank or '."
        ),
    ] = None

    def original(self, data: FileName, before: Stamp, table: Table) -> Original:
        """Return DATA to be read once more, for what stands beside the features.

        Parameters
        ----------
        data : str
        before : Stamp
            Of DATA, before `table` was read from it.
        table : Table

        Raises
        ------
        DataError
            There is no such column of ids, or it is one of the features.
        """
        from lloydia.data.columns import name_column
        from lloydia.data.labelled import original
        from lloydia.data.numbers import Grammar

        grammar = Grammar(self.decimal, self.thousands)
        found = original(str(data), before, table.names is not None, grammar)
        if self.id is not None and (place := found.place(self.id)) in table.columns.places:
            what = name_column(place, found.id_name(self.id))
            raise ValueError(
                f"{data}: {what} holds the ids, and is among the columns that are clustered: leave "
                "it out of --columns, or leave out --id."
            )
        return found

    def table(
        self,
        data: FileName,
        *,
        dtype: str | None = None,
        names: Sequence[str] | None = None,
        sparse: bool = False,
        json: bool = False,
    ) -> Table:
        """Read DATA; `names` are its columns, in that order, where it has a header.

        A sparse matrix gets its zeros unless `sparse`.  With `json` no progress is shown.
        """
        from lloydia.cli.progress import progress
        from lloydia.data.files import read_table

        with progress(f"reading {data}", json=json):
            table = read_table(
                data,
                # A stream of pairs has no columns that names could choose.
                columns=names if self.columns is None and not self.pairs else self.columns,
                header=self.header,
                pairs=self.pairs,
                dtype=dtype,
                decimal=self.decimal,
                thousands=self.thousands,
                sparse=sparse,
                id_column=self.id,
            )
        if self.columns is not None and names is not None and table.names is not None:
            return _in_order_of(names, table)
        return table


def _in_order_of(names: Sequence[str], table: Table) -> Table:
    import numpy as np

    from lloydia.data.columns import Columns, in_order_of
    from lloydia.data.files import Table

    order = in_order_of(names, table.columns, table.where)
    places = tuple(table.columns.places[j] for j in order)
    X = np.ascontiguousarray(table.X[:, order])
    return Table(X, Columns(places, tuple(names)), table.where)
