"""Parts on the workers of a Dask cluster (``dask.distributed``).

Each worker holds a :class:`~lloydia.backends.cluster.member.Member`: the partitions that are there,
as parts of the local engine.  A question is one task a worker, whatever the number of partitions,
with the worker's threads inside.  What is sent to all goes out once if it is large, and workers
hand it on to each other; what adds up is added on the workers, :data:`FAN` answers at a time.

A worker that dies takes the state of its parts with it, not their recipe: Dask makes the rows again
elsewhere, and the :class:`~lloydia.backends.cluster.history.History` leads them to where they were,
with the same bits.  All that the client keeps is that history, a few rows and centres.
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
from lloydia.backends.cluster.workers import gathered, mapped, places_of, sent, settled
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

    def __init__(
        self, X: Partitions, weights: Weights | None, device: str, n_threads: int | None
    ) -> None:
        self.client, self.chunks = X.client, X.lengths
        self.name = X.facts[0].place if device == "auto" else device
        self.dtype, self.n_features = X.dtype, X.shape[1]
        # Where each partition that has rows is: its member, and its number there.
        places: dict[int, tuple[int, int]] = {}
        self.members: list[Future] = []
        # Where each of them is, as far as known.
        self.addresses: list[Sequence[str]] = []
        for held, w in zip(X.held, weights.held if weights else repeat(None)):
            if not any(self.chunks[p] for p in held.numbers):
                continue
            places |= {p: (len(self.members), i) for i, p in enumerate(held.numbers)}
            digests = [X.facts[p].digest for p in held.numbers]
            digests += [weights.digests[p] for p in held.numbers] if weights else []
            given = (held.rows, w, digests, device, n_threads)
            self.members.append(submit_at(self.client, held.address, Member, *given))
            self.addresses.append(held.address)
        self.everywhere = [places[p] for p, n in enumerate(self.chunks) if n]
        # A part is a partition that has rows of positive weight.
        counted = weights.positive if weights else self.chunks
        self.places = [places[p] for p, n in enumerate(counted) if n]
        self.lengths: Sequence[int] = [n for n in counted if n]
        # The members that have parts, which are asked.
        self.asked = sorted({m for m, _ in self.places})
        self.history = History()
        # The number of the last question, and of the last one that changed the parts.
        self.turn = self.changed = 0
        # Results of the last question: told to be forgotten together with the next one's coming.
        self.kept: list[Future] = []

    def each(self, method: str, *arguments: Any) -> list[Any]:
        found = self._ask(method, arguments, dict.fromkeys(self.asked))
        return [found[m][i] for m, i in self.places]

    def total(self, method: str, *arguments: Any) -> Any:
        everyone = dict.fromkeys(self.asked)
        return reduce(add, self._ask(method, arguments, everyone, adds=True).values())

    def some(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        own: dict[int, Any] = {}
        for part, given in arguments.items():
            m, i = self.places[part]
            own.setdefault(m, {})[i] = given
        found = self._ask(method, (), own)
        return {part: found[m][i] for part in arguments for m, i in [self.places[part]]}

    def labels(self) -> NDArray[np.int32]:
        common = {"state": self.changed, "centers": self.history.centers()}
        return self._array(member.labels, np.dtype(np.int32), (), **common)

    def distances(self, centers: NDArray) -> NDArray:
        return self._array(member.distances, self.dtype, (len(centers),), centers=centers)

    def _ask(
        self, method: str, arguments: tuple, own: Mapping[int, Any], adds: bool = False
    ) -> dict[int, Any]:
        """Ask members, by number, each with its own arguments (None: the same); return answers.

        Sums come by the number of the first member that they are of.
        """
        self.turn += 1
        question = Question(self.turn, self.changed, method, adds)
        given = sent(self.client, arguments)
        # The second time with all that a member needs which has lost its state.
        for history in (None, self.history.asked):
            asked = self._map(
                member.answer, list(own), list(own.values()),
                question=question, arguments=given, history=sent(self.client, history),
            )  # fmt: skip
            self.kept = answers = self._folded(asked) if adds else asked
            found = gathered(self.client, answers)
            if not any(answer is None for answer in found):
                break
        if history is not None:
            # They may be elsewhere now.
            for m, address in zip(own, places_of(self.client, asked)):
                self.addresses[m] = address
        if method in CHANGES:
            self.history.add(method, arguments)
            self.changed = self.turn
        return dict(zip(own, found))

    def _map(
        self, task: Callable, members: Sequence[int], *own: Sequence, **common: Any
    ) -> list[Future]:
        """Have members do a task where they are."""
        places = [self.addresses[m] for m in members]
        return mapped(self.client, places, task, [self.members[m] for m in members], *own, **common)

    def _folded(self, answers: Sequence[Future]) -> list[Future]:
        """Have sums added on the workers until there are few."""
        while len(answers) > FAN:
            groups = [answers[i : i + FAN] for i in range(0, len(answers), FAN)]
            answers = self.client.map(member.merge, groups, pure=False)
        return list(answers)

    def _array(
        self, task: Callable, dtype: np.dtype, tail: tuple[int, ...], **common: Any
    ) -> NDArray:
        """Return a Dask array of what a task gives for each partition, in the chunks of X."""
        members, numbers = zip(*self.everywhere)
        given = {name: sent(self.client, value) for name, value in common.items()}
        blocks = self._map(task, members, numbers, **given)
        settled(self.client, blocks)
        name = f"{task.__name__}-{uuid4().hex}"
        end = (0,) * len(tail)
        here = iter(blocks)
        graph = {
            (name, p, *end): next(here) if n else np.empty((0, *tail), dtype)
            for p, n in enumerate(self.chunks)
        }
        chunks = (tuple(self.chunks), *((n,) for n in tail))
        return load("dask.array").Array(graph, name, chunks, dtype=dtype)
