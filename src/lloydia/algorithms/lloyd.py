"""Lloyd: every distance in every iteration (Lloyd 1982, "Least squares quantization in PCM").

The algorithm skips nothing, so it has no bounds, and its scan per distance is the fastest.
"""

from __future__ import annotations

__all__ = ["Lloyd"]


class Lloyd:
    """The algorithm without state."""
