"""The directions of sketches: those in which a sample of the rows varies most.

Everything is computed in the calling thread.  For matrix products NumPy calls a library that starts
threads of its own, whatever `n_threads` allows; :func:`numpy.einsum` does not call it by default.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.seeding.sketch_bytes import COLUMNS_AT_ONCE, WIDTH
from lloydia.backends.cpu.simd.lanes import ROWS, products

__all__ = ["directions", "product"]

# How often the directions are multiplied by the covariance.
POWERS = 2


def directions(sample: NDArray[np.float64], d: int) -> NDArray[np.float32]:
    """Return V of a centred sample: by subspace iteration, and of a norm of at most 1."""
    if d <= WIDTH:
        return np.zeros((0, WIDTH), np.float32)
    # Any directions are valid; the fixed seed makes them the same in every run.
    basis = np.random.default_rng(0).normal(size=(WIDTH - 1, d))
    for _ in range(POWERS):
        basis = orthogonal(product(sample.T, product(sample, basis.T)).T)
    # Rows of very different lengths leave rounding errors; in this second pass all have length 1.
    basis = orthogonal(basis)
    V = aligned((d, WIDTH), np.float32)
    # Rounding increases the norm of V by at most 2**-24 times the root of WIDTH.
    for margin in (2.0**-20, 2.0**-10, 1.0):
        V[:, :-1] = basis.T * (1.0 - margin)
        wide = np.ascontiguousarray(V.T, np.float64)
        # The norm of V'V is at most its largest sum of magnitudes in a row.
        if np.abs(np.einsum("if,jf->ij", wide, wide)).sum(axis=1).max() <= 1.0 - 2.0**-30:
            break
    return V


def orthogonal(basis: NDArray) -> NDArray[np.float64]:
    """Return orthonormal rows with the span of those of `basis`; dependent rows become 0."""
    basis = np.array(basis, np.float64, order="C")
    for j, row in enumerate(basis):
        square = np.einsum("f,f->", row, row)
        row -= np.einsum("i,if->f", np.einsum("if,f->i", basis[:j], row), basis[:j])
        left = np.einsum("f,f->", row, row)
        row *= 1.0 / np.sqrt(left) if left > 1e-12 * square else 0.0
    return basis


def product(A: NDArray, B: NDArray) -> NDArray[np.float32]:
    """Return ``A B``, computed in float32."""
    (n, inner), m = A.shape, B.shape[1]
    rows = aligned((n + -n % ROWS, inner), np.float32)
    panels = aligned((inner, m + -m % COLUMNS_AT_ONCE), np.float32)
    rows[:n], panels[:, :m] = A, B
    out = np.empty((len(rows), panels.shape[1]), np.float32)
    multiply(rows, panels, out)
    return out[:n, :m]


@kernel(**LEAN)
def multiply(A, B, out):
    """Write ``A B``, float32.

    Parameters
    ----------
    A : IN, ndarray (a multiple of ROWS, d), float32
    B : IN, ndarray (d, a multiple of COLUMNS_AT_ONCE), float32
        It starts at a multiple of 64 bytes.
    out : OUT, ndarray, float32
    """
    for at in upto(0, len(A), ROWS):
        for p in upto(0, B.shape[1], COLUMNS_AT_ONCE):
            rows, columns = A.ctypes.data + at * A.strides[0], B.ctypes.data + 4 * p
            to = out.ctypes.data + at * out.strides[0] + 4 * p
            products(rows, A.shape[1], columns, B.strides[0], to, out.strides[0])
