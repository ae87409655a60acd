"""Several runs at the same time, each a member of a batch: in step, or in turns.

A run (:func:`run.steps`) yields where it would wait for its engine.  Runs in step make the same
iteration together and wait once for all of them.  Runs in several lanes take turns: while one would
wait, the host queues the work of the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

from lloydia.backends import StreamContext
from lloydia.backends.reports import PendingStop
from lloydia.loop.run import Result, Run

__all__ = ["Turns", "about", "in_step", "interleave", "outcome"]

# Yields the report that it waits for, as a run does; it stores the results itself.
Turns = Generator[PendingStop | None, None, None]


@contextmanager
def about(member: int) -> Iterator[None]:
    """Add the number of the member to errors raised within."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This is member {member} of the batch.")
        raise


def in_step(runs: dict[int, Run], empty_stops: bool) -> dict[int, Run]:
    """Make the iterations of several runs in step; return the runs that are ready for `outcome`.

    With `empty_stops`, a run with empty clusters is closed and not returned.
    """
    going, ended = dict(runs), {}
    while going:
        late: dict[int, PendingStop] = {}
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
            if empty_stops and found is not None and found.n_empty:
                going.pop(b).close()
    return dict(sorted(ended.items()))


def outcome(run: Run) -> Result:
    """Return the result of a run that has no more waits."""
    try:
        next(run)
    except StopIteration as end:
        return end.value
    raise AssertionError("The run continues after its end.")


def interleave(work: Iterable[tuple[StreamContext, Turns]]) -> None:
    """Do the work of several lanes in turns: when one would wait, the next one continues."""
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
