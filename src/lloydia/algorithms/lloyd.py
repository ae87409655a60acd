"""Lloyd: every distance, every time (Lloyd 1982, "Least squares quantization in PCM").

It skips nothing, so it has no bounds and nothing to prove; its scan is the fastest.
"""

from __future__ import annotations

__all__ = ["Lloyd"]


class Lloyd:
    """No state."""
