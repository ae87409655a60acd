"""The command line: exit status 0, 2 with one sentence on bad input, 130 on Ctrl-C."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import CycloptsError

BUG = 1
BAD_INPUT = 2
INTERRUPTED = 130
PIPE_CLOSED = 141

# What each command takes besides options, and how a shell spells what Python spells empty='keep'.
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
SPELLED = re.compile(r"\b(algorithm|device|empty|init|memory|stop)='([^']*)'")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str or None
        What follows the program's name; None takes it from the process.

    Returns
    -------
    int
        The exit status: 0, 2 on bad input (one sentence is on standard error), 130 when
        interrupted, 141 when whatever read standard output went away, 1 for a bug of ours.
    """
    try:
        with warnings.catch_warnings(), _any_name_printed():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            _run(list(sys.argv[1:] if arguments is None else arguments))
        return 0
    except KeyboardInterrupt:
        print("lloydia: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return _pipe_closed()
    except SystemExit as error:
        # The printer of the help turns a broken pipe into an exit.
        if isinstance(error.__context__, BrokenPipeError):
            return _pipe_closed()
        raise
    except OSError as error:
        if _is_closed_pipe(error):
            return _pipe_closed()
        # Without the system's words it is a sentence of ours, or of a library.
        what = (
            f"{error.strerror.lower()}: {error.filename or 'standard output'}"
            if error.strerror
            else ""
        )
        print("lloydia:", _sentence(what or str(error)), file=sys.stderr)
    except (ValueError, ImportError, MemoryError) as error:
        text = SPELLED.sub(r"--\1 \2", str(error) or type(error).__name__)
        print("lloydia:", _sentence(text), file=sys.stderr)
    except Exception as error:
        if os.environ.get("LLOYDIA_TRACEBACK"):
            raise
        what = _sentence(f"{type(error).__name__}: {error}").rstrip(".")
        print(f"lloydia: a bug, {what} (LLOYDIA_TRACEBACK=1 shows where).", file=sys.stderr)
        return BUG
    return BAD_INPUT


def _run(arguments: list[str]) -> None:
    # All imports stand here, within the reach of what main() catches: they take most of the start.
    from cyclopts import CycloptsError

    from lloydia.cli.app import app
    from lloydia.cli.report import flush

    # The parser takes a lone "-" for an option; this name means the same file.
    words = ["/dev/stdin" if word == "-" else word for word in arguments]
    try:
        command, bound, *_ = app.parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        see = " ".join(["lloydia", *(error.command_chain or ()), "--help"])
        raise ValueError(f"{_sentence(_complaint(error)).rstrip('.')} (see {see}).") from None
    command(*bound.args, **bound.kwargs)
    flush()


def _complaint(error: CycloptsError) -> str:
    """Return what the parser complains about, in our words where they are clearer."""
    from cyclopts import CoercionError, MissingArgumentError, UnusedCliTokensError

    command = " ".join(error.command_chain or ())
    if isinstance(error, UnusedCliTokensError) and command in TAKES and error.unused_tokens:
        return f"{command} takes {TAKES[command]}; {error.unused_tokens[0]!r} is one too many"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name = error.argument.names[0]
        if name == "-k":
            return "-k is required, such as -k 8"
        return f"{name} needs a value" if name.startswith("-") else f"{name} is required"
    if isinstance(error, CoercionError) and error.token is not None and not error.token.keyword:
        # A word without a name: what it is comes by its place.
        return f"{error}; {command} takes {TAKES[command]}" if command in TAKES else str(error)
    return str(error)


@contextmanager
def _any_name_printed() -> Iterator[None]:
    """Escape what standard output's encoding lacks, as Python does on standard error.

    Names of files and columns are anybody's, and a console or a redirected stream may know only
    those of its code page.
    """
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper):
        yield
        return
    before = stream.errors
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        if not stream.closed:
            stream.reconfigure(errors=before)


def _is_closed_pipe(error: OSError) -> bool:
    """Tell whether standard output's reader is gone, which Windows calls an invalid argument."""
    return sys.platform == "win32" and error.errno == errno.EINVAL and error.filename is None


def _pipe_closed() -> int:
    # The interpreter flushes standard output once more at exit; let that go nowhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _sentence(text: str) -> str:
    """Make one line and one sentence of a message that may have several."""
    parts = re.split(r"(?<=[^.])\.\s+(?=[A-Z])", " ".join(text.split()))
    joined = "; ".join([parts[0], *map(_continued, parts[1:])])
    return joined if joined.endswith((".", "?", "!")) else joined + "."


def _continued(sentence: str) -> str:
    """Return a sentence that goes on after another: names keep their capitals."""
    word = sentence.split(maxsplit=1)[0]
    name = len(word) == 1 or word != word.capitalize()
    return sentence if name else sentence[:1].lower() + sentence[1:]


def _show_warning(message: Warning | str, *_: object) -> None:
    print("lloydia: warning:", _sentence(str(message)), file=sys.stderr)
