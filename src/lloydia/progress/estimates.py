"""The time that a stage still takes, by the pace of its steps so far."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

__all__ = ["Clock", "Pace", "duration"]

Clock = Callable[[], float]

# Two marks are at least so far apart: seconds, and a part of the time that has passed.
APART, PART = 0.05, 0.01


class Pace:
    """How long the steps of a stage take: the later half of those that are done.

    Steps may become faster or slower as a stage goes on.  The first one does not count: it may
    wait for a compiler, or for memory.

    Parameters
    ----------
    clock : callable
        Returns seconds.
    done : int
        How many steps were done before.
    """

    def __init__(self, clock: Clock = time.monotonic, done: int = 0) -> None:
        self.clock, self.began = clock, clock()
        # Times, and the steps that were done then; the pace is measured from the first one.
        self.start, self.marks = done, deque([(self.began, done)])
        self.is_first = True

    def note(self, done: int) -> None:
        """Note that so many steps are done now."""
        now, (last, before) = self.clock(), self.marks[-1]
        if done == before:
            return
        if self.is_first:
            self.start, self.is_first = done, False
            self.marks[0] = now, done
            return
        if now - last < max(APART, PART * (now - self.began)):
            return
        self.marks.append((now, done))
        start = self.start
        while len(self.marks) > 2 and self.marks[1][1] - start <= (done - start) / 2:
            self.marks.popleft()

    def seconds_left(self, total: int) -> float | None:
        """Return how long the rest of `total` steps takes.

        None where that is unknown: no second step is done yet, or the rest took as long by now.
        """
        (first, done_first), (last, done) = self.marks[0], self.marks[-1]
        if done == done_first:
            return None
        a_step = (last - first) / (done - done_first)
        left = (total - done) * a_step - (self.clock() - last)
        return left if left > 0 else None


def duration(seconds: float) -> str:
    """Return a time for people, such as ``"40 s"``, ``"3 min 20 s"`` or ``"2 h 5 min"``.

    It is one second at least.
    """
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 10:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
