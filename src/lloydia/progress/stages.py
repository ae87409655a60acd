"""Stages: loops of many steps of one kind, such as the centres of a seeding, for displays.

Without a watcher a stage costs nothing: its loop runs over the items themselves.
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
    """A list, a range, an array: it has a length, and its items can be looked at one by one."""

    def __len__(self) -> int:
        """Return how many items there are."""

    def __iter__(self) -> Iterator[OneOf]:
        """Give the items."""


@dataclass(eq=False)
class Stage:
    """A loop that is under way.

    Attributes
    ----------
    name : str
        What its steps are: "centers", "rounds", "runs", "blocks", "bytes", ...
    total : int
        How many steps it has; it may end after fewer.
    done : int
        How many of them are done.
    position : callable, optional
        Returns how many are done, in the place of `done`; another thread may call it.
    is_over : bool
    """

    name: str
    total: int
    done: int = 0
    position: Callable[[], int] | None = None
    is_over: bool = False


# Is called as a stage begins, after each of its steps, and as it ends.
Watcher = Callable[[Stage], object]

_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("stage_watchers", default=())


@contextmanager
def watch_stages(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` with every stage in this context, after each of its steps."""
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


def steps(name: str, items: Items[Item], before: int = 0) -> Iterable[Item]:
    """Return the items of a loop; for watchers each is a step of a stage.

    `before` is how many steps of that stage are done before the loop.
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
    """Open a stage for what is no loop over items.

    Parameters
    ----------
    name, total, done, position
        As in :class:`Stage`.

    Yields
    ------
    callable
        Counts so many steps as done.
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
