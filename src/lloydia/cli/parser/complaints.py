"""What the parser of the command line refuses, in one sentence that keeps the user's words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
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

from lloydia.cli.parser import synonyms
from lloydia.data.formats.missing import similar_file
from lloydia.spelling import near

if TYPE_CHECKING:
    from cyclopts import App, Token

# What each command takes besides options.
TAKES = {
    "fit": "one DATA",
    "predict": "one MODEL and one DATA",
    "score": "one DATA and one LABELS",
    "segment": "IMAGE MODE K ITERATIONS display",
    "quantize": "one IMAGE",
    "demo": "only options",
    "warm-up": "only options",
    "info": "only options",
    "bench peers": "only options",
    "bench seeding": "only options",
    "bench auto": "only options",
    "bench images": "only options",
    "bench report": "at most one FILE",
    "ladder list": "only options",
    "ladder report": "only options",
    "ladder dump": "only options",
}


PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif")
# A number of clusters without its option: 3, k=3.
LONE_NUMBER = re.compile(r"(?:k=)?([0-9]+)")


def complaint(error: CycloptsError) -> str:
    """Return one sentence, without its full stop."""
    command = " ".join(error.command_chain or ())
    if isinstance(error, UnusedCliTokensError) and command in TAKES and error.unused_tokens:
        return _too_many(command, error.unused_tokens, error.root_input_tokens or [])
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        return _unknown_command(error.unused_tokens[0], error.app, command)
    if isinstance(error, UnknownOptionError):
        return _unknown_option(error, command)
    if isinstance(error, RepeatArgumentError):
        return f"{error.token.keyword} is given twice; give it once"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error.argument.names[0], command, error.root_input_tokens or [])
    if isinstance(error, ValidationError) and error.argument is not None and error.argument.tokens:
        token = error.argument.tokens[0]
        # The validators of numbers say what must be; no word of it is the user's.
        must = error.exception_message.rstrip(".")
        name = _name(error, token)
        return f'Invalid value "{token.value}" for {name}: it {must[:1].lower()}{must[1:]}'
    if isinstance(error, CoercionError) and error.token is not None:
        return _not_converted(error, error.token, command)
    if isinstance(error, CoercionError) and error.msg is not None and error.argument is not None:
        # From a converter of ours that takes several words.
        return f"{error.argument.name}: {str(error.msg).rstrip('.')}"
    return str(error).rstrip(".")


def _name(error: CycloptsError, token: Token) -> str:
    if token.keyword:
        return token.keyword
    return error.argument.name.lstrip("-").upper() if error.argument is not None else "a value"


def _too_many(command: str, extra: list[str], words: list[str]) -> str:
    """Return the complaint about words that a command has no place for."""
    if columns := _columns(words, len(extra)):
        return f"--columns takes one word; write a comma between columns: --columns {columns}"
    what = f"{command} takes {TAKES[command]}; {extra[0]!r} is one too many"
    flag = next((a for a, b in pairwise(words) if b == extra[0]), "")
    return f"{what}, as {flag} takes no value" if flag.startswith("--") else what


def _columns(words: list[str], n_extra: int) -> str:
    """Return columns that were given word by word, joined by commas, or nothing."""
    if "--columns" not in words:
        return ""
    after = words[words.index("--columns") + 1 :]
    end = next((i for i, word in enumerate(after) if word.startswith("-")), len(after))
    columns = after[: min(end, n_extra + 1)]
    if len(columns) <= n_extra or any(Path(word).exists() for word in columns):
        return ""
    return ",".join(word.strip(",") for word in columns)


def _missing(name: str, command: str, words: list[str]) -> str:
    if name == "-k":
        if words and words[-1] in ("-k", "--k"):
            return f"{words[-1]} needs a value, such as {words[-1]} 8"
        for before, word in pairwise(["", *words]):
            if not before.startswith("-") and (found := LONE_NUMBER.fullmatch(word)):
                return f"-k is required; did you mean -k {found[1]}?"
        same = {word: "-k" for word, options in synonyms.OPTIONS.items() if options == ("-k",)}
        for word in words:
            if word.startswith("--") and near(word.partition("=")[0], ["-k"], same):
                return f"Unknown option: {word}; did you mean -k?"
        return "-k is required, such as -k 8"
    if name.startswith("-"):
        return f"{name} needs a value"
    takes = TAKES.get(command, "")
    both = " and " in takes
    return f"{name} is required: {command} takes {takes}" if both else f"{name} is required"


def _not_converted(error: CoercionError, token: Token, command: str) -> str:
    if error.msg is not None:
        # From a converter of ours, which quotes the value.
        said = str(error.msg).rstrip(".")
        # What begins with a capital is a whole sentence.
        what = f"{token.keyword}: {said}" if token.keyword and not said[0].isupper() else said
    else:
        what = f'Invalid value "{token.value}" for {_name(error, token)}'
        if get_origin(error.target_type) is Literal:
            from lloydia.parameters import SAME

            choices = [str(choice) for choice in get_args(error.target_type)]
            meant = _meant(token.value, choices, SAME | synonyms.VALUES)
            what += f"; choose from {', '.join(choices)}{meant}"
        elif error.target_type is not None:
            what += f"; it is no {getattr(error.target_type, '__name__', 'such value')}"
    # A word without a name: what it is comes by its place.
    takes = command in TAKES and not token.keyword
    return f"{what}; {command} takes {TAKES[command]}" if takes else what


def _unknown_option(error: UnknownOptionError, command: str) -> str:
    given = (error.token.keyword or error.token.value).partition("=")[0]
    what = f"Unknown option: {given}"
    known = [name for one in error.argument_collection if one.parse for name in one.names]
    places = [name for name in known if name.isidentifier()]
    plain = given.lstrip("-").casefold()
    if plain.upper() in places or (plain in synonyms.FILES and places):
        return f"{what}; write it without an option: lloydia {command} {' '.join(places)}"
    options = [*(name for name in known if name.startswith("-")), "--help"]
    same = {
        word: found
        for word, choices in synonyms.OPTIONS.items()
        if (found := next((one for one in choices if one.split()[0] in options), None))
    }
    return what + _meant(given, [*options, *same.values()], same)


def _unknown_command(given: str, app: App | None, command: str) -> str:
    names = list(app or ())
    known = [name for name in names if not name.startswith("-")]
    if given.startswith("-"):
        flags = [name for name in names if name.startswith("-")]
        name, _, value = given.partition("=")
        what = f"Unknown option: {given}"
        if found := near(name, flags, synonyms.COMMANDS):
            return f"{what}; did you mean {f'{found} {value}'.rstrip()}?"
        return f"{what}; a command comes first: {', '.join(known)}"
    meant = _meant(given, names, synonyms.COMMANDS)
    if not command and (file := _file(given, bool(meant))):
        takes = "quantize" if file.suffix.lower() in PICTURES else "fit"
        name = shlex.quote(str(file))
        return f"{given!r} is no command; did you mean lloydia {takes} {name}?"
    listed = f"; the commands are {', '.join(known)}" if known else ""
    return f'Unknown command "{given}"{meant or listed}'


def _file(given: str, near_a_command: bool) -> Path | None:
    """Return the file that a word means where a command belongs, if it is a name of one."""
    path = Path(given)
    if path.exists():
        return path
    if path.suffix or not near_a_command:
        return similar_file(path) or (path if path.suffix else None)
    return None


def _meant(given: str, known: Iterable[str], same: Mapping[str, str] | None = None) -> str:
    """Return what may have been meant, as the end of a sentence."""
    found = near(given, known, same)
    return "" if found is None else f"; did you mean {found}?"
