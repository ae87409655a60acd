"""Progress on standard error, where that is a terminal; nothing otherwise.

It is one line: what the command does at present, a bar, the time since it began and the time that
is left.  The line appears after DELAY seconds and is erased at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from lloydia.progress.estimates import Clock, Pace, duration
from lloydia.progress.iterations import watch
from lloydia.progress.stages import Stage, watch_stages
from lloydia.spelling import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Seconds after which a command shows what it does.
DELAY = 0.5

# Columns of the bar; a terminal with less room shows none.
WIDEST, NARROWEST = 30, 5

ITERATIONS, BLOCKS = "iterations", "blocks"

# What is said of the present step of a stage; a stage that is not listed has a bar alone.
STEPS = {
    "runs": "run {:,} of {:,}",
    "centers": "seeding: centre {:,} of {:,}",
    "rounds": "seeding: round {:,} of {:,}",
    ITERATIONS: "iteration {:,}, at most {:,}",
    BLOCKS: "block {:,} of {:,}",
    "images": "image {:,} of {:,}",
}
# What is said of the time that is left, where other work may follow that of the stage.
LEFT = {
    "centers": "about {} of seeding left",
    "rounds": "",
    ITERATIONS: "at most {} left",
    BLOCKS: "about {} of this pass left",
}
# Of iterations within one step of another stage.
LEFT_WITHIN = {
    "runs": "at most {} of this run left",
    "images": "at most {} of this image left",
}


class Status:
    """What a command does at present, and how much of it is done.

    Parameters
    ----------
    label : str
        What the command does, where no stage says more.
    clock : callable
        Returns seconds.

    Attributes
    ----------
    open : list of (Stage, Pace)
        The stages that are under way, the outermost first.
    """

    def __init__(self, label: str, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self.say(label)
        self.began = clock()
        self.open: list[tuple[Stage, Pace]] = []

    def say(self, label: str) -> None:
        """Name what the command does from now on, where no stage says more."""
        self.label = printable(label)

    def on_stage(self, stage: Stage) -> None:
        """Take note of a stage that has begun, is a step further, or is over."""
        known = [one for one, _ in self.open]
        if stage in known:
            place = known.index(stage)
            # The end of a step is that of all stages within it.
            del self.open[place + (not stage.is_over) :]
            if not stage.is_over:
                self.open[place][1].note(stage.done)
        elif not stage.is_over:
            if known and known[-1].name == ITERATIONS and stage.name != BLOCKS:
                del self.open[-1]
            self.open.append((stage, Pace(self.clock, stage.done)))

    def on_iteration(self, report: Any) -> None:
        """Take note of an iteration that is over."""
        if not self.open or self.open[-1][0].name != ITERATIONS:
            pace = Pace(self.clock, report.iteration - 1)
            self.open.append((Stage(ITERATIONS, report.max_iter), pace))
        stage, pace = self.open[-1]
        stage.done = report.iteration
        pace.note(report.iteration)

    def words(self) -> str:
        """Return what is done at present."""
        said = [
            STEPS[stage.name].format(min(stage.done + 1, stage.total), stage.total)
            for stage, _ in list(self.open)
            if stage.name in STEPS and stage.total > 1
        ]
        return ": ".join(said) or self.label

    def fraction(self) -> float | None:
        """Return which part of the present stage is done; None where no stage is under way.

        Blocks count where they are no part of a step of another stage.
        """
        known = [stage for stage, _ in list(self.open) if stage.total > 1]
        inner = [stage for stage in known if stage.name not in (BLOCKS, "runs")] or known
        return min(_done(inner[-1]) / inner[-1].total, 1.0) if inner else None

    def left(self) -> str:
        """Return the time that is left; nothing where it is unknown."""
        stages = [(stage, pace) for stage, pace in list(self.open) if stage.total > 1]
        for stage, pace in stages:
            pace.note(_done(stage))
            seconds = pace.seconds_left(stage.total)
            if seconds is not None:
                words = LEFT.get(stage.name, "about {} left")
                if stage.name == ITERATIONS:
                    words = LEFT_WITHIN.get(stages[0][0].name, words)
                return words.format(duration(seconds))
        return ""


def _done(stage: Stage) -> int:
    return stage.done if stage.position is None else stage.position()


@contextmanager
def progress(label: str, *, json: bool = False, timed: bool = False) -> Iterator[Status]:
    """Show what is done within, where standard error is a terminal and people read the result.

    Parameters
    ----------
    label : str
        What is done, where no stage says more.
    json : bool
        Whether the result is for another program: then nothing is shown.
    timed : bool
        Whether fits within are timed: then none of them is watched.
    """
    status = Status(label)
    if json or not sys.stderr.isatty():
        yield status
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if console.is_dumb_terminal:
        yield status
        return
    line = _line(status, console)
    with ExitStack() as shown:
        shown.enter_context(
            Live(get_renderable=line, console=console, transient=True, refresh_per_second=8)
        )
        if not timed:
            shown.enter_context(watch(status.on_iteration))
            shown.enter_context(watch_stages(status.on_stage))
        yield status


def _line(status: Status, console: Console) -> Callable[[], RenderableType]:
    """Return the function that draws the line; it is called in a thread of the display."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

    spinner = Spinner("line")

    def draw() -> RenderableType:
        elapsed = status.clock() - status.began
        if elapsed < DELAY:
            return Group()
        minutes, seconds = divmod(int(elapsed), 60)
        words, left = Text(status.words()), status.left()
        time_spent = Text(f"{minutes}:{seconds:02}" + (f", {left}" if left else ""))
        parts: list[RenderableType] = [spinner, words]
        room = console.width - len(words.plain) - len(time_spent.plain) - 4
        fraction = status.fraction()
        if fraction is not None and room >= NARROWEST:
            parts.append(ProgressBar(1.0, fraction, width=min(room, WIDEST)))
        grid = Table.grid(padding=(0, 1, 0, 0))
        for _ in (*parts, time_spent):
            grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_row(*parts, time_spent)
        return grid

    return draw
