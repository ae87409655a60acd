"""Progress on standard error, where that is a terminal; nothing otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lloydia.spelling import printable

if TYPE_CHECKING:
    from rich.progress import Progress


def bar(*, counted: bool) -> Progress:
    """Return a progress display on standard error; it leaves nothing behind."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    if counted:
        columns += [BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}")]
    columns += [TimeElapsedColumn(), TextColumn("{task.fields[note]}")]
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty())


@contextmanager
def spinner(label: str) -> Iterator[None]:
    """Show that something of unknown length is under way."""
    with bar(counted=False) as shown:
        shown.add_task(printable(label), total=None, note="")
        yield


@contextmanager
def fit_progress(label: str, max_iter: int) -> Iterator[None]:
    """Show the iterations of the fits within."""
    if not sys.stderr.isatty():
        yield
        return
    from lloydia.loop import watch

    with bar(counted=True) as shown:
        task = shown.add_task(printable(label), total=max_iter, note="")

        def show(report: Any) -> None:
            note = f"{report.n_changed:,} points moved"
            shown.update(task, completed=report.iteration, total=report.max_iter, note=note)

        with watch(show):
            yield
