"""Arrays on their way to the host while both sides go on."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

__all__ = ["Fetched"]


class Fetched:
    """A copy of a tensor, queued on the current stream; it is waited for when it is asked for."""

    def __init__(self, source: torch.Tensor) -> None:
        self.host = torch.empty(source.shape, dtype=source.dtype, pin_memory=source.is_cuda)
        self.host.copy_(source, non_blocking=True)
        self.come = torch.cuda.Event() if source.is_cuda else None
        if self.come is not None:
            self.come.record()

    def numpy(self) -> NDArray[Any]:
        """Wait for it."""
        if self.come is not None:
            self.come.synchronize()
            self.come = None
        return self.host.numpy()
