"""Which tests need what, and Triton's interpreter made faster.

In the interpreter tests take a third less time.  As a kernel starts, the interpreter replaces the
functions of ``triton.language`` by those for the host; and at every call of a function within the
kernel it looks through all names again, where they are replaced already.  :func:`replace_once`
spares it the latter.
"""

import inspect
import sys
from pathlib import Path

import pytest

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
    """Have it replace once a kernel, as soon as a test may use it."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    if interpreter is not None and interpreter._patch_lang.__module__ != __name__:
        replace_once(interpreter)


def replace_once(interpreter):
    """Have functions within a kernel find what was replaced for the kernel."""
    replace, tl = interpreter._patch_lang, interpreter.tl
    replaced, languages = set(), {}

    def patch_lang(fn):
        names = fn.__globals__
        if id(names) not in languages:
            modules = {value for value in names.values() if inspect.ismodule(value)}
            languages[id(names)] = {tl, tl.core} & modules, names
        wanted, _ = languages[id(names)]
        if wanted <= replaced:
            return interpreter._LangPatchScope()
        scope = replace(fn)
        if not replaced:
            # That of the kernel, which puts back what it has replaced.
            put_back = scope.restore

            def restore():
                replaced.clear()
                put_back()

            scope.restore = restore
        replaced.update(wanted)
        return scope

    interpreter._patch_lang = patch_lang
