"""The numbers that texts can hold: in tables, labels, pairs and options (see docs/tables.md)."""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from lloydia.spelling import option

# Cells that mean that a value is missing, in lower case.
MISSING = frozenset(
    {"", "na", "n/a", "nan", "null", "none", "nat", "<na>", "?", "-", "--", ".", "missing", "\\n"}
    | {"#n/a", "#na", "#n/a n/a", "#null!", "#value!", "#div/0!", "#ref!", "#name?", "#num!"}
    | {"1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "-nan", "+nan"}
)
NOT_FINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.I)
WHOLE = re.compile(r"[+-]?[0-9]+")
REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

# Characters that may surround a number: white space without the ASCII separators (1C to 1F), which
# str.strip() removes and float() refuses.
AROUND = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)

# Characters that may separate thousands, and variants of some of them.
DIVIDERS = (",", ".", " ", "'")
LIKE = {" ": " \u00a0\u2007\u2009\u202f", "'": "'\u2019"}
MINUS = "\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d"

# Characters with which a number can begin, in any spelling.
BEGIN = re.compile(r"[-+(.,_0-9]|[^\x00-\x7f]")
HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]+")
FORTRAN = re.compile(r"(.*[0-9.])[dDqQ]([+-]?[0-9]+)")
UNIT = re.compile(r"(\S*[0-9.])\s*([^\W\d_]{1,5})")
SUFFIXED = re.compile(r"(.*[0-9.])[fFlL]")


def whole_number(text: str) -> int:
    """Return the whole number that a text is.

    Raises
    ------
    ValueError
        It is none: digits 0 to 9 with an optional sign.
    """
    if WHOLE.fullmatch(text.strip(AROUND)) is None:
        raise ValueError(f"{shown(text)} is not a whole number")
    try:
        return int(text)
    except ValueError:  # Python converts no more than some thousand digits
        raise ValueError(f"{shown(text)} has too many digits") from None


def real_number(text: str) -> float:
    """Return the finite number that a text is.

    Raises
    ------
    ValueError
        It is none, or too large for float64.
    """
    if REAL.fullmatch(text.strip(AROUND)) is None:
        raise ValueError(f"{shown(text)} is not a number")
    if math.isinf(value := float(text)):
        raise ValueError(f"{shown(text)} is too large")
    return value


def shown(text: str, most: int = 60) -> str:
    """Return a user's text in quotes, cut if it is long."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}..."


@dataclass(frozen=True)
class Grammar:
    """How numbers are written.

    Parameters
    ----------
    decimal : {".", ","}
        What divides the whole part from the fraction.
    thousands : {",", ".", " ", "'"} or None
        What may divide groups of three digits; a blank stands for all narrow and fixed ones.
    adjustable : bool
        Whether the user has options for them, and for the header and the columns, which errors
        can name.

    Raises
    ------
    ValueError
        A character is none of these, or both are the same.
    """

    decimal: str = "."
    thousands: str | None = None
    adjustable: bool = True

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ValueError(f"{option('decimal', self.decimal)} must be a point or a comma.")
        if self.thousands is not None and self.thousands not in DIVIDERS:
            raise ValueError(
                f"{option('thousands', self.thousands)} must be a comma, a point, a blank or an "
                "apostrophe."
            )
        if self.thousands == self.decimal:
            raise ValueError(
                f"{option('decimal', self.decimal)} and {option('thousands', self.thousands)} "
                "cannot be the same character."
            )

    @property
    def plain(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and self.thousands is None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        point, whole = re.escape(self.decimal), "[0-9]+"
        if self.thousands is not None:
            dividers = re.escape(LIKE.get(self.thousands, self.thousands))
            whole = rf"(?:[0-9]{{1,3}}(?:[{dividers}][0-9]{{3}})+|[0-9]+)"
        return re.compile(rf"[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?")

    def is_number(self, cell: str) -> bool:
        """Return whether a cell is a finite number, or one that is too large."""
        return (REAL if self.plain else self._pattern).fullmatch(cell.strip(AROUND)) is not None

    def is_text(self, cell: str) -> bool:
        """Return whether a cell is neither a number nor missing nor infinite."""
        cell = cell.strip(AROUND)
        return not (cell.lower() in MISSING or NOT_FINITE.fullmatch(cell) or self.is_number(cell))

    def value(self, cell: str) -> float:
        """Return the number in a cell.

        Raises
        ------
        ValueError
            If the cell is not a number.
        """
        cell = cell.strip(AROUND)
        if not self.is_number(cell):
            raise ValueError(f"{shown(cell)} is not a number")
        if self.thousands is not None:
            for divider in LIKE.get(self.thousands, self.thousands):
                cell = cell.replace(divider, "")
        return float(cell.replace(self.decimal, "."))

    @cached_property
    def _convert(self) -> Callable[[str], float]:
        return float if self.plain else self.value

    def extend(self, values: array[float], cells: Sequence[str]) -> int | None:
        """Append the numbers in cells; return the position of the first cell that is not one."""
        try:
            values.extend(map(self._convert, cells))
        except ValueError:
            pass
        else:
            if not self.plain:
                return None
            text = "".join(cells)
            # float() also accepts underscores, digits of other scripts, inf and nan.
            if text.isascii() and not ("_" in text or "n" in text or "N" in text):
                return None
        return next((i for i, cell in enumerate(cells) if not self.is_number(cell)), None)

    def complaint(self, cell: str) -> str:
        """Return what is wrong with a cell that is not a finite number, and what to do."""
        cell = cell.strip(AROUND)
        if NOT_FINITE.fullmatch(cell):
            what = "NaN" if cell.lower().endswith("nan") else "infinite"
            return f"is {what}; remove the row or fill it in"
        if cell.lower() in MISSING:
            said = f" ({shown(cell)})" if cell else ""
            return f"is missing{said}; fill it in or remove the row"
        advice = self.advice(cell)
        return f"is {shown(cell)}, not a number" + (f"; {advice}" if advice else "")

    def advice(self, cell: str) -> str:
        """Return what to do so that a cell is read as a number, or "" if that is unknown."""
        cell = cell.strip(AROUND)
        if any("\udc80" <= c <= "\udcff" for c in cell):
            return "the file is not UTF-8 text; save it as UTF-8"
        if "\0" in cell:
            return "the file is damaged, or UTF-16 without a byte-order mark; save it as UTF-8"
        return self.other_number(cell) or self._more_than_a_number(cell)

    def other_number(self, cell: str) -> str:
        """Return how to read or write a cell that is a number in an unsupported spelling."""
        if not BEGIN.match(cell):
            return ""
        return self._other_marks(cell) or self._other_spelling(cell)

    def _other_marks(self, cell: str) -> str:
        """Return the `decimal` and `thousands` with which a cell is a number."""
        found = [other for other in _grammars() if other.is_number(cell)]
        if not found:
            return ""
        least = min(len(grammar._unusual()) for grammar in found)
        simple = [grammar for grammar in found if len(grammar._unusual()) == least]
        if not self.adjustable:
            return "write " + " or ".join(f"{grammar.value(cell):.15g}" for grammar in simple)
        if len(simple) == 1:
            return f"give {simple[0]._options()}, or write {simple[0].value(cell):.15g}"
        ways = (
            f"{grammar._options()} if it means {grammar.value(cell):.15g}" for grammar in simple
        )
        return f"give {', or '.join(ways)}"

    def _unusual(self) -> dict[str, str]:
        """Return the marks that differ from Python's."""
        marks = {"decimal": self.decimal.replace(".", ""), "thousands": self.thousands or ""}
        return {name: mark for name, mark in marks.items() if mark}

    def _options(self) -> str:
        marks = self._unusual() or {"decimal": self.decimal}
        return " and ".join(option(name, mark) for name, mark in marks.items())

    def _other_spelling(self, cell: str) -> str:
        """Return what to write instead of a cell that is a number in another notation."""
        if not cell or len(cell) > 400:
            return ""
        if cell[0] == "(" and cell[-1] == ")" and self.is_number(cell[1:-1]):
            return f"write -{cell[1:-1]}"
        if HEXADECIMAL.fullmatch(cell):
            return f"write {int(cell, 16)} for this hexadecimal number"
        for found in (FORTRAN.fullmatch(cell), SUFFIXED.fullmatch(cell)):
            if found and self.is_number(text := "e".join(found.groups())):
                return f"write {text}"
        if cell.isascii():
            if self.is_number(text := cell.replace("_", "")):
                return f"write {text}"
        elif self.is_number(text := _ascii(cell)):
            return f"write {text} with the characters 0 to 9 and -"
        return ""

    def _more_than_a_number(self, cell: str) -> str:
        """Return what to remove from a cell, or what to write instead of its word."""
        if cell.lower() in ("true", "false"):
            return f"write {int(cell.lower() == 'true')}"
        for sign in ("%", "\u2030", *(c for c in cell if unicodedata.category(c) == "Sc")):
            bare = cell.replace(sign, "").strip()
            if sign in cell and (self.is_number(bare) or self._other_marks(bare)):
                return f"remove the sign {sign} in this column"
        unit = UNIT.fullmatch(cell)
        if unit and unit[2] not in "eE" and self.is_number(unit[1]):
            return f"remove the unit {unit[2]!r} in this column"
        return ""


@cache
def _grammars() -> list[Grammar]:
    """Return all ways to write numbers."""
    marks = ((decimal, mark) for decimal in ".," for mark in (None, *DIVIDERS))
    return [Grammar(decimal, mark) for decimal, mark in marks if mark != decimal]


def _ascii(cell: str) -> str:
    """Return a cell with other scripts' digits and other minus signs written in ASCII."""
    written = (str(unicodedata.decimal(c, "")) or ("-" if c in MINUS else c) for c in cell)
    return unicodedata.normalize("NFKC", "".join(written))
