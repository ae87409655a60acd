"""The run of a part that has its rows on a GPU.

With other GPUs of the same host nothing of an iteration needs to be sent to the host
(:mod:`multi_gpu.gpus`): the part writes a message, and reads the sum of all parts' messages.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda import run_setup
from lloydia.backends.cuda.dataset import Dataset
from lloydia.backends.cuda.device_functions.run_state import ITERATION, STOPPED
from lloydia.backends.cuda.protocols import Run
from lloydia.backends.cuda.runtime.own_device import on_own_device
from lloydia.backends.cuda.runtime.recording import Recording
from lloydia.backends.cuda.runtime.relocation import Stages
from lloydia.backends.cuda.update.all_reduce import COUNTS, queue_read_message
from lloydia.backends.cuda.update.means import queue_finish
from lloydia.backends.part import Step
from lloydia.backends.run_settings import RunSettings

__all__ = ["OwnRun"]


@on_own_device
class OwnRun:
    """A run over rows that stay on a GPU; see :class:`.part.PartRun` for the methods.

    Parameters
    ----------
    data : Dataset

    Attributes
    ----------
    lag : int
        Iterations of the run that may be in flight.
    message, total : int64 tensor of shape (n_limbs k (d + 1) + COUNTS,)
        The message of this part, and the sum of all parts' messages.
    """

    used: torch.Tensor

    def __init__(self, data: Dataset) -> None:
        self.data, self.device = data, data.device
        self.n_distances = self.n_rechecked = self.lag = 0
        self._run: Run | None = None

    @property
    def run(self) -> Run:
        """The run that was started last."""
        assert self._run is not None, "A run begins with start."
        return self._run

    def start(self, settings: RunSettings) -> None:
        self._begin(settings)
        memory = self.run.memory
        memory.history[0] = memory.current
        size = memory.sums[0].numel() + COUNTS
        self.message = torch.empty(size, dtype=torch.int64, device=self.device)
        self.total = torch.empty_like(self.message)
        self.concluding = Recording()

    def _begin(self, settings: RunSettings) -> None:
        """Make what a run needs, in the memory of the last one."""
        self._run = None
        # The grid is known: that of the total.
        request = run_setup.request_run(self.data, settings)
        self._run, self.lag = run_setup.build(self.data, request)
        self.used = self.run.memory.current

    def _use(self, centers: NDArray) -> None:
        """Make centres of the host the current ones."""
        self.used = self.run.memory.current
        self.used.copy_(torch.from_numpy(np.ascontiguousarray(centers)))

    def step(self, centers: NDArray) -> Step:
        self._use(centers)
        self.contribute()
        message = self.message.cpu().numpy()
        n_changed, n_rechecked = message[-COUNTS:].tolist()
        self.n_distances += self.data.n_samples * len(centers)
        self.n_rechecked += n_rechecked
        memory = self.run.memory
        memory.run_state.zero_()
        memory.run_state[ITERATION.value] = 1
        return Step(n_changed, message[:-COUNTS].reshape(memory.sums.shape[1:]))

    def conclude(self, centers: NDArray) -> None:
        self._use(centers)
        self.assign()

    def classify(self, centers: NDArray) -> None:
        self._begin(RunSettings(np.asarray(centers), "lloyd"))
        self.assign()

    def assign(self) -> None:
        """Assign all rows to the current centres."""
        self.used = self.run.memory.current
        self.run.assign()
        self.n_distances += self.data.n_samples * len(self.used)

    # -- in a run of several GPUs, which compute the same centres from the same sums ---------------

    def contribute(self) -> None:
        """Queue an iteration up to the message."""
        self.run.contribute(self.message)

    def finish(self) -> None:
        """Queue the end of an iteration: centres from the sums of all parts."""
        self.concluding.do(self._conclusion, self.device)

    def _conclusion(self) -> Stages:
        return [
            partial(queue_read_message, self.total, self.run.memory.run_state),
            partial(self._queue_finish, self.total_sums()),
        ]

    def _queue_finish(self, sums: torch.Tensor) -> None:
        queue_finish(sums, self.data.fixed_point_grid, self.run.memory, batch_size=1)

    def total_sums(self) -> torch.Tensor:
        """Return the sums of all parts: int64 of shape (1, n_limbs, k, d + 1)."""
        return self.total[:-COUNTS].view(1, *self.run.memory.sums.shape[1:])

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current."""
        self.run.go_back(iteration)

    def finish_corrected(self, iteration: int, moved: NDArray[np.int64]) -> None:
        """Queue the end of an iteration again, with other sums; `moved` is by how much."""
        self.run.go_back(iteration - 1)
        there = torch.from_numpy(np.ascontiguousarray(moved)).to(self.device)
        self._queue_finish(self.total_sums() + there)
        # No row changed: that is not the end this time.
        self.run.memory.run_state[STOPPED.value] = 0

    def look_back(self, iteration: int) -> None:
        """Have rows measured to the centres that they were assigned to in an iteration."""
        self.used = self.run.before(iteration)
