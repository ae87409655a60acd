"""C's data: points uniform in the unit square, made on the device from a fixed seed.

Number i is that of SplitMix64 by counter (:mod:`lloydia.exact.counter`), rounded to float32; it
depends on nothing else, so a GPU makes one a thread, and the processor the same bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.exact.counter import uniforms

__all__ = ["SEED", "square"]

SEED = 2017


def square(n: int, *, on_gpu: bool) -> NDArray[np.float32]:
    """Return points of the unit square, brought to the host: shape (n, 2)."""
    if on_gpu:
        from lloydia.ladder.experiments.uniform_cuda import uniforms_on_gpu

        return uniforms_on_gpu(SEED, 2 * n).reshape(n, 2)
    return uniforms(SEED, 2 * n).astype(np.float32).reshape(n, 2)
