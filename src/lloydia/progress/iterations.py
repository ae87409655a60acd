"""Who is shown the iterations of fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydia.backends.engine import Report

__all__ = ["is_watched", "watch", "watchers"]

_watchers: ContextVar[tuple[Callable[[Report], object], ...]] = ContextVar("watchers", default=())


@contextmanager
def watch(function: Callable[[Report], object]) -> Iterator[None]:
    """Call `function` with the report of every iteration of any fit in this context.

    For progress displays; it cannot stop a run.
    """
    token = _watchers.set((*_watchers.get(), function))
    try:
        yield
    finally:
        _watchers.reset(token)


def watchers() -> tuple[Callable[[Report], object], ...]:
    """Return the functions to call with the report of every iteration in this context."""
    return _watchers.get()


def is_watched() -> bool:
    """Return whether iterations of fits in this context are to be reported one by one."""
    return bool(_watchers.get())
