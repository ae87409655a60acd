"""Parts on the workers of a Dask cluster (``dask.distributed``).

Each worker has a :class:`~lloydia.backends.cluster.member.Member`: its partitions, as parts of the
local engine.  A question is one task a worker, for all its partitions, and uses the worker's
threads.  A large argument is sent once, and workers pass it on to each other; sums are added on the
workers, :data:`FAN` answers at a time.

If a worker dies, the state of its parts is lost, but not their recipe: Dask computes the rows again
elsewhere, and :class:`~lloydia.backends.cluster.history.History` brings the parts to the same
state, with the same bits.  The client only keeps that history, a few rows and centres.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import repeat
from operator import add
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cluster import member
from lloydia.backends.cluster.history import CHANGES, History
from lloydia.backends.cluster.member import Member, Question
from lloydia.backends.cluster.partitions import submit_at
from lloydia.backends.cluster.weights import Weights
from lloydia.backends.cluster.workers import gathered, mapped, places_of, sent, wait_for
from lloydia.backends.device_names import check_device
from lloydia.backends.parts import Parts
from lloydia.data.collections import Partitions
from lloydia.imports import load
from lloydia.spelling import option

if TYPE_CHECKING:
    from distributed import Future

__all__ = ["Cluster", "engine"]

# Answers that are added at a time.
FAN = 8


def engine(X: Partitions, weights: Weights | None, device: str, n_threads: int | None) -> Parts:
    """Return the engine of a collection in its place.

    Raises
    ------
    ValueError
        For a device that workers cannot have.
    """
    check_device(device)
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(
            f"{option('device', device)} is not for Dask: use 'auto', 'cpu', or 'cuda' for workers "
            "that have a GPU each."
        )
    return Parts(Cluster(X, weights, device, n_threads))


class Cluster:
    """The group of parts on workers; see :class:`lloydia.backends.group.Group`.

    Parameters
    ----------
    X : Partitions
    weights : Weights or None
    device, n_threads
        Of each part; None is as many threads as its worker has.
    """

    few_rows_device = "cpu"

    def __init__(
        self, X: Partitions, weights: Weights | None, device: str, n_threads: int | None
    ) -> None:
        self.client, self.chunks = X.client, X.lengths
        self.name = X.facts[0].place if device == "auto" else device
        self.dtype, self.n_features = X.dtype, X.shape[1]
        # The place of each partition that has rows: its member, and its number there.
        places: dict[int, tuple[int, int]] = {}
        self.members: list[Future] = []
        # The worker of each member, as far as known.
        self.addresses: list[Sequence[str]] = []
        for worker, w in zip(X.by_worker, weights.by_worker if weights else repeat(None)):
            if not any(self.chunks[p] for p in worker.numbers):
                continue
            places |= {p: (len(self.members), i) for i, p in enumerate(worker.numbers)}
            digests = [X.facts[p].digest for p in worker.numbers]
            digests += [weights.digests[p] for p in worker.numbers] if weights else []
            given = (worker.rows, w, digests, device, n_threads)
            self.members.append(submit_at(self.client, worker.address, Member, *given))
            self.addresses.append(worker.address)
        self.everywhere = [places[p] for p, n in enumerate(self.chunks) if n]
        # A part is a partition that has rows of positive weight.
        counted = weights.positive if weights else self.chunks
        self.places = [places[p] for p, n in enumerate(counted) if n]
        self.lengths: Sequence[int] = [n for n in counted if n]
        # The members that have parts.
        self.queried = sorted({m for m, _ in self.places})
        self.history = History()
        # The number of the last question, and of the last one that changed the parts.
        self.turn = self.changed = 0
        # Results of the last question: Dask frees them when those of the next one replace them.
        self.results: list[Future] = []

    def each(self, method: str, *arguments: Any) -> list[Any]:
        found = self._query(method, arguments, dict.fromkeys(self.queried))
        return [found[m][i] for m, i in self.places]

    def total(self, method: str, *arguments: Any) -> Any:
        everyone = dict.fromkeys(self.queried)
        return reduce(add, self._query(method, arguments, everyone, adds=True).values())

    def some(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        own: dict[int, Any] = {}
        for part, given in arguments.items():
            m, i = self.places[part]
            own.setdefault(m, {})[i] = given
        found = self._query(method, (), own)
        return {part: found[m][i] for part in arguments for m, i in [self.places[part]]}

    def labels(self) -> NDArray[np.int32]:
        common = {"state": self.changed, "centers": self.history.centers()}
        return self._array(member.labels, np.dtype(np.int32), (), **common)

    def distances(self, centers: NDArray) -> NDArray:
        return self._array(member.distances, self.dtype, (len(centers),), centers=centers)

    def _query(
        self, method: str, arguments: tuple, own: Mapping[int, Any], adds: bool = False
    ) -> dict[int, Any]:
        """Ask members, by number, each with its own arguments (None: the same); return answers.

        A sum is returned under the number of the first member that contributes to it.
        """
        self.turn += 1
        question = Question(self.turn, self.changed, method, adds)
        given = sent(self.client, arguments)
        # The second time with the history, for members that have lost their state.
        for history in (None, self.history.calls):
            queried = self._map(
                member.answer, list(own), list(own.values()),
                question=question, arguments=given, history=sent(self.client, history),
            )  # fmt: skip
            self.results = answers = self._folded(queried) if adds else queried
            found = gathered(self.client, answers)
            if not any(answer is None for answer in found):
                break
        if history is not None:
            # Members may be on other workers now.
            for m, address in zip(own, places_of(self.client, queried)):
                self.addresses[m] = address
        if method in CHANGES:
            self.history.add(method, arguments)
            self.changed = self.turn
        return dict(zip(own, found))

    def _map(
        self, task: Callable, members: Sequence[int], *own: Sequence, **common: Any
    ) -> list[Future]:
        """Run a task on the workers of some members."""
        places = [self.addresses[m] for m in members]
        return mapped(self.client, places, task, [self.members[m] for m in members], *own, **common)

    def _folded(self, answers: Sequence[Future]) -> list[Future]:
        """Add sums on the workers until there are at most FAN."""
        while len(answers) > FAN:
            groups = [answers[i : i + FAN] for i in range(0, len(answers), FAN)]
            answers = self.client.map(member.merge, groups, pure=False)
        return list(answers)

    def _array(
        self, task: Callable, dtype: np.dtype, tail: tuple[int, ...], **common: Any
    ) -> NDArray:
        """Return the results of a task for each partition as a Dask array, in the chunks of X."""
        members, numbers = zip(*self.everywhere)
        given = {name: sent(self.client, value) for name, value in common.items()}
        blocks = self._map(task, members, numbers, **given)
        wait_for(self.client, blocks)
        name = f"{task.__name__}-{uuid4().hex}"
        end = (0,) * len(tail)
        here = iter(blocks)
        graph = {
            (name, p, *end): next(here) if n else np.empty((0, *tail), dtype)
            for p, n in enumerate(self.chunks)
        }
        chunks = (tuple(self.chunks), *((n,) for n in tail))
        return load("dask.array").Array(graph, name, chunks, dtype=dtype)
