"""Several runs under one host, each a member of a batch: in step, or in turns.

A run (:func:`run.steps`) halts where it would wait for its engine.  Runs of one group do their
iterations together: one wait is for all of them.  Of those in several lanes, the host queues
the work of the others while one would wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

from lloydia.backends import Lane
from lloydia.backends.engine import LateStop
from lloydia.loop.run import Result, Run

__all__ = ["Turns", "about", "in_step", "interleave", "outcome"]

# Gives what it waits for next, as a run does; where results go is its own affair.
Turns = Generator[LateStop | None, None, None]


@contextmanager
def about(member: int) -> Iterator[None]:
    """Say which member of the batch an error is about."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This is member {member} of the batch.")
        raise


def in_step(runs: dict[int, Run], settles: bool) -> dict[int, Run]:
    """Do runs that wait for the same iterations; return those that ended, but for their results.

    With `settles`, a run goes no further than an iteration with empty clusters.
    """
    going, ended = dict(runs), {}
    while going:
        late: dict[int, LateStop] = {}
        for b, run in runs.items():
            if b in going:
                with about(b):
                    waits_for = next(run)
                if waits_for is None:
                    ended[b] = going.pop(b)
                else:
                    late[b] = waits_for
        for report in late.values():
            report.begin()
        for b, report in late.items():
            found = report.result()
            if settles and found is not None and found.n_empty:
                going.pop(b).close()
    return dict(sorted(ended.items()))


def outcome(run: Run) -> Result:
    """Return the result of a run that waits for nothing more."""
    try:
        next(run)
    except StopIteration as end:
        return end.value
    raise AssertionError("The run goes on after its end.")


def interleave(work: Iterable[tuple[Lane, Turns]]) -> None:
    """Do work of several lanes; while that of one would wait, that of the others goes on."""
    going = deque(work)
    while going:
        lane, turns = going.popleft()
        with lane():
            try:
                late = next(turns)
            except StopIteration:
                continue
            if late is not None:
                late.begin()
        going.append((lane, turns))
