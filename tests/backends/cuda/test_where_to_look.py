"""Packages say what their modules are, and import only from packages below them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lloydia.backends import cuda

HERE = Path(cuda.__file__).parent
# From the top.  The engine's own modules are apart: a package of one of these names, or "engine".
LAYERS = (
    "batched", "out_of_core", "multi_gpu", "engine", "seeding", "matmul", "low_dim", "update",
    "rows", "device_functions", "runtime", "protocols",
)  # fmt: skip
PACKAGES = [path.parent for path in sorted(HERE.rglob("__init__.py"))]


def layer(parts):
    """Return the number of the layer of a module, by the names after ``lloydia.backends.cuda``."""
    return LAYERS.index(parts[0] if parts[0] in LAYERS else "engine")


def imported(path):
    """Return what a module imports of the engine, for its annotations as well."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            if parts[:3] == ["lloydia", "backends", "cuda"]:
                found.append(parts[3:] or [node.names[0].name])
    return found


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_module_is_named(package):
    there = {path.stem for path in package.glob("*.py")} - {"__init__"}
    there |= {path.parent.name for path in package.glob("*/__init__.py")}
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    assert there - {name for name in there if f":mod:`{name}`" in text} == set()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_no_package_has_more_than_20_modules(package):
    assert len([path for path in package.glob("*.py") if path.stem != "__init__"]) <= 20


def test_imports_go_down():
    upward = [
        f"{'.'.join(own)} imports {'.'.join(other)}"
        for path in sorted(HERE.rglob("*.py"))
        if (own := path.relative_to(HERE).with_suffix("").parts)[-1] != "__init__"
        for other in imported(path)
        if layer(other) < layer(own)
    ]
    assert upward == []
