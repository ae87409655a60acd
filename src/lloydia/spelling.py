"""The spelling of messages: names of options, similar names, and unprintable characters."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

# Parameters whose command-line options have other names; elsewhere "_" becomes "-".
OPTIONS = {"k": "-k", "n_clusters": "-k", "random_state": "--seed", "n_threads": "--threads"}

# Two names are similar if their difflib ratio is at least this.
NEAR = 0.7
NUMBER = re.compile(r"\d+")
BETWEEN_WORDS = re.compile(r"[\s_.-]+")

_command_line = False


@contextmanager
def on_command_line() -> Iterator[None]:
    """Make all messages of this process name command-line options instead of parameters."""
    # A plain variable: messages are also made in threads, which would not see a context variable.
    global _command_line
    before, _command_line = _command_line, True
    try:
        yield
    finally:
        _command_line = before


def option(name: str, value: object = None) -> str:
    """Return how a user sets a parameter: in Python, or on the command line.

    Parameters
    ----------
    name : str
        The parameter's name in Python.
    value : object
        The value; with None, the result is the name alone.

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
    # Without quotes, readers would take a comma at the end for punctuation of the sentence.
    return f"{spelled} {text!r}"


def either(python: str, command_line: str) -> str:
    """Return the first text in Python, the second on the command line."""
    return command_line if _command_line else python


def near(given: object, known: Iterable[str], same: Mapping[str, str] | None = None) -> str | None:
    """Return the known name that is similar to `given`, or None if no name is similar.

    Capitals, hyphens at the beginning, and the characters between words make no difference.

    Parameters
    ----------
    given : object
        The value that the user wrote; only a str can be similar to a name.
    known : iterable of str
        The valid names.
    same : mapping of str to str or None
        Synonyms, in lower case and with hyphens between words, and the known name for each.
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
    # Names with different numbers, such as x1 and x2, are not similar.
    names = {plain: name for plain, name in names.items() if _digits(plain, text)}
    if swapped := [plain for plain in names if sorted(plain) == sorted(text)]:
        return names[swapped[0]]
    if close := get_close_matches(text, names, n=1, cutoff=NEAR):
        return names[close[0]]
    # The ratio of short words that differ in one character is smaller: fot and fit have 0.67.
    other = [plain for plain in names if _one_character(plain, text)]
    return names[other[0]] if len(other) == 1 else _by_word(text, names)


def _digits(name: str, text: str) -> bool:
    """Return whether two names contain the same numbers, or at least one contains none."""
    a, b = NUMBER.findall(name), NUMBER.findall(text)
    return a == b or not a or not b


def _one_character(name: str, text: str) -> bool:
    """Return whether two words of three or more characters differ in one that is not the first."""
    alike = len(name) == len(text) >= 3 and name[0] == text[0]
    return alike and sum(a != b for a, b in zip(name, text)) == 1


def _by_word(text: str, names: Mapping[str, str]) -> str | None:
    """Return the only name that begins with `text` or shares a word of two characters with it."""
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
    """Return the end of a sentence: "did you mean ...?" with a similar name, or a full stop.

    In Python the name is quoted, as in the user's program.
    """
    found = near(given, known, same)
    if found is None:
        return "."
    return f"; did you mean {either(repr(found), found)}?"


def printable(text: str) -> str:
    r"""Return the text with unprintable characters replaced by escapes, such as ``\n``.

    The message then stays on one line, and a file name cannot send control codes to the terminal.
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
