"""C's data: points uniform in the unit square, made on the device from a fixed seed.

Number i is that of SplitMix64 by counter (:mod:`lloydia.exact.counter`), rounded to float32; it
depends on nothing else, so a GPU makes one a thread, and the processor the same bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.exact.counter import GOLDEN, MIX, uniforms
from lloydia.ladder.device import ceil_div, cuda

__all__ = ["SEED", "square"]

SEED = 2017
BLOCK = 256
WEYL = np.uint64(GOLDEN)
(S1, M1), (S2, M2), (S3, _) = [(np.uint64(shift), np.uint64(factor)) for shift, factor in MIX]
UNUSED = np.uint64(11)


def square(n: int, *, on_gpu: bool) -> NDArray[np.float32]:
    """Return points of the unit square, brought to the host: shape (n, 2)."""
    if on_gpu:
        return uniforms_on_gpu(SEED, 2 * n).reshape(n, 2)
    return uniforms(SEED, 2 * n).astype(np.float32).reshape(n, 2)


def uniforms_on_gpu(key: int, n: int) -> NDArray[np.float32]:
    """Return :func:`lloydia.exact.counter.uniforms`, rounded to float32."""
    out = cuda.device_array(n, np.float32)
    draw[ceil_div(n, BLOCK), BLOCK](np.uint64(key), out)
    return out.copy_to_host()


@cuda.jit
def draw(key, out):
    """Write number i, a multiple of 2^-53 rounded to float32, by thread i."""
    i = cuda.grid(1)
    if i < out.shape[0]:
        z = key + np.uint64(i + 1) * WEYL
        z = (z ^ (z >> S1)) * M1
        z = (z ^ (z >> S2)) * M2
        z = z ^ (z >> S3)
        out[i] = np.float32(np.float64(z >> UNUSED) * 2.0**-53)
