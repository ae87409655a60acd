"""What the parser of the command line refuses, in one sentence that keeps the user's words."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)
from cyclopts.exceptions import UnknownCommandError

if TYPE_CHECKING:
    from cyclopts import App, Token

# What each command takes besides options.
TAKES = {
    "fit": "one DATA",
    "predict": "one MODEL and one DATA",
    "score": "one DATA and one LABELS",
    "segment": "IMAGE MODE K ITERATIONS display",
    "quantize": "one IMAGE",
    "demo": "options alone",
    "bench peers": "options alone",
    "bench seeding": "options alone",
    "bench auto": "options alone",
    "bench images": "options alone",
    "bench report": "at most one FILE",
    "ladder list": "options alone",
    "ladder report": "options alone",
    "ladder dump": "options alone",
}


def complaint(error: CycloptsError) -> str:
    """Return one sentence, without its full stop."""
    command = " ".join(error.command_chain or ())
    if isinstance(error, UnusedCliTokensError) and command in TAKES and error.unused_tokens:
        return f"{command} takes {TAKES[command]}; {error.unused_tokens[0]!r} is one too many"
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        return _unknown_command(error.unused_tokens[0], error.app)
    if isinstance(error, UnknownOptionError):
        return _unknown_option(error)
    if isinstance(error, RepeatArgumentError):
        return f"{error.token.keyword} is given twice; give it once"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name = error.argument.names[0]
        if name == "-k":
            return "-k is required, such as -k 8"
        return f"{name} needs a value" if name.startswith("-") else f"{name} is required"
    if isinstance(error, ValidationError) and error.argument is not None and error.argument.tokens:
        token = error.argument.tokens[0]
        # The validators of numbers say what must be; no word of it is the user's.
        must = error.exception_message.rstrip(".")
        return (
            f'Invalid value "{token.value}" for {_name(error, token)}; {must[:1].lower()}{must[1:]}'
        )
    if isinstance(error, CoercionError) and error.token is not None:
        return _not_converted(error, error.token, command)
    return str(error).rstrip(".")


def _name(error: CycloptsError, token: Token) -> str:
    if token.keyword:
        return token.keyword
    return error.argument.name.lstrip("-").upper() if error.argument is not None else "a value"


def _not_converted(error: CoercionError, token: Token, command: str) -> str:
    if error.msg is not None:
        # From a converter of ours, which quotes the value.
        what = f"{token.keyword}: {error.msg}" if token.keyword else str(error.msg)
    else:
        what = f'Invalid value "{token.value}" for {_name(error, token)}'
        if get_origin(error.target_type) is Literal:
            choices = [str(choice) for choice in get_args(error.target_type)]
            what += f"; choose from {', '.join(choices)}{_meant(token.value, choices)}"
        elif error.target_type is not None:
            what += f"; it is no {getattr(error.target_type, '__name__', 'such value')}"
    # A word without a name: what it is comes by its place.
    takes = command in TAKES and not token.keyword
    return f"{what}; {command} takes {TAKES[command]}" if takes else what


def _unknown_option(error: UnknownOptionError) -> str:
    given = error.token.keyword or error.token.value
    known = [name for one in error.argument_collection if one.parse for name in one.names]
    return f"Unknown option: {given}{_meant(given, known)}"


def _unknown_command(given: str, app: App | None) -> str:
    known = [name for name in app or () if not name.startswith("-")]
    listed = f"; the commands are {', '.join(known)}" if known else ""
    return f'Unknown command "{given}"{_meant(given, known) or listed}'


def _meant(given: str, known: list[str]) -> str:
    """Return what may have been meant, as the end of a sentence."""
    close = get_close_matches(given, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
