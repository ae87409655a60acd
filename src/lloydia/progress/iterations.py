"""Functions that receive the reports of all iterations, for progress displays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydia.backends.reports import Report

__all__ = ["is_watched", "watch", "watchers"]

_watchers: ContextVar[tuple[Callable[[Report], object], ...]] = ContextVar("watchers", default=())


@contextmanager
def watch(function: Callable[[Report], object]) -> Iterator[None]:
    """Call `function` with the report of every iteration of all fits in this context.

    The function cannot stop a run.
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
    """Return whether any function receives the reports of iterations in this context."""
    return bool(_watchers.get())
