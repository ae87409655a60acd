"""Run the installed scikit-learn's own tests of k-means against another implementation.

    python tests/sklearn_suite.py                        # lloydia, float64 and float32
    python tests/sklearn_suite.py sklearn.cluster        # the control: scikit-learn itself

The source of ``sklearn.cluster.tests.test_k_means`` is copied with one block more: right after the
imports, the public names are bound to those of the module under test, and `make_blobs`, which draws
most of the data, to one that returns the dtype asked for.  Nothing else of the tests is changed.

A test is left out, by rule and counted, when it does not concern the public behaviour of these:
"private" reads a private attribute or a name of scikit-learn's private cluster modules;
"other subject" names none of the public names.

The last line printed is a JSON object of the counts; the exit status is 0 if all tests passed, 1 if
any failed and 2 if none ran.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PUBLIC = ("KMeans", "MiniBatchKMeans", "k_means", "kmeans_plusplus")
BIND = """
from {module} import {names}
def make_blobs(*args, _draw=make_blobs, **kwargs):
    X, *rest = _draw(*args, **kwargs)
    return (X.astype("{dtype}"), *rest)
"""


def source() -> str:
    """Return the text of the installed scikit-learn's test module."""
    spec = importlib.util.find_spec("sklearn.cluster.tests.test_k_means")
    if spec is None or spec.origin is None:
        raise SystemExit("This scikit-learn is installed without its tests.")
    return Path(spec.origin).read_text(encoding="utf-8")


def rebind(text: str, module: str, dtype: str) -> str:
    """Return the source with the public names taken from another module."""
    imports = (ast.Import, ast.ImportFrom)
    last = max(node.end_lineno or 0 for node in ast.parse(text).body if isinstance(node, imports))
    lines = text.splitlines()
    block = BIND.format(module=module, names=", ".join(PUBLIC), dtype=dtype)
    return "\n".join([*lines[:last], block, *lines[last:]])


def reasons(text: str) -> dict[str, str]:
    """Return, for every test function that is left out whatever its parameters, the reason."""
    tree = ast.parse(text)
    private = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn.cluster._")
        for alias in node.names
    }
    result = {}
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        attributes = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        hidden = {a for a in attributes if a.startswith("_") and not a.startswith("__")}
        if names & private or hidden:
            result[node.name] = "private"
        elif not names & set(PUBLIC):
            result[node.name] = "other subject"
    return result


class Suite:
    """The pytest plugin that selects the tests and counts the outcomes."""

    def __init__(self, left_out: dict[str, str], dtype: str):
        self.left_out = left_out
        self.fixtures = {"global_random_seed": 42, "global_dtype": np.dtype(dtype).type}
        self.counts: Counter[str] = Counter()

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Stand in for scikit-learn's conftest, which defines these two fixtures."""
        for name, value in self.fixtures.items():
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, [value])

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Drop what is left out."""
        kept = []
        for item in items:
            reason = self.left_out.get(item.originalname)
            if reason is None:
                kept.append(item)
            else:
                self.counts[f"left out: {reason}"] += 1
        items[:] = kept

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count a test once: at its call, or where its set-up or its end goes wrong."""
        if report.when == "call" or not report.passed:
            self.counts[report.outcome] += 1


def run(module: str, dtype: str, chosen: str = "") -> Counter[str]:
    """Run the suite, or the chosen tests of it, on a module; return how many passed, failed, ..."""
    text = source()
    suite = Suite(reasons(text), dtype)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"test_k_means_{dtype}.py"
        path.write_text(rebind(text, module, dtype), encoding="utf-8")
        options = ["-q", "-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider"]
        quiet = ["-W", "ignore::pytest.PytestUnknownMarkWarning", "--tb=short", "-k", chosen]
        status = pytest.main([*options, *quiet, str(path)], plugins=[suite])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(2)
    return suite.counts


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("module", nargs="?", default="lloydia", help="where KMeans is found")
    parser.add_argument("--dtypes", nargs="+", default=["float64", "float32"])
    parser.add_argument("-k", default="", metavar="EXPRESSION", help="pytest's: which of the tests")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    for dtype in arguments.dtypes:
        counts += run(arguments.module, dtype, arguments.k)
    print(json.dumps(dict(sorted(counts.items()))))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
