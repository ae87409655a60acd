"""Packages say what their modules are, import from those below them only, and never in a circle."""

from __future__ import annotations

import ast
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import lloydia

HERE = Path(lloydia.__file__).parent
# The packages of each engine, from the top; "engine" are its modules that are in none of them.
LAYERS = {
    "cpu": (
        "engine", "steps", "accelerated", "seeding", "scan", "rows", "update", "simd", "runtime",
    ),
    "cuda": (
        "batched", "out_of_core", "multi_gpu", "engine", "seeding", "matmul", "low_dim", "update",
        "rows", "device_functions", "runtime",
    ),
}  # fmt: skip
# All of Lloydia, from the top; the longest name counts.  The root has the names that users import.
FLOORS = (
    ("__main__",), ("cli",), ("ladder",), ("bench",), ("images", "metrics", "plots"),
    ("", "dask", "kmeans", "minibatch"), ("estimators",), ("callbacks",),
    ("data.checkpoints", "data.models"), ("parameters",), ("loop",), ("seeding",),
    ("stopping", "progress"), ("backends",), ("seeding.given", "seeding.generator"), ("data",),
    (
        "algorithms", "control_groups", "backends.engine", "backends.reports",
        "backends.run_settings", "progress.stages",
    ),
    ("exact",),
    ("caller", "imports", "spelling", "version"),
)  # fmt: skip
PACKAGES = [
    path.parent for name in LAYERS for path in sorted((HERE / "backends" / name).rglob("*.py"))
    if path.name == "__init__.py"
]  # fmt: skip
# Numbered rungs are read in a row.
LARGE = {HERE / "ladder"}


def name_of(path):
    """Return the dotted name of a module."""
    parts = ("lloydia", *path.relative_to(HERE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in HERE.rglob("*.py")}


def imported(name):
    """Return which modules of Lloydia one imports as it is imported, or for its annotations."""
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    later = {id(node) for function in functions for node in ast.walk(function)}
    found = set()
    for node in ast.walk(tree):
        if id(node) in later:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name} has a relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in FILES else node.module)
    return {module for module in found if module in FILES} - {name}


def test_no_module_is_imported_in_a_circle():
    try:
        TopologicalSorter({name: imported(name) for name in FILES}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("engine", LAYERS)
def test_imports_go_down(engine):
    package, layers = f"lloydia.backends.{engine}.", LAYERS[engine]

    def layer(name):
        own = name.removeprefix(package).split(".")[0]
        # Protocols, switches and the choice of kernels are below all, whoever has them.
        last = name.endswith((".protocols", ".options", ".dispatch", ".run_kinds"))
        return len(layers) if last else layers.index(own if own in layers else "engine")

    upward = [
        f"{name} imports {other}"
        for name in FILES
        for other in (imported(name) if name.startswith(package) else ())
        if other.startswith(package) and layer(other) < layer(name) < len(layers)
    ]
    assert upward == []


def floor_of(name):
    """Return the floor that a module of Lloydia is on."""
    own = name.removeprefix("lloydia").removeprefix(".")
    parts = own.split(".")
    for count in range(len(parts), 0, -1):
        for number, names in enumerate(FLOORS):
            if ".".join(parts[:count]) in names:
                return number
    raise AssertionError(f"{name} is on no floor: add it to FLOORS.")


def test_imports_of_all_packages_go_down():
    floors = {name: floor_of(name) for name in FILES}
    upward = [
        f"{name} imports {other}"
        for name in FILES
        for other in imported(name)
        if floors[other] < floors[name]
    ]
    assert upward == []


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_every_module_is_named(package):
    there = {path.stem for path in package.glob("*.py")} - {"__init__"}
    there |= {path.parent.name for path in package.glob("*/__init__.py")}
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    assert {name for name in there if f":mod:`{name}`" not in text} == set()


def test_no_folder_has_more_than_20_modules():
    folders = {path.parent for path in FILES.values()} - LARGE
    counts = {folder: len(list(folder.glob("*.py"))) for folder in folders}
    assert {folder: count for folder, count in counts.items() if count > 20} == {}


def test_modules_of_tests_have_names_of_their_own():
    # pytest imports them by these names, from any folder.
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
