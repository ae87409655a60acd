"""Tensors that are parts of one: one allocation is made, and cut where it is needed.

Most launches are planned (:mod:`plans`), and need to know where an arena is, not its parts: those
are cut when they are first asked for.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod

import torch

from lloydia.backends.cuda.runtime.launching import ceil_div

__all__ = ["ALIGNED", "Arena", "Offsets", "aligned", "offsets_of_parts"]

# Bytes that torch's tensors begin at multiples of, and so do parts.
ALIGNED = 512

# What a part is; where each begins, its size, and what it is; with the size of all.
Kind = tuple[torch.dtype, tuple[int, ...]]
Offsets = tuple[dict[str, tuple[int, int, Kind]], int]


def aligned(size: int) -> int:
    """Return the bytes that a part of this size takes."""
    return ceil_div(size, ALIGNED) * ALIGNED


def offsets_of_parts(**parts: Kind) -> Offsets:
    """Return where parts begin, one after the other."""
    sizes = [dtype.itemsize * prod(shape) for dtype, shape in parts.values()]
    *begins, size = accumulate(map(aligned, sizes), initial=0)
    return dict(zip(parts, zip(begins, sizes, parts.values()))), size


class Arena:
    """An allocation, whose parts are its attributes.

    Parameters
    ----------
    device : torch.device
    offsets : Offsets
        The parts.

    Attributes
    ----------
    whole : torch.Tensor
        All of it, in bytes.
    """

    def __init__(self, device: torch.device, offsets: Offsets) -> None:
        self._offsets, size = offsets
        self.whole = torch.empty(size, dtype=torch.uint8, device=device)

    def begin(self, name: str) -> int:
        """Return how far in a part begins."""
        return self._offsets[name][0]

    def address(self, name: str) -> int:
        """Return where a part begins."""
        return self.whole.data_ptr() + self.begin(name)

    def __getattr__(self, name: str) -> torch.Tensor:
        begin, size, (dtype, shape) = self.__dict__["_offsets"][name]
        part = self.whole[begin : begin + size].view(dtype)
        if len(shape) > 1:
            part = part.view(shape)
        self.__dict__[name] = part
        return part
