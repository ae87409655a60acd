"""What the templates of the API reference need to know of a class."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Give the templates their function."""
    app.connect("config-inited", add_context)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_context(app: Sphinx, config: Any) -> None:
    """Give autosummary's templates the function."""
    config.autosummary_context = {"own_methods": own_methods}


def own_methods(fullname: str) -> list[str]:
    """Return the public methods of a class that Lloydia defines: scikit-learn documents its own."""
    module, _, name = fullname.rpartition(".")
    kind = getattr(importlib.import_module(module), name)
    found = set()
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "lloydia":
            found |= {name for name, value in vars(base).items() if is_method(value)}
    return sorted(name for name in found if not name.startswith("_"))


def is_method(value: Any) -> bool:
    """Return whether a class's attribute is a method of any kind."""
    return isinstance(value, classmethod | staticmethod) or inspect.isfunction(value)
