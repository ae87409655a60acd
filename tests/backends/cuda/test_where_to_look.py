"""The package says where to look."""

from __future__ import annotations

from pathlib import Path

from lloydia.backends import cuda


def test_every_module_is_named():
    there = {path.stem for path in Path(cuda.__file__).parent.glob("*.py")} - {"__init__"}
    named = {name for name in there if f":mod:`{name}`" in cuda.__doc__}
    assert there - named == set()
