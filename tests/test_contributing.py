"""CONTRIBUTING.md: its files and names exist, and no walk is longer than promised."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lloydia"
# Where a path of a walk may begin; those about a GPU are below the engine.
BELOW = (ROOT, SOURCE, SOURCE / "backends", SOURCE / "backends" / "cuda")
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
WALKS = {
    section.splitlines()[0]: section for section in re.split(r"\n## ", TEXT)[1:]
    if section.startswith(("Add ", "Find ", "How "))
}  # fmt: skip
PORTING = (ROOT / "docs" / "developers" / "index.md").read_text(encoding="utf-8")
SECTIONS = WALKS | {"GPUs of other makers": PORTING.split("\n## ")[1]}
TREE = TEXT.split("\n## The tree\n")[1].split("```")[1]
WORDS = {
    word
    for folder in (SOURCE, ROOT / "tests")
    for path in folder.rglob("*.py")
    for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
}


def quoted(section):
    """Return what is in backquotes in a section, without blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", section, flags=re.DOTALL))


def is_path(word):
    return (
        "<" not in word and " " not in word and bool(re.search(r"[\w*]/|\.(py|md|txt|toml)$", word))
    )


def is_name(word):
    return re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*(\(\))?", word) and not is_path(word)


def test_files_of_the_tree_exist():
    wanted = re.findall(r"[\w-]+(?:/|\.(?:py|md|toml))", TREE)
    there = {
        path.name
        for folder in ("src", "tests", "benchmarks", "docs", "examples")
        for path in ((ROOT / folder), *(ROOT / folder).rglob("*"))
    }
    assert [name for name in wanted if name.rstrip("/") not in there] == []


@pytest.mark.parametrize("section", SECTIONS)
def test_files_of_walks_exist(section):
    wanted = [word.rstrip("/") for word in quoted(SECTIONS[section]) if is_path(word)]
    assert [word for word in wanted if not any((path / word).exists() for path in BELOW)] == []


@pytest.mark.parametrize("section", SECTIONS)
def test_names_of_walks_exist(section):
    names = [word.removesuffix("()") for word in quoted(SECTIONS[section]) if is_name(word)]
    assert [name for name in names if not set(name.split(".")) <= WORDS] == []


@pytest.mark.parametrize("walk", WALKS)
def test_walks_have_at_most_eight_files(walk):
    steps = re.findall(r"^\d\. .*?(?=^\d\. |\n\n)", WALKS[walk] + "\n\n", re.MULTILINE | re.DOTALL)
    assert 1 < len(steps) <= 8
    # The first file of each step is the one to open.
    opened = [next((w for w in quoted(step) if is_path(w)), None) for step in steps]
    assert len({path for path in opened if path}) <= 8


def test_lines_fit_a_page():
    assert [line for line in TEXT.splitlines() if len(line) > 120] == []
