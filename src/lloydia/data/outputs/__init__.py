"""Outputs: checked before the work starts, written under a temporary name, and then renamed."""

from __future__ import annotations

from lloydia.data.outputs.places import check_output
from lloydia.data.outputs.seals import kind_of, refuse_others
from lloydia.data.outputs.tables import (
    TABLES,
    write_encoded,
    write_numpy,
    write_rows,
    write_table,
)
from lloydia.data.outputs.temporary import Renames, naming, replacing, target_of, writing

__all__ = [
    "TABLES",
    "Renames",
    "check_output",
    "kind_of",
    "naming",
    "refuse_others",
    "replacing",
    "target_of",
    "write_encoded",
    "write_numpy",
    "write_rows",
    "write_table",
    "writing",
]
