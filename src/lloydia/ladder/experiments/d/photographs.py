"""D's data: the pixels of two photographs, as many as are wanted, and colours to start from."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["colors", "photographs", "pixels"]


@cache
def photographs() -> NDArray[np.uint8]:
    """Return the pixels of both photographs, row by row of the two side by side: shape (m, 3)."""
    from sklearn.datasets import load_sample_image

    both = [load_sample_image(f"{called}.jpg") for called in ("china", "flower")]
    return np.hstack(both).reshape(-1, 3)


def pixels(n: int) -> NDArray[np.float32]:
    """Return as many pixels: shape (n, 3), from 0 to 255."""
    photo = photographs()
    if n <= len(photo):
        return photo[np.linspace(0, len(photo), n, endpoint=False).astype(int)].astype(np.float32)
    return np.resize(photo, (n, 3)).astype(np.float32)


@cache
def palette() -> NDArray[np.uint8]:
    """Return the different colours of the photographs: shape (c, 3)."""
    return np.unique(photographs(), axis=0)


def colors(k: int) -> NDArray[np.float32]:
    """Return k different colours to start from: shape (k, 3)."""
    every = palette()
    return every[np.random.default_rng(1).choice(len(every), k, replace=False)].astype(np.float32)
