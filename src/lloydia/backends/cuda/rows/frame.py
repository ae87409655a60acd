"""The frame of float32 scores: an origin amid most rows, and a scale that brings these near 1.

Any frame gives correct labels (:mod:`lloydia.exact.certificate`).  A frame that ignores outliers
gives tight bounds.  The host and the device compute the same frame.  The origin is the median of
some rows, feature by feature.  All rows are within 1 of it; or, if some reach farther, those within
TYPICAL_REACHES times the distance that seven eighths of the sampled rows reach.
"""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.exact_numbers import power_of_two
from lloydia.backends.cuda.device_functions.ranks import ranked, ranked_of
from lloydia.backends.cuda.rows.totals import exponent_of
from lloydia.exact.certificate import max_scale_exponent, scale_of

__all__ = ["frame_of", "write_frame"]

# The most rows of the sample: one of each of this many parts, at different places in the parts.
SAMPLED, STRIDE = tl.constexpr(32), tl.constexpr(40_503)
TYPICAL_REACHES = tl.constexpr(4.0)


def frame_of(X: torch.Tensor, largest: NDArray[np.float64], dtype: np.dtype) -> NDArray[np.float64]:
    """Return the frame of rows: d origins and the scale.

    Parameters
    ----------
    X : torch.Tensor of shape (n, d)
    largest : ndarray of shape (d,)
        The largest magnitude of each feature.
    dtype : dtype
        The type of the centres.
    """
    m = min(len(X), SAMPLED.value)
    part, i = len(X) // m, np.arange(m)
    rows = torch.from_numpy(i * part + i * STRIDE.value % part).to(X.device)
    some = X[rows].cpu().to(torch.float64).numpy()
    origin = np.sort(some, axis=0)[(m - 1) // 2]
    typical = TYPICAL_REACHES.value * np.sort(np.abs(some - origin).max(axis=1))[m * 7 // 8]
    reach = (largest + np.abs(origin)).max()
    reach = min(reach, typical) if typical > 0.0 else reach
    return np.append(origin, scale_of(float(reach), max_scale_exponent(dtype)))


@triton.jit
def write_frame(X, n, largest, frame, d: tl.constexpr, COLUMNS: tl.constexpr):
    """Write what :func:`frame_of` returns; `largest` is a vector of COLUMNS, float64."""
    most: tl.constexpr = 1000 if X.dtype.element_ty == tl.float64 else 126
    i, f = tl.arange(0, SAMPLED), tl.arange(0, COLUMNS)
    m = tl.minimum(n, SAMPLED).to(tl.int32)
    part = (n // m).to(tl.int64)
    at = (i * part + i * STRIDE % part) * d
    there = (i < m)[:, None] & (f < d)[None, :]
    some = tl.load(X + at[:, None] + f[None, :], mask=there, other=0.0).to(tl.float64)
    origin = ranked(tl.where((i < m)[:, None], some, float("inf")), (m - 1) // 2)
    away = tl.max(tl.where(there, tl.abs(some - origin[None, :]), 0.0), 1)
    typical = TYPICAL_REACHES * ranked_of(tl.where(i < m, away, float("inf")), m * 7 // 8)
    reach = tl.max(tl.where(f < d, largest + tl.abs(origin), 0.0), 0)
    reach = tl.where(typical > 0.0, tl.minimum(reach, typical), reach)
    scale = -tl.minimum(tl.maximum(exponent_of(reach), -most), most)
    tl.store(frame + f, origin, mask=f < d)
    tl.store(frame + d, power_of_two(scale.to(tl.int64)))
