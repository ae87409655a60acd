"""The documentation's pages and README: their Python runs, and their commands are commands.

``<!-- not run: why -->`` stands before a block that is shown only: it is compiled and no more.
"""

import ast
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (".", "docs", "docs/start", "docs/guides", "docs/benchmarks", "benchmarks")
PAGES = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))
# The Python on this page is a signature.
SIGNATURES = ROOT / "docs/ladder.md"
BLOCK = re.compile(
    r"(<!-- not run: .+? -->\n)?^( *)```(python|sh)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL
)
# What a page's code needs besides Lloydia.
EXTRAS = {
    "dask": ("dask", "distributed"),
    "large_data": ("pandas", "pyarrow"),
    "long_fits": ("sklearn.callback",),
}


def blocks(page, language):
    """Return the blocks of a language: what is to be run, and what is shown only."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    chosen = [(not shown, code) for shown, _, kind, code in found if kind == language]
    return [code for run, code in chosen if run], [code for run, code in chosen if not run]


def name_of(page):
    """Return the path of a page within the repository, without its suffix."""
    return page.relative_to(ROOT).with_suffix("").as_posix()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(blocks(p, "python")) and p != SIGNATURES], ids=name_of
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_python(page, tmp_path, monkeypatch):
    run, shown = blocks(page, "python")
    for code in shown:
        ast.parse(code)
    if run:
        for name in EXTRAS.get(page.stem, ()):
            pytest.importorskip(name)
        monkeypatch.chdir(tmp_path)
        exec(compile("\n".join(run), page.name, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", [p for p in PAGES if any(blocks(p, "sh"))], ids=name_of)
def test_commands(page):
    from lloydia.cli.app import app

    run, shown = blocks(page, "sh")
    lines = [shlex.split(line, comments=True) for code in run + shown for line in code.splitlines()]
    for name, *words in filter(None, lines):
        if name == "lloydia":
            app.parse_args(words, exit_on_error=False, print_error=False)


def test_blocks_are_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: why -->\n```python\na\n```\n\n```python\nb\n```\n\n```sh\nc\n```\n"
    )
    assert blocks(page, "python") == (["b\n"], ["a\n"])
    assert blocks(page, "sh") == (["c\n"], [])
