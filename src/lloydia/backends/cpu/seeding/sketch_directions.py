"""The directions of sketches: those in which a sample of the rows varies most.

All of it is done in the calling thread.  Libraries of linear algebra, which NumPy calls for matrix
products, start threads of their own, however few `n_threads` allows; :func:`numpy.einsum` by
itself does not call them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.seeding.sketch_bytes import SINGLES, WIDTH
from lloydia.backends.cpu.simd.lanes import ROWS, products

__all__ = ["directions", "product"]

# How often the directions are multiplied by the covariance.
POWERS = 2


def directions(sample: NDArray[np.float64], d: int) -> NDArray[np.float32]:
    """Return V of a centred sample: by subspace iteration, and of a norm of at most 1."""
    if d <= WIDTH:
        return np.zeros((0, WIDTH), np.float32)
    # Any directions would do; these are the same in every run.
    basis = np.random.default_rng(0).normal(size=(WIDTH - 1, d))
    for _ in range(POWERS):
        basis = orthogonal(product(sample.T, product(sample, basis.T)).T)
    # What rounded in a basis of very different lengths rounds little in one of equal ones.
    basis = orthogonal(basis)
    V = aligned((d, WIDTH), np.float32)
    # Rounding V makes its norm larger by 2**-24 times the root of WIDTH at most.
    for margin in (2.0**-20, 2.0**-10, 1.0):
        V[:, :-1] = basis.T * (1.0 - margin)
        wide = np.ascontiguousarray(V.T, np.float64)
        # The norm of V'V is at most its largest sum of magnitudes in a row.
        if np.abs(np.einsum("if,jf->ij", wide, wide)).sum(axis=1).max() <= 1.0 - 2.0**-30:
            break
    return V


def orthogonal(basis: NDArray) -> NDArray[np.float64]:
    """Return orthogonal rows that span what those of `basis` do; dependent rows become 0."""
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
    panels = aligned((inner, m + -m % SINGLES), np.float32)
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
    B : IN, ndarray (d, a multiple of SINGLES), float32
        From a multiple of 64 bytes on.
    out : OUT, ndarray, float32
    """
    for at in upto(0, len(A), ROWS):
        for p in upto(0, B.shape[1], SINGLES):
            rows, columns = A.ctypes.data + at * A.strides[0], B.ctypes.data + 4 * p
            to = out.ctypes.data + at * out.strides[0] + 4 * p
            products(rows, A.shape[1], columns, B.strides[0], to, out.strides[0])
