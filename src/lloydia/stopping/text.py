"""Stop rules as text: the command line, models and checkpoints write and read it."""

from __future__ import annotations

import math
from collections.abc import Callable

from lloydia.data.numbers import real_number
from lloydia.spelling import meant
from lloydia.stopping.rules import Centers, Either, Inertia, Labels, Rule

__all__ = ["parse", "spell"]

# The names of rules in text; each rule is made from one number.
SPELLED: dict[str, Callable[[float], Rule]] = {
    "labels": Labels,
    "inertia": Inertia,
    "centers": Centers,
}


def spell(rule: Rule) -> str:
    """Return a stop rule as the text that :func:`parse` reads.

    Parameters
    ----------
    rule : Rule
        :class:`Labels`, :class:`Inertia` or :class:`Centers`, or several of them joined by ``|``.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If `rule` is or contains another rule.

    Examples
    --------
    >>> from lloydia.stopping import Centers, Labels, spell
    >>> spell(Labels(0.001) | Centers(5e-6))
    'labels:0.001|centers:5e-06'
    """
    if isinstance(rule, Either):
        return f"{spell(rule.first)}|{spell(rule.second)}"
    for name, kind in SPELLED.items():
        if type(rule) is kind:
            (value,) = vars(rule).values()
            return f"{name}:{float(value)!r}"
    raise ValueError(f"{rule!r} cannot be written as text: use Labels, Inertia or Centers.")


def parse(text: str) -> Rule:
    """Return the stop rule that a text describes; :func:`spell` is the inverse.

    Parameters
    ----------
    text : str
        ``labels``, or a name and a number such as ``labels:0.001``, ``inertia:1e-6`` or
        ``centers:5e-6``; several rules are joined by ``|``.

    Returns
    -------
    Rule
        :class:`Labels`, :class:`Inertia`, :class:`Centers` or :class:`Either`.

    Raises
    ------
    ValueError
        If the name is unknown, or the number is missing or out of range.

    Examples
    --------
    >>> from lloydia.stopping import parse
    >>> parse("labels:0.001")
    Labels(fraction=0.001)
    """
    result: Rule | None = None
    for part in text.split("|"):
        name, colon, value = part.strip().partition(":")
        if name in SPELLED and name != "labels" and not colon:
            raise ValueError(f"Bad stop rule {name!r}: it needs a number; write {name}:0.001.")
        if name not in SPELLED:
            raise ValueError(
                f"Unknown stop rule {part.strip()!r}: use labels, labels:FRACTION, inertia:DROP or "
                f"centers:ATOL, several joined by '|'{meant(name, SPELLED)}"
            )
        try:
            # spell() writes inf for an infinite number.
            number = math.inf if value == "inf" else real_number(value if colon else "0")
        except ValueError:
            raise ValueError(
                f"Bad stop rule {part.strip()!r}: {value!r} is not a number; write {name}:0.001."
            ) from None
        try:
            rule = SPELLED[name](number)
        except ValueError as error:
            # Without the name of the class, which is Python's.
            must = str(error).partition(": ")[2]
            raise ValueError(f"Bad stop rule {part.strip()!r}: {must}") from None
        result = rule if result is None else result | rule
    assert result is not None
    return result
