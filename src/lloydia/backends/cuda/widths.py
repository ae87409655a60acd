"""How wide rows are that are stored in half precision."""

from __future__ import annotations

from lloydia.backends.cuda.launching import ceil_div, next_power

__all__ = ["CHUNK", "RESIDENT", "padded"]

# Features that are worked on at a time where there are more than RESIDENT.
CHUNK, RESIDENT = 64, 256


def padded(n_features: int) -> int:
    """Return the width of a stored row."""
    if n_features <= RESIDENT:
        return next_power(n_features, 16)
    return ceil_div(n_features, CHUNK) * CHUNK
