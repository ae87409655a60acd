"""Reports of iterations, on their way to the host while the device goes on."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["Reports"]


class Reports:
    """Copies of the reports that kernels write.

    Parameters
    ----------
    source : int64 tensor of shape (n_slots, m)
        That of iteration i is in row i modulo n_slots.
    """

    def __init__(self, source: torch.Tensor) -> None:
        self.source = source
        self.host = torch.empty(source.shape, dtype=source.dtype, pin_memory=source.is_cuda)
        self.rows = self.host.numpy()
        self.come: list[torch.cuda.Event | None] = [None] * len(source)

    def ask(self, first: int, last: int) -> None:
        """Queue the copy of the reports of some iterations."""
        event = torch.cuda.Event() if self.source.is_cuda else None
        slots = {i % len(self.come) for i in range(first, last + 1)}
        if len(slots) == 1:
            slot = last % len(self.come)
            self.host[slot].copy_(self.source[slot], non_blocking=True)
        else:
            self.host.copy_(self.source, non_blocking=True)
        for slot in slots:
            self.come[slot] = event
        if event is not None:
            event.record()

    def answer(self, iteration: int) -> NDArray[np.int64]:
        """Wait for a report that was asked for."""
        slot = iteration % len(self.come)
        event = self.come[slot]
        if event is not None:
            event.synchronize()
        return self.rows[slot]
