"""Which tests need what, and Triton's interpreter made faster."""

import os
import sys
from pathlib import Path

import pytest

from faster_interpreter import make_faster

# Most tests are of kernels, which small data would not reach; commands that tests run inherit it.
os.environ.setdefault("LLOYDIA_NUMPY_SECONDS", "0")

# The mark of all tests in a folder; pyproject.toml says what the marks mean.
MARKS = {"gpu": "gpu", "backends/cuda": "interpreter"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of a folder, before -m chooses among them."""
    here = Path(__file__).parent
    for item in items:
        for folder, mark in MARKS.items():
            if item.path.is_relative_to(here / folder):
                item.add_marker(mark)


def pytest_runtest_setup(item):
    """Make the interpreter faster as soon as a test may use it."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    # On a GPU the same module is loaded, and what it shares with the compiler stays as it is.
    if interpreter is not None and os.environ.get("TRITON_INTERPRET") == "1":
        make_faster(interpreter)
