"""The Python reference lists every public name, and only names that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/api/index.md"
# Modules that users import from, and names of theirs that only Lloydia's own modules import.
MODULES = {
    "lloydia": {"__version__"},
    "lloydia.callbacks": {"CallbackSupportMixin", "Tasks", "with_callbacks"},
    "lloydia.dask": set(),
    "lloydia.images": set(),
    "lloydia.images.color": {"SPACES"},
    "lloydia.metrics": set(),
    "lloydia.stopping": set(),
}
FOLDERS = (".", "docs", "docs/start", "docs/guides", "docs/benchmarks")
PAGES = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.md"))]
PAGES += sorted((ROOT / "examples/gallery").glob("*.py"))
# The changelog has old names; this page is about the modules themselves.
OTHERS = {"CHANGELOG.md", "CONTRIBUTING.md", "changelog.md"}
IMPORT = re.compile(r"^ *from (lloydia[\w.]*) import (?:\(([^)]*)\)|([\w, ]*))", re.MULTILINE)
DOTTED = re.compile(r"(?<![\w/.-])lloydia\.(?:[a-z_]+\.)*[A-Za-z_]+(?![\w/-])")


def listed():
    """Return the names of the reference, with their modules."""
    lines = re.findall(r"^   ([\w.]+)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    return {f"lloydia.{line}" for line in lines}


def object_of(name):
    """Return the object of a dotted name: a module, or what is in one."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(object_of(module), last)


@pytest.mark.parametrize("name", sorted(listed()))
def test_listed_names_are_exported(name):
    if name.startswith(("lloydia.dask", "lloydia.images")):
        pytest.importorskip("dask" if "dask" in name else "PIL")
    found = object_of(name)
    module = importlib.import_module(name.rpartition(".")[0])
    assert name.rpartition(".")[2] in getattr(module, "__all__", [name.rpartition(".")[2]])
    assert found.__doc__


@pytest.mark.parametrize("module", MODULES)
def test_exported_names_are_listed(module):
    pytest.importorskip("dask" if module.endswith("dask") else "numpy")
    exported = {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    assert exported - {f"{module}.{name}" for name in MODULES[module]} <= listed()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in OTHERS], ids=lambda page: page.name
)
def test_names_of_pages_are_listed(page):
    text = page.read_text(encoding="utf-8")
    names = {
        f"{module}.{name.strip()}"
        for module, many, one in IMPORT.findall(text)
        for name in (many or one).split(",")
        if name.strip()
    }
    names |= set(DOTTED.findall(text))
    wanted = {name.rstrip(".") for name in names}
    # Names of modules and attributes of objects that are listed.
    known = listed() | set(MODULES) | {"lloydia.__version__"}
    missing = {n for n in wanted if n not in known and n.rpartition(".")[0] not in listed()}
    assert missing == set()
