"""The narrowest type that holds rows exactly: less is sent, without loss."""

from __future__ import annotations

import torch

__all__ = ["narrowest_dtype"]

# Narrower types of each type of rows, the narrowest first.
NARROWER = {
    torch.float32: (torch.float16, torch.bfloat16),
    torch.float64: (torch.float16, torch.bfloat16, torch.float32),
}

# Values that are checked at a time.
PIECE = 1 << 22


def narrowest_dtype(X: torch.Tensor) -> torch.dtype:
    """Return the narrowest type that holds every value of a tensor, perhaps its own.

    Waits for the device; usually the first values show that the type is too narrow.
    """
    for dtype in NARROWER.get(X.dtype, ()):
        if all(
            torch.equal(piece.to(dtype).to(X.dtype), piece)
            for piece in X.split(max(PIECE // X.shape[1], 1))
        ):
            return dtype
    return X.dtype
