"""The pages of the commands, as the site has them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

EXTENSION = Path(__file__).resolve().parents[2] / "docs/_ext/command_pages.py"


@pytest.fixture(scope="module")
def pages():
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("command_pages", EXTENSION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.command_pages


def test_usage_begins_with_the_command(pages, monkeypatch):
    # As python -m sphinx runs.
    origin = "/somewhere/sphinx/__main__.py"
    main = SimpleNamespace(__spec__=SimpleNamespace(name="sphinx.__main__", origin=origin))
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", [origin])
    found = pages()
    assert {"fit", "predict", "score", "segment", "quantize", "info", "ladder"} <= set(found)
    for name, text in found.items():
        usages = re.findall(r"^```console\n(lloydia .*)\n```$", text, re.MULTILINE)
        assert usages, name
        for usage in usages:
            assert re.match(rf"lloydia (--)?{re.escape(name)}\b", usage)
            assert "sphinx" not in usage
    assert sys.argv == [origin]
