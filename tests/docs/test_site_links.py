"""The check of a built site's links, and the links of repository files in the site."""

import importlib.util
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def load(path):
    """Return a module by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def test_broken_links_are_named(tmp_path):
    links = load(DOCS / "links.py")
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top"></h1><a href="sub/b.html#there"></a><a href="#top"></a><a href="https://x.y"></a>'
        '<a href="sub/b.html#gone"></a><a href="c.html"></a><img src="no.png"><a href="#not"></a>'
    )
    (tmp_path / "sub/b.html").write_text('<h2 id="there"></h2><a href="../index.html"></a>')
    assert links.broken(tmp_path) == [
        "index.html: sub/b.html#gone leads to no heading.",
        "index.html: c.html leads to no file.",
        "index.html: no.png leads to no file.",
        "index.html: #not leads to no heading.",
    ]
    assert links.main(tmp_path) == 1
    (tmp_path / "none").mkdir()
    assert links.main(tmp_path / "none") == 2


@pytest.mark.parametrize(
    ("link", "folder", "there"),
    [
        ("docs/contract.md", ".", "/contract.md"),
        ("contract.md", "docs", "/contract.md"),
        ("../CONTRIBUTING.md", "docs", "/developers/contributing.md"),
        ("../src/lloydia/estimators/kmeans.py", "docs", "source:src/lloydia/estimators/kmeans.py"),
        ("src/lloydia/exact", ".", "source:src/lloydia/exact"),
        ("no/such/file.md", ".", "no/such/file.md"),
        ("https://example.org/a.md", ".", "https://example.org/a.md"),
    ],
)
def test_links_of_the_repository(link, folder, there):
    pytest.importorskip("sphinx")
    site = load(DOCS / "_ext/repository_links.py")
    text = f"see [x]({link}) and\n```\n[y]({link})\n```\n"
    expected = f"see [x]({there}) and\n```\n[y]({link})\n```\n"
    assert site.rewritten(text, site.REPOSITORY / folder) == expected
