"""Data in and out: tables, labels and models in files; outputs appear whole or not at all."""

from __future__ import annotations

__all__: list[str] = []
