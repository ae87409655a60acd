"""Importing the large libraries that Lloydia stands on, when they are first needed."""

from __future__ import annotations

import gc
from importlib import import_module
from types import ModuleType

__all__ = ["load"]


def load(module: str) -> ModuleType:
    """Import a module with the garbage collector paused.

    Imports make many objects and hardly any garbage: collecting takes a tenth of their time.  The
    collector is left as it was found.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        if running:
            gc.enable()
