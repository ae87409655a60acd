"""Layouts of text that are not read, recognised to say so where a text is no table of cells."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["other_layout"]

LINES = 20  # that are looked at
PAIR = re.compile(r"\d+:[^:\s]+")
RULE = re.compile(r"[|:+=\s-]*-[|:+=\s-]*")


def other_layout(head: Sequence[str]) -> str:
    """Return what an error says of the layout of a text, by its first lines; "" for all else."""
    lines = [line.strip() for line in head[:LINES] if line.strip()]
    if not lines:
        return ""
    if lines[0].lower().startswith(("@relation", "@attribute")):
        return "is an ARFF file of Weka; save it as CSV with Weka"
    if all(map(_is_libsvm, lines)) and any(":" in line for line in lines):
        return (
            "is a LibSVM file (pairs index:value); read it by sklearn.datasets.load_svmlight_file "
            "and save the matrix by scipy.sparse.save_npz, as .npz"
        )
    bars = [line for line in lines if not RULE.fullmatch(line)]
    if not bars or not all("|" in line for line in bars):
        return ""
    if len(bars) < len(lines):
        return "is a table drawn with | and -; write its cells alone, with commas between them"
    return "has | between its cells, which separates none here; write commas or tabs instead"


def _is_libsvm(line: str) -> bool:
    """Return whether a line is a label and pairs, one of them at least unless it is a label."""
    label, *pairs = line.partition("#")[0].split() or [""]
    return ":" not in label and all(PAIR.fullmatch(pair) for pair in pairs)
