"""An iteration of rows of which only the half-precision copy is on the GPU.

Certified rows need nothing else.  Ambiguous rows and rows that change are listed; the host gathers
and sends only these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from queue import SimpleQueue

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.run_state import (
    N_AMBIGUOUS,
    N_CHANGED,
    N_NINE,
    N_UNRESOLVED,
    SIZE,
)
from lloydia.backends.cuda.matmul.candidates import COUNT, RECORD
from lloydia.backends.cuda.matmul.memory import TensorMemory
from lloydia.backends.cuda.matmul.recheck_all import recheck_all
from lloydia.backends.cuda.out_of_core.blocks import Block, Shared
from lloydia.backends.cuda.out_of_core.counted import queue_tally
from lloydia.backends.cuda.out_of_core.gathered import Gathered
from lloydia.backends.cuda.out_of_core.sending import Sender
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.update.sorted_sums import queue_sorted_sums

__all__ = ["Listed", "Picked", "step_listed"]


@dataclass(frozen=True)
class Picked:
    """Some rows of a block; kernels read it as :class:`dataset.Dataset`, which has all rows.

    Attributes
    ----------
    X : torch.Tensor of shape (m, d)
    n_samples : int
        Places that their candidates take.
    """

    X: torch.Tensor
    n_samples: int
    batch_size = 1

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.X.device


class Listed:
    """The first half of a block's iteration, queued: it lists the rows that are needed.

    Parameters
    ----------
    block : Block
        Its half-precision copy is on the GPU.
    memory : TensorMemory
        The memory to use; the lists are there until :meth:`finish` has been queued.
    """

    def __init__(self, block: Block, memory: TensorMemory) -> None:
        self.block, self.memory = block, memory
        block.n_distances += block.data.n_samples * len(block.used)
        self.scan = copy(memory.scan)
        self.scan.rows, self.scan.fp16_rows = block.data, block.data.fp16_rows
        block.record(("certify", id(memory)), self._certify)
        self.lists = AsyncCopy(
            torch.cat([memory.run_state, memory.changes.rows, self.scan.ambiguous])
        )

    def _certify(self) -> None:
        memory, scan = self.memory, self.scan
        scan.centers.pack(scan.fp16_rows, memory.current, memory.run_state)
        for queue in scan.certifying(memory.changes._replace(labels=self.block.labels)):
            queue()

    def rows(self) -> NDArray[np.int32]:
        """Wait for the lists; return the rows that changed, then the ambiguous ones."""
        values = self.lists.numpy()
        counts = values[
            [N_CHANGED.value, N_AMBIGUOUS.value, N_UNRESOLVED.value, N_NINE.value]
        ].tolist()
        self.n_changed, self.n_ambiguous, self.n_unresolved, n_nine = counts
        self.n_nine = min(n_nine, (self.block.data.n_samples - self.n_ambiguous) // RECORD.value)
        changed, ambiguous = values[SIZE:].reshape(2, -1)
        return np.concatenate([changed[: self.n_changed], ambiguous[: self.n_ambiguous]])

    def finish(self, X: torch.Tensor) -> None:
        """Queue the second half, given the rows that were listed.

        Row numbers are now places among them: first the changed rows, then the ambiguous ones.
        """
        memory, block, n_changed = self.memory, self.block, self.n_changed
        listed = torch.cat(
            [memory.changes.rows[:n_changed], self.scan.ambiguous[: self.n_ambiguous]]
        ).long()
        places = torch.arange(len(listed), dtype=torch.int32, device=listed.device)
        where = torch.empty(block.data.n_samples, dtype=torch.int32, device=listed.device)
        where[listed] = places
        labels = block.labels[listed]
        old = memory.changes.old.new_empty(len(listed))
        old[:n_changed] = memory.changes.old[:n_changed]
        changes = LabelChanges(labels, places.clone(), old, memory.run_state)
        # A copy begins at a multiple of 16 bytes; for other addresses kernels are compiled again.
        ambiguous = places[n_changed:].clone()
        if self.scan.small:
            recheck_all(Picked(X, len(X)), self.scan.centers, ambiguous, changes)
        else:
            candidates = self.candidates(where)
            unresolved = where[self.scan.unresolved[: self.n_unresolved].long()]
            rows = Picked(X, len(candidates))
            some = ambiguous, unresolved, candidates
            for queue in self.scan.rechecking(rows, memory.current, *some, changes):
                queue()
        fixed_point_grid = block.data.fixed_point_grid
        if fixed_point_grid.weights is not None:
            fixed_point_grid = replace(fixed_point_grid, weights=fixed_point_grid.weights[listed])
        memory.cluster_sums.sorted_updates.sort(changes)
        queue_sorted_sums(
            X, fixed_point_grid, memory.cluster_sums.sorted_updates, memory.run_state, memory.sums
        )
        block.labels[listed] = labels

    def candidates(self, where: torch.Tensor) -> torch.Tensor:
        """Return the candidates of the ambiguous rows, and the records, which begin with a row."""
        n, size = self.block.data.n_samples, RECORD.value * self.n_nine
        found = self.scan.candidates
        found = torch.cat([found[: self.n_ambiguous], found[n - size : n]])
        records = found[self.n_ambiguous :].view(self.n_nine, RECORD.value * COUNT.value)
        records[:, 0] = where[records[:, 0].long()]
        return found


def step_listed(
    numbers: Sequence[int], blocks: Sequence[Block], shared: Shared, sender: Sender
) -> None:
    """Queue an iteration of some blocks, whose rows have labels.

    Two blocks are in progress: the device lists the rows of one while those of the other arrive.
    """
    waiting: SimpleQueue[tuple[int, Listed] | None] = SimpleQueue()
    under_way: list[Listed] = []

    def begin(i: int) -> None:
        """Queue the first half of block i, if it exists."""
        if i < len(numbers):
            memory = shared.runs[i % len(shared.runs)].memory
            under_way.append(Listed(blocks[numbers[i]], memory))
            waiting.put((numbers[i], under_way[-1]))

    def fresh() -> Iterator[tuple[int, Gathered]]:
        """Yield the listed rows of each block once the device has them; in the sender's thread."""
        while (begun := waiting.get()) is not None:
            number, listed = begun
            start, stop = sender.host.edges[number : number + 2].tolist()
            yield number, Gathered(sender.host.source[start:stop], listed.rows())

    if not numbers:
        return
    for i in range(len(shared.runs)):
        begin(i)
    try:
        for i, (_, X) in enumerate(sender.send(fresh(), len(numbers))):
            listed = under_way.pop(0)
            listed.finish(listed.block.in_compute_dtype(X))
            queue_tally(listed.memory.run_state, shared.counts)
            begin(i + len(shared.runs))
    finally:
        # An error: nothing waits for the lists that were queued.
        for _ in shared.runs:
            waiting.put(None)
