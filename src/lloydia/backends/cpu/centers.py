"""The centres as the scans want them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.micro import LANES, LEAST, NV
from lloydia.exact import certificate

__all__ = ["Packed", "pack"]


@dataclass(frozen=True)
class Packed:
    """What :func:`lloydia.backends.cpu.scan.certified_scan` takes.

    Attributes
    ----------
    panels : ndarray of shape (n_vectors * d * LANES,), float32
        Panel after panel, each of NV vectors of centres but the last, which may have fewer.
    halves : ndarray of shape (n_vectors * LANES,), float32
        Minus half the squared norms; hugely negative where there is no centre.
    origin : ndarray of shape (d,), float64
    scale : float
        A power of two.
    terms : tuple of float
        The error bound of a row of radius R is ``terms[0] + R * (terms[1] + R * terms[2])``.
    columns : ndarray of shape (d, k), float64
        The centres themselves, feature-major.
    """

    panels: NDArray[np.float32]
    halves: NDArray[np.float32]
    origin: NDArray[np.float64]
    scale: float
    terms: tuple[float, float, float]
    columns: NDArray[np.float64]


def pack(centers: NDArray[np.float64]) -> Packed:
    """Centre, scale, round and pack centres of shape (k, d)."""
    k, d = centers.shape
    n_vectors = -(-k // LANES)
    origin, scale = certificate.frame(centers)
    panels = _aligned(n_vectors * d * LANES)
    halves = _aligned(n_vectors * LANES)
    columns = np.empty((d, k))
    reach = _fill(centers, origin, scale, panels, halves, columns)
    return Packed(panels, halves, origin, scale, certificate.error_terms(d, reach, scale), columns)


def _aligned(size: int) -> NDArray[np.float32]:
    raw = np.empty(size * 4 + 64, dtype=np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + size * 4].view(np.float32)


@kernel
def _fill(centers, origin, scale, panels, halves, columns):
    """Write panels, halves and columns; return the largest norm, rounded up."""
    k, d = centers.shape
    n_vectors = len(halves) // LANES
    panels[:] = np.float32(0.0)
    halves[:] = np.float32(LEAST)
    largest = 0.0
    for j in range(k):
        vector, lane = j // LANES, j % LANES
        before = vector // NV * NV
        pitch = min(NV, n_vectors - before) * LANES
        at = before * d * LANES + (vector - before) * LANES + lane
        square = 0.0
        for f in range(d):
            columns[f, j] = centers[j, f]
            value = np.float32((centers[j, f] - origin[f]) * scale)
            panels[at + f * pitch] = value
            square += np.float64(value) * np.float64(value)
        halves[j] = np.float32(-0.5 * square)
        largest = max(largest, square)
    return np.sqrt(largest) * (1.0 + (d + 8) * 2.0**-22) + 2.0**-60
