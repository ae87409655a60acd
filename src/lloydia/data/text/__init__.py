"""Tables as text: separator, header, quoted cells, and errors that name the row and the column."""

from __future__ import annotations

from lloydia.data.text.finite import check_finite
from lloydia.data.text.pairs import read_pairs
from lloydia.data.text.records import QuoteError, Row, decoded, not_utf8, rows
from lloydia.data.text.table import TextForm, read_text

__all__ = [
    "QuoteError",
    "Row",
    "TextForm",
    "check_finite",
    "decoded",
    "not_utf8",
    "read_pairs",
    "read_text",
    "rows",
]
