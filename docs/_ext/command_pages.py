"""The command-line reference, a page a command, from the same help that the terminal shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from sphinx.application import Sphinx

EXAMPLE = re.compile(r"^Example: (.*)$", re.MULTILINE)
CONTENTS = re.compile(r"^#+ Table of Contents\n\n(?:[ \t]*- .*\n)+\n", re.MULTILINE)
# The heading of a command; those of its own commands are one level below.
COMMAND = re.compile(r"^## lloydia (?=\S+$)", re.MULTILINE)
HEADING = re.compile(r"^#(?=#+ lloydia )", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for sources."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Sphinx) -> None:
    """Write the page of every command, and remove those of commands that are gone."""
    folder = Path(app.srcdir, "commands", "reference")
    folder.mkdir(parents=True, exist_ok=True)
    pages = command_pages()
    for old in folder.glob("*.md"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        write_if_new(folder / f"{name}.md", text)


def command_pages() -> dict[str, str]:
    """Return the text of the page of each command, by the name of its file."""
    from lloydia.cli.app import app as commands

    # The usage of a command begins with the name of the program that runs, which is Sphinx.
    with mock.patch.object(sys, "argv", ["lloydia"]):
        return split(commands.generate_docs(output_format="markdown", usage_name="lloydia"))


def split(text: str) -> dict[str, str]:
    """Return a page for each command of the whole help, with the examples as code."""
    text = EXAMPLE.sub(r"```console\n$ \1\n```", CONTENTS.sub("", text))
    return {
        part.partition("\n")[0].lstrip("-"): HEADING.sub("", f"# lloydia {part}")
        for part in COMMAND.split(text)[1:]
    }


def write_if_new(path: Path, text: str) -> None:
    """Write a file unless it holds this text already: Sphinx reads again what is newer."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
