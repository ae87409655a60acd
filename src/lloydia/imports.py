"""Late imports of large libraries, when they are first needed."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

__all__ = ["load", "uncollected", "uninterrupted"]

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


def uninterrupted(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that ends before an interrupt (Ctrl-C) takes effect.

    Use it for imports and compilations: a library whose import was interrupted cannot be imported
    again, and Numba cannot compile again after some interrupts.
    """

    @wraps(function)
    def delaying(*args: P.args, **kwargs: P.kwargs) -> R:
        handler = signal.getsignal(signal.SIGINT)
        interrupts: list[Any] = []
        if not callable(handler):
            return function(*args, **kwargs)
        try:
            signal.signal(signal.SIGINT, lambda *interrupt: interrupts.append(interrupt))
        except ValueError:
            # Interrupts are for the main thread, and this is another one.
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            signal.signal(signal.SIGINT, handler)
            if interrupts:
                handler(*interrupts[0])

    return delaying


_loaded: dict[str, ModuleType] = {}


def load(module: str) -> ModuleType:
    """Import a module, or return it if it is imported already."""
    there = _loaded.get(module)
    # importlib.import_module takes several times as long for an imported module.
    if there is None or sys.modules.get(module) is not there:
        there = _loaded[module] = _load_anew(module)
    return there


@uninterrupted
@uncollected
def _load_anew(module: str) -> ModuleType:
    return import_module(module)
