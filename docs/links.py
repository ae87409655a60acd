"""Check the links within a built site: every page, file and heading that a page links to is there.

python docs/links.py build/docs
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What links stand in.
TARGETS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}


@dataclass
class Page(HTMLParser):
    """The links and the anchors of a page."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Keep a tag's link and its id."""
        found = dict(attributes)
        if link := found.get(TARGETS.get(tag, "")):
            self.links.append(link)
        self.anchors.update(value for name in ("id", "name") if (value := found.get(name)))


@cache
def read(path: Path) -> Page:
    """Return a page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def has_anchor(path: Path, name: str) -> bool:
    """Return whether a page has a place of this name; each has the one without a name."""
    return not name or name in read(path).anchors


def broken(site: Path) -> list[str]:
    """Return a sentence for each link that leads nowhere."""
    found = []
    for path in sorted(site.rglob("*.html")):
        for link in read(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            where = f"{path.relative_to(site)}: {link}"
            if to.is_dir():
                to /= "index.html"
            if not to.exists():
                found.append(f"{where} leads to no file.")
            elif to.suffix == ".html" and not has_anchor(to, unquote(parts.fragment)):
                found.append(f"{where} leads to no heading.")
    return found


def main(site: Path) -> int:
    """Print what is broken; return the exit status."""
    pages = len(list(site.rglob("*.html")))
    if not pages:
        print(f"{site} has no pages: build the site first.", file=sys.stderr)
        return 2
    found = broken(site.resolve())
    print(*found, sep="\n", file=sys.stderr)
    print(f"{pages} pages, {len(found)} broken links")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python docs/links.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
