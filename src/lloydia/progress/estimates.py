"""Estimates of the time left in a stage, from the pace of its steps so far."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

__all__ = ["Clock", "Pace", "duration"]

Clock = Callable[[], float]

# The least time between two marks: in seconds, and as a fraction of the time since the start.
APART, PART = 0.05, 0.01


class Pace:
    """The pace of a stage, measured over the later half of the completed steps.

    Steps may become faster or slower during a stage.  The first step does not count, because it may
    wait for a compiler or for memory.

    Parameters
    ----------
    clock : callable
        It returns the time in seconds.
    done : int
        The number of steps that are already done.
    """

    def __init__(self, clock: Clock = time.monotonic, done: int = 0) -> None:
        self.clock, self.began = clock, clock()
        # Pairs of a time and the number of steps done; the pace is measured from the first pair.
        self.start, self.marks = done, deque([(self.began, done)])
        self.is_first = True

    def note(self, done: int) -> None:
        """Record that `done` steps are done now."""
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
        """Return the estimated time in seconds until `total` steps are done.

        The result is None before the second step, and when the estimated time has passed.
        """
        (first, done_first), (last, done) = self.marks[0], self.marks[-1]
        if done == done_first:
            return None
        a_step = (last - first) / (done - done_first)
        left = (total - done) * a_step - (self.clock() - last)
        return left if left > 0 else None


def duration(seconds: float) -> str:
    """Return a duration as a text, such as ``"40 s"``, ``"3 min 20 s"`` or ``"2 h 5 min"``.

    Durations below one second are shown as one second.
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
