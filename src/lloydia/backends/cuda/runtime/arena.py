"""Tensors that are parts of one allocation; each is created when it is first used.

Most launches are repeated from records (:mod:`relocation`), which need only the address of an
arena, not its parts.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.runtime.launching import ceil_div

__all__ = [
    "ALIGNED",
    "NUMPY",
    "VECTOR",
    "Arena",
    "Offsets",
    "aligned",
    "offsets_of_parts",
    "part_of",
]

# The alignment of torch's tensors, and that of the longest vector that a thread loads, in bytes.
ALIGNED, VECTOR = 512, 16

# The kind of a part: dtype and shape.  Offsets: begin, size and kind of each part; the total size.
Kind = tuple[torch.dtype, tuple[int, ...]]
Offsets = tuple[dict[str, tuple[int, int, Kind]], int]

# NumPy's names of the types that are read on the host.
NUMPY = {
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.uint8: np.uint8,
    torch.float64: np.float64,
}


def aligned(size: int, alignment: int = ALIGNED) -> int:
    """Return the bytes that a part of this size takes."""
    return ceil_div(size, alignment) * alignment


def offsets_of_parts(first: int = 0, alignment: int = ALIGNED, **parts: Kind) -> Offsets:
    """Return the offsets of consecutive parts, from an offset on."""
    sizes = [dtype.itemsize * prod(shape) for dtype, shape in parts.values()]
    *begins, size = accumulate((aligned(size, alignment) for size in sizes), initial=first)
    return dict(zip(parts, zip(begins, sizes, parts.values()))), size


def part_of(offsets: Offsets, name: str, copied: NDArray[np.uint8]) -> NDArray[Any]:
    """Return a part of the first bytes of an arena, which were copied to the host."""
    begin, size, (dtype, shape) = offsets[0][name]
    return copied[begin : begin + size].view(NUMPY[dtype]).reshape(shape)


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
