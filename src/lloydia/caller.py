"""Warnings that point at the line of the user's code that called Lloydia."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_caller"]

# Packages whose frames stand between a warning and the user's call.
WITHIN = ("lloydia", "sklearn")


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the first frame outside Lloydia and scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in WITHIN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
