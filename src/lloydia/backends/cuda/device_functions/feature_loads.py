"""Loads of rows with few features: one vector in registers for each feature."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["features"]


@triton.jit
def features(source, at, mask, d: tl.constexpr):
    """Return d vectors: the features of the rows whose first feature is at `at`; 0 outside."""
    x = ()
    for f in tl.static_range(d):
        x = x + (tl.load(source + at + f, mask=mask, other=0.0),)
    return x
