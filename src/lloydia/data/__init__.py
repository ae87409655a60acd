"""Data in and out: arrays, data frames, and files of tables, labels and models."""

from __future__ import annotations

__all__: list[str] = []
