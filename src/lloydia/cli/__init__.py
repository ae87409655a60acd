"""The command line: exit status 0, 2 with one sentence on bad input, 130 on Ctrl-C."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lloydia.spelling import on_command_line, printable

BUG = 1
BAD_INPUT = 2
INTERRUPTED = 130
PIPE_CLOSED = 141


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
    if sys.stderr is None:  # It was closed.  A file of ours must not become what is written to.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        with warnings.catch_warnings(), on_command_line(), _any_name_printed():
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
        if isinstance(error, FileNotFoundError) and error.filename:
            from lloydia.data.formats.missing import no_such_file

            with on_command_line():
                _say(str(no_such_file(Path(os.fsdecode(error.filename)))))
            return BAD_INPUT
        # Without the system's words it is a sentence of ours, or of a library.
        where = error.filename or "standard output"
        _say(f"{error.strerror.lower()}: {where}" if error.strerror else str(error))
    except (ValueError, ImportError, MemoryError) as error:
        _say(str(error) or type(error).__name__)
    except Exception as error:
        if os.environ.get("LLOYDIA_TRACEBACK"):
            raise
        _say(f"a bug, {type(error).__name__}: {error} (LLOYDIA_TRACEBACK=1 shows where)")
        return BUG
    return BAD_INPUT


def _run(arguments: list[str]) -> None:
    # All imports stand here, within the reach of what main() catches: they take most of the start.
    from cyclopts import CycloptsError

    from lloydia.cli.app import app
    from lloydia.cli.parser.complaints import complaint
    from lloydia.cli.report import flush

    # The parser takes a lone "-" for an option; this name means the same file.
    words = ["/dev/stdin" if word == "-" else word for word in arguments]
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        command, bound, *_ = app.parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        see = " ".join(["lloydia", *(error.command_chain or ()), "--help"])
        raise ValueError(f"{complaint(error)} (see {see}).") from None
    command(*bound.args, **bound.kwargs)
    flush()


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


def _say(text: str) -> None:
    """Print a message: as it is, for it may hold names and cells of the user's."""
    end = "" if text.endswith((".", "?", "!")) else "."
    print(f"lloydia: {printable(text)}{end}", file=sys.stderr)


def _show_warning(message: Warning | str, *_: object) -> None:
    _say(f"warning: {message}")
