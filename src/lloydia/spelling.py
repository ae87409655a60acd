"""How messages are spelled: names of options, and characters that cannot be printed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

# Parameters whose options have other names; an underscore becomes a hyphen.
OPTIONS = {"n_clusters": "-k", "random_state": "--seed", "n_threads": "--threads"}

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


def printable(text: str) -> str:
    r"""Return a text with characters that cannot be printed as escapes, such as ``\n``.

    So a message stays one line, and a name cannot command the terminal.
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
