"""The oracle as a GPU engine: it takes and returns tensors, to test what surrounds an engine."""

from __future__ import annotations

import numpy as np
import torch

from lloydia.backends.reference import Reference
from lloydia.data.arrays import on_host
from lloydia.data.device_rows import refuse_non_finite


class CUDA(Reference):
    def __init__(self, X, weights, device):
        self.name = device
        if isinstance(X, torch.Tensor):
            refuse_non_finite(X)
        super().__init__(np.ascontiguousarray(on_host(X)), weights)

    def start(self, centers, algorithm, settles=True):
        super().start(centers, "lloyd", settles)

    def labels(self):
        return torch.from_numpy(super().labels())

    def centers(self):
        return torch.from_numpy(super().centers())

    def distances(self, centers):
        return torch.from_numpy(super().distances(centers))
