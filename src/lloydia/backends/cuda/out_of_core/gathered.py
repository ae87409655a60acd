"""Rows of the host that a device needs, gathered as they are sent."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.runtime.upload import pinned_view

__all__ = ["Gathered"]


class Gathered:
    """Some rows of an array on the host, which the sender gathers."""

    def __init__(self, X: NDArray, rows: NDArray[np.integer]) -> None:
        self.X, self.rows = X, rows
        self.shape = len(rows), X.shape[1]

    def fill(self, out: torch.Tensor) -> None:
        """Write them to a tensor, in its type."""
        X, rows = pinned_view(self.X), torch.from_numpy(self.rows)
        if out.dtype == X.dtype:
            torch.index_select(X, 0, rows, out=out)
        else:
            out.copy_(X.index_select(0, rows))
