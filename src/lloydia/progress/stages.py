"""Stages for progress displays: loops of many similar steps, such as the centres of a seeding.

Without a watcher a stage costs nothing, because the loop then runs over the items themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, TypeVar

__all__ = ["Stage", "Watcher", "stage", "steps", "watch_stages"]

Item = TypeVar("Item")
OneOf = TypeVar("OneOf", covariant=True)


class Items(Protocol[OneOf]):
    """A list, a range, an array, or another iterable with a length."""

    def __len__(self) -> int:
        """Return the number of items."""

    def __iter__(self) -> Iterator[OneOf]:
        """Yield the items."""


@dataclass(eq=False)
class Stage:
    """A running loop.

    Attributes
    ----------
    name : str
        The kind of its steps: "centers", "rounds", "runs", "blocks", "bytes", ...
    total : int
        The number of steps; the loop may end after fewer.
    done : int
        The number of completed steps.
    position : callable, optional
        It returns the number of completed steps, instead of `done`; any thread may call it.
    is_over : bool
        Whether the loop has ended.
    """

    name: str
    total: int
    done: int = 0
    position: Callable[[], int] | None = None
    is_over: bool = False


# A watcher is called when a stage begins, after each of its steps, and when it ends.
Watcher = Callable[[Stage], object]

_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("stage_watchers", default=())


@contextmanager
def watch_stages(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` at the start, after each step and at the end of each stage in this context."""
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


def steps(name: str, items: Items[Item], before: int = 0) -> Iterable[Item]:
    """Return the items of a loop; if there are watchers, each item is a step of a stage.

    `before` is the number of steps of that stage that are done before the loop.
    """
    return _watched(name, items, before) if _watchers.get() else items


def _watched(name: str, items: Items[Item], before: int) -> Iterator[Item]:
    with stage(name, before + len(items), before) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def stage(
    name: str, total: int, done: int = 0, position: Callable[[], int] | None = None
) -> Iterator[Callable[[int], None]]:
    """Open a stage for work that is not a loop over items.

    Parameters
    ----------
    name, total, done, position
        As in :class:`Stage`.

    Yields
    ------
    callable
        Call it with the number of steps that have been completed.
    """
    watchers, one = _watchers.get(), Stage(name, total, done, position)

    def notify() -> None:
        for watcher in watchers:
            watcher(one)

    def advance(count: int) -> None:
        one.done += count
        notify()

    notify()
    try:
        yield advance
    finally:
        one.is_over = True
        notify()
