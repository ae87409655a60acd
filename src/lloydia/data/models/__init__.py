"""Fitted estimators in .npz files without pickle, for Python and the command line."""

from __future__ import annotations

from lloydia.data.models.reading import load, read_centers
from lloydia.data.models.writing import save, write_model

__all__ = ["load", "read_centers", "save", "write_model"]
