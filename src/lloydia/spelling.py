"""How messages are spelled: options, near names, and characters that cannot be printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

# Parameters whose options have other names; an underscore becomes a hyphen.
OPTIONS = {"k": "-k", "n_clusters": "-k", "random_state": "--seed", "n_threads": "--threads"}

# Names of which so much agrees, as difflib measures it, are near each other.
NEAR = 0.7
NUMBER = re.compile(r"\d+")
BETWEEN_WORDS = re.compile(r"[\s_.-]+")

_command_line = False


@contextmanager
def on_command_line() -> Iterator[None]:
    """Have all messages of this process name options of the command line."""
    # A plain variable: messages are also made in threads, which would not see a context variable.
    global _command_line
    before, _command_line = _command_line, True
    try:
        yield
    finally:
        _command_line = before


def option(name: str, value: object = None) -> str:
    """Return how a user sets a parameter in the place where the message is printed.

    Parameters
    ----------
    name : str
        The parameter, as Python calls it.
    value : object
        Its value; None gives the name alone.

    Returns
    -------
    str
        ``option("columns", "1-2")`` is ``columns='1-2'`` or ``--columns 1-2``, and
        ``option("header", False)`` is ``header=False`` or ``--no-header``.
    """
    if not _command_line:
        return name if value is None else f"{name}={value!r}"
    spelled = OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if value is None or value is True:
        return spelled
    if value is False:
        return f"--no-{spelled.removeprefix('--')}"
    text = str(value)
    if not text.isprintable() or any(c.isalnum() for c in text):
        return f"{spelled} {shlex.quote(text)}"
    # A comma at the end of an option would be taken for the sentence's.
    return f"{spelled} {text!r}"


def either(python: str, command_line: str) -> str:
    """Return what is right in the place where the message is printed."""
    return command_line if _command_line else python


def near(given: object, known: Iterable[str], same: Mapping[str, str] | None = None) -> str | None:
    """Return the known name that may have been meant, or None if none is near.

    Capitals, and hyphens at the beginning, make no difference, and neither does what is between
    words.

    Parameters
    ----------
    given : object
        What a user wrote; only a text is near anything.
    known : iterable of str
        The names that there are.
    same : mapping of str to str or None
        Other words, in small letters and with hyphens between words, and the known name that means
        the same.
    """
    from difflib import get_close_matches

    if not isinstance(given, str) or not (text := _plain(given)):
        return None
    names: dict[str, str] = {}
    for name in known:
        names.setdefault(_plain(name), name)
    if text in names:
        return names[text]
    if same and same.get(text) in names.values():
        return same[text]
    # x1 is near no x2.
    names = {plain: name for plain, name in names.items() if _digits(plain, text)}
    if swapped := [plain for plain in names if sorted(plain) == sorted(text)]:
        return names[swapped[0]]
    if close := get_close_matches(text, names, n=1, cutoff=NEAR):
        return names[close[0]]
    return _by_word(text, names)


def _digits(name: str, text: str) -> bool:
    """Return whether two names have the same numbers in them, or one of them has none."""
    a, b = NUMBER.findall(name), NUMBER.findall(text)
    return a == b or not a or not b


def _by_word(text: str, names: Mapping[str, str]) -> str | None:
    """Return the one name that begins so, or shares a whole word, of two characters or more."""
    if len(text) < 2:
        return None
    words = text.split("-")
    found = [
        name
        for plain, name in names.items()
        if plain.startswith(text) or text in plain.split("-") or (len(plain) > 1 and plain in words)
    ]
    return found[0] if len(found) == 1 else None


def _plain(name: str) -> str:
    return BETWEEN_WORDS.sub("-", name.strip().casefold()).strip("-")


def meant(given: object, known: Iterable[str], same: Mapping[str, str] | None = None) -> str:
    """Return the end of a sentence: a question that names what may have been meant, or a full stop.

    A text stands in quotes in Python, as it does in the user's program.
    """
    found = near(given, known, same)
    if found is None:
        return "."
    return f"; did you mean {either(repr(found), found)}?"


def printable(text: str) -> str:
    r"""Return a text with characters that cannot be printed as escapes, such as ``\n``.

    So a message stays one line, and a name cannot command the terminal.
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
