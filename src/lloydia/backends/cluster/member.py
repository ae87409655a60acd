"""The parts of one worker.

A :class:`Member` is the result of a Dask task, and each question is another task that depends on
it.  So Dask runs questions where the rows are, and makes a member again if its worker dies.  A
member that Dask made again, copied to another worker or spilled to disk has its rows but not its
state.  If its state is not the one that a question expects, its answer is None, and the client
sends the question again with the history that leads to that state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import repeat
from operator import add
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cluster.history import CHANGES, Call
from lloydia.backends.cluster.partitions import digest, size_of
from lloydia.backends.part import Part
from lloydia.backends.weighted import WeightedRows
from lloydia.data.arrays import on_host
from lloydia.data.collections import Rows
from lloydia.data.device_arrays import on_gpu
from lloydia.imports import load
from lloydia.spelling import option

__all__ = ["Member", "Question", "answer", "distances", "labels", "merge"]

# Bytes that the state of a row takes, for Dask's bookkeeping: a label, a D, and bounds.
STATE = 24


@dataclass(frozen=True)
class Question:
    """A call of one method of all parts of a group.

    Attributes
    ----------
    turn : int
        Its number, from 1.
    expected : int
        The turn of the last question before it that changed the parts; 0 if there was none.
    method : str
        Of :class:`lloydia.backends.part.Part`.
    adds : bool
        Whether the sum of the answers is wanted.
    """

    turn: int
    expected: int
    method: str
    adds: bool = False


class Member:
    """Parts in this process, and the number of the last question that changed them.

    Parameters
    ----------
    rows : Rows
    weights : list of ndarray, or None
    digests : list of int
        What those of the rows, then of the weights, have been.
    device : str
    n_threads : int or None
        None: as many as the worker has.

    Attributes
    ----------
    state : int
        The turn of the last question that changed the parts; 0 for parts that are new.
    """

    def __init__(
        self,
        rows: Rows,
        weights: list[NDArray] | None,
        digests: list[int],
        device: str,
        n_threads: int | None,
    ) -> None:
        self.rows, self.weights, self.digests = rows, weights, digests
        self.device, self.n_threads = device, n_threads
        self.lock = Lock()
        self.state = 0
        # The turn of the last question, and its answer.
        self.given: tuple[int, Any] = (0, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Member, (self.rows, self.weights, self.digests, self.device, self.n_threads)

    def __sizeof__(self) -> int:
        size = 0
        for rows in self.weighted:
            # The rows of positive weight are a copy where there are others.
            arrays = [rows.every] if rows.positive is None else [rows.every, rows.X]
            size += STATE * rows.every.shape[0] + sum(map(size_of, arrays))
        return size

    @cached_property
    def weighted(self) -> list[WeightedRows]:
        """The rows of each partition, with their weights."""
        weights = repeat(None) if self.weights is None else self.weights
        return [WeightedRows.checked(X, w) for X, w in zip(self.rows.arrays, weights)]

    @cached_property
    def parts(self) -> dict[int, Part]:
        """Partitions that have rows of positive weight, by number.

        They are made within a task, where the worker's threads are known.
        """
        self.refuse_others()
        return {i: self.new_part(i) for i, rows in enumerate(self.weighted) if rows.n_samples}

    def refuse_others(self) -> None:
        """Raise an error if rows or weights are not what they have been."""
        now = [fact.digest for fact in self.rows.facts] + [digest(w) for w in self.weights or ()]
        if now != self.digests:
            raise RuntimeError(
                "A worker was lost, and Dask recomputed its rows (or weights) with other values: a "
                "collection must give the same values whenever it is computed, so do not change "
                "its files during a fit, and seed its random numbers."
            )

    def new_part(self, number: int) -> Part:
        """Return a part in its first state."""
        X, weights = self.weighted[number].X, self.weighted[number].weights
        if on_gpu(X) and self.device == "cpu":
            raise ValueError(
                f"Blocks of X are on GPUs, which {option('device', 'cpu')} does not include: use "
                f"{option('device', 'auto')}, or copy the blocks to the CPU by "
                "X.to_backend('numpy'), or 'pandas' for a data frame."
            )
        if on_gpu(X) or self.device == "cuda":
            name = load("lloydia.backends.cuda.runtime.devices").find("cuda", X)
            return load("lloydia.backends.cuda.multi_gpu.part").place_part(X, weights, name)
        return load("lloydia.backends.cpu.part").CPUPart(X, weights, self.own_threads())

    def own_threads(self) -> int:
        """Return how many threads compute here; called within a task."""
        return self.n_threads or _threads_of_worker()

    def replay(self, history: list[Call], state: int) -> None:
        """Bring the parts from their first state to that of a history."""
        self.__dict__.pop("parts", None)
        for part in self.parts.values():
            # All parts were measured first, before the grid was set.
            part.magnitudes()
            for method, arguments in history:
                getattr(part, method)(*arguments)
        self.state = state


def _threads_of_worker() -> int:
    """Return the threads of this worker, or the processors that it may use where these are fewer.

    Not ``OMP_NUM_THREADS``, which Dask sets to 1 in its workers.
    """
    own = load("distributed").get_worker().state.nthreads
    return min(own, load("lloydia.backends.cpu.runtime.pool").available_threads())


def answer(
    member: Member,
    own: Mapping[int, tuple[Any, ...]] | None,
    question: Question,
    arguments: tuple[Any, ...],
    history: list[Call] | None,
) -> Any:
    """Ask the parts of a member.

    Parameters
    ----------
    member : Member
    own : mapping of int to tuple, or None
        The parts that are asked, by their number in the member, and each one's arguments; None to
        ask all of them the same.
    question : Question
    arguments : tuple
        Where all are asked the same.
    history : list, or None
        What leads to the state that is expected.

    Returns
    -------
    dict of int to object, or one object
        The answers by number, or their sum.  None where the state is another one and there is no
        history.  A question that was answered already has that answer again: Dask runs tasks anew
        whose results were lost.
    """
    with member.lock:
        if member.given[0] == question.turn:
            return member.given[1]
        if member.state != question.expected:
            if history is None:
                return None
            member.replay(history, question.expected)
        if own is None:
            own = dict.fromkeys(member.parts, arguments)
        answers = {i: getattr(member.parts[i], question.method)(*a) for i, a in own.items()}
        result = reduce(add, answers.values()) if question.adds else answers
        if question.method in CHANGES:
            member.state = question.turn
        member.given = (question.turn, result)
        return result


def merge(answers: list[Any]) -> Any:
    """Return the sum of some members' answers; None where one of them has none."""
    return None if any(a is None for a in answers) else reduce(add, answers)


def labels(member: Member, number: int, state: int, centers: NDArray) -> NDArray[np.int32]:
    """Return a partition's labels: those it has in that state, otherwise the same found anew.

    `centers` are those that the labels belong to.
    """
    rows, own = member.weighted[number], np.empty(0, dtype=np.int32)
    with member.lock:
        here = member.state == state
        if here and rows.n_samples:
            own = on_host(member.parts[number].labels())
    if not here:
        member.refuse_others()
        if rows.n_samples:
            part = member.new_part(number)
            part.classify(centers)
            own = on_host(part.labels())
    return rows.labels(own, centers, member.device, member.own_threads())


def distances(member: Member, number: int, centers: NDArray) -> NDArray:
    """Return a part's distances to all centres."""
    return on_host(member.parts[number].distances(centers))
