"""Late imports of large libraries, when they are first needed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import ParamSpec, TypeVar

__all__ = ["load", "uncollected"]

P = ParamSpec("P")
R = TypeVar("R")


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that runs with the garbage collector paused, and restores it afterwards.

    Use it for functions that create many objects and hardly any garbage: garbage collection takes
    a tenth of their time.
    """

    @wraps(function)
    def paused(*args: P.args, **kwargs: P.kwargs) -> R:
        running = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if running:
                gc.enable()

    return paused


_loaded: dict[str, ModuleType] = {}


def load(module: str) -> ModuleType:
    """Import a module, or return it if it is imported already."""
    there = _loaded.get(module)
    # importlib.import_module takes several times as long for an imported module.
    if there is None or sys.modules.get(module) is not there:
        there = _loaded[module] = _load_anew(module)
    return there


@uncollected
def _load_anew(module: str) -> ModuleType:
    return import_module(module)
