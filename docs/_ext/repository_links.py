"""Links between Markdown files of the repository, in the site.

Pages link to other files as they stand in the repository: ``../src/lloydia/estimators/kmeans.py``,
or ``docs/contract.md`` in a file that a page includes.  A target that is a page of the site becomes
a link to that page.  Any other file or folder becomes a page that shows its source.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.application import Sphinx

REPOSITORY = Path(__file__).resolve().parents[2]
# Files outside of docs/ that a page includes as a whole.
PAGES = {
    "CHANGELOG.md": "/changelog.md",
    "CONTRIBUTING.md": "/developers/contributing.md",
    "README.md": "/index.md",
    "benchmarks/README.md": "/benchmarks/running.md",
}
SCHEME = "source:"
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
FENCE = re.compile(r"^\s*(```+|~~~+)")
DOCSTRING_LINK = re.compile(r"``docs/(\w+)\.md``")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what this extension does."""
    app.connect("source-read", rewrite_page)
    app.connect("include-read", rewrite_included)
    app.connect("autodoc-process-docstring", rewrite_docstring, priority=900)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("doctree-read", collect)
    app.connect("doctree-resolved", resolve)
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def rewrite_page(app: Sphinx, docname: str, text: list[str]) -> None:
    """Rewrite the links of a page."""
    if app.env.doc2path(docname).suffix == ".md":
        text[0] = rewritten(text[0], Path(app.srcdir, docname).parent)


def rewrite_included(app: Sphinx, path: Path, docname: str, text: list[str]) -> None:
    """Rewrite the links of a file that a page includes."""
    if path.suffix == ".md":
        text[0] = rewritten(text[0], Path(app.srcdir, path).resolve().parent)


def rewrite_docstring(
    app: Sphinx, what: str, name: str, obj: Any, _: Any, lines: list[str]
) -> None:
    """Make a link of a page's name in a docstring."""
    for i, line in enumerate(lines):
        lines[i] = DOCSTRING_LINK.sub(r":doc:`/\1`", line)


def rewritten(text: str, folder: Path) -> str:
    """Return Markdown whose links, relative to a folder, are those of the site."""
    lines, fence = text.split("\n"), None
    for i, line in enumerate(lines):
        if found := FENCE.match(line):
            fence = None if fence == found[1] else fence or found[1]
        elif fence is None:
            lines[i] = LINK.sub(
                lambda link: link[1] + target(link[2], link[3] or "", folder) + link[4], line
            )
    return "\n".join(lines)


def target(link: str, anchor: str, folder: Path) -> str:
    """Return the site's target for a link of the repository; any other link stays."""
    if ":" in link or link.startswith("/"):
        return link + anchor
    path = (folder / link).resolve()
    if not path.exists() or not path.is_relative_to(REPOSITORY):
        return link + anchor
    name = path.relative_to(REPOSITORY).as_posix()
    if name in PAGES:
        return PAGES[name] + anchor
    if name.startswith("docs/") and path.is_file():
        return name.removeprefix("docs") + anchor
    return SCHEME + name


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Remember which sources a page links to."""
    names = {
        node["refuri"].removeprefix(SCHEME)
        for node in doctree.findall(nodes.reference)
        if node.get("refuri", "").startswith(SCHEME)
    }
    known(app.env)[app.env.docname] = names


def known(env: Any) -> dict[str, set[str]]:
    """Return the sources that each page links to."""
    if not hasattr(env, "repository_sources"):
        env.repository_sources = {}
    return env.repository_sources


def forget(app: Sphinx, env: Any, docname: str) -> None:
    """Forget a page that is read anew."""
    known(env).pop(docname, None)


def merge(app: Sphinx, env: Any, docnames: list[str], other: Any) -> None:
    """Take over what another process found."""
    known(env).update(known(other))


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn links to sources into links to their pages."""
    for node in doctree.findall(nodes.reference):
        if node.get("refuri", "").startswith(SCHEME):
            name = node["refuri"].removeprefix(SCHEME)
            node["refuri"] = app.builder.get_relative_uri(docname, page_name(name))


def page_name(name: str) -> str:
    """Return the page that shows a file or a folder."""
    return f"source/{name.rstrip('/')}"


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Give a page for every source that is linked to, and for what lies in such a folder."""
    waiting = sorted(set().union(*known(app.env).values()))
    done: set[str] = set()
    while waiting:
        name = waiting.pop().rstrip("/")
        if name in done:
            continue
        done.add(name)
        path = REPOSITORY / name
        if path.is_dir():
            entries = [entry for entry in sorted(path.iterdir()) if is_shown(entry)]
            waiting += [f"{name}/{entry.name}" for entry in entries]
            body = folder_body(name, entries)
        else:
            body = file_body(path)
        yield (
            page_name(name),
            {"title": name, "body": f"<h1>{escape(name)}</h1>{body}"},
            "page.html",
        )


def is_shown(path: Path) -> bool:
    """Return whether a folder's page lists an entry."""
    if path.is_dir():
        return not path.name.startswith((".", "__")) and any(map(is_shown, path.iterdir()))
    return path.suffix in (".py", ".toml", ".md", ".jsonl")


def folder_body(name: str, entries: list[Path]) -> str:
    """Return a list of what is in a folder, each with the first line of its docstring."""
    here = posixpath.basename(name)
    items = []
    for entry in entries:
        link = quote(f"{here}/{entry.name}.html")
        code = escape(entry.name + "/" * entry.is_dir())
        about = escape(first_line(entry))
        items.append(f'<li><a href="{link}"><code>{code}</code></a> {about}</li>')
    return f"<ul>{''.join(items)}</ul>"


def first_line(path: Path) -> str:
    """Return the first line of a module's or a package's docstring."""
    module = path / "__init__.py" if path.is_dir() else path
    if module.suffix != ".py" or not module.exists():
        return ""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def file_body(path: Path) -> str:
    """Return a file with its syntax highlighted, or its size where that says more."""
    size = path.stat().st_size
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").count("\n")
        return f"<p>{lines:,} lines of JSON, {size / 1000:,.0f} kB: they are in the repository.</p>"
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = TextLexer()
    return highlight(path.read_text(encoding="utf-8"), lexer, HtmlFormatter(cssclass="highlight"))
