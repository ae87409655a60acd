"""Tensors that are parts of one allocation, which are cut out when they are first used.

Most launches are planned (:mod:`plans`) and need only the address of an arena, not its parts.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod

import torch

from lloydia.backends.cuda.runtime.launching import ceil_div

__all__ = ["ALIGNED", "Arena", "Offsets", "aligned", "offsets_of_parts"]

# The alignment of torch's tensors, and of parts, in bytes.
ALIGNED = 512

# The kind of a part: dtype and shape.  Offsets: begin, size and kind of each part; the total size.
Kind = tuple[torch.dtype, tuple[int, ...]]
Offsets = tuple[dict[str, tuple[int, int, Kind]], int]


def aligned(size: int) -> int:
    """Return the bytes that a part of this size takes."""
    return ceil_div(size, ALIGNED) * ALIGNED


def offsets_of_parts(**parts: Kind) -> Offsets:
    """Return the offsets of parts that follow each other."""
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
        All its bytes.
    """

    def __init__(self, device: torch.device, offsets: Offsets) -> None:
        self._offsets, size = offsets
        self.whole = torch.empty(size, dtype=torch.uint8, device=device)

    def begin(self, name: str) -> int:
        """Return the offset of a part."""
        return self._offsets[name][0]

    def address(self, name: str) -> int:
        """Return the address of a part."""
        return self.whole.data_ptr() + self.begin(name)

    def __getattr__(self, name: str) -> torch.Tensor:
        begin, size, (dtype, shape) = self.__dict__["_offsets"][name]
        part = self.whole[begin : begin + size].view(dtype)
        if len(shape) > 1:
            part = part.view(shape)
        self.__dict__[name] = part
        return part
