"""Recognition of unsupported text layouts, for errors about texts that are not tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from lloydia.data.numbers import REAL

__all__ = ["other_layout"]

LINES = 20  # the number of lines that are examined
LABEL = re.compile(rf"{REAL.pattern}(?:,{REAL.pattern})*")  # a row may have several labels
PAIR = re.compile(rf"(?:[0-9]{{1,18}}|qid):{REAL.pattern}")
TIME = re.compile(r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9]")
RULE = re.compile(r"[|:+=\s-]*-[|:+=\s-]*")


def other_layout(head: Sequence[str]) -> str:
    """Return the error text about an unsupported layout, by the first lines; "" if unknown."""
    lines = [line.strip() for line in head[:LINES] if line.strip()]
    if not lines:
        return ""
    if lines[0].lower().startswith(("@relation", "@attribute")):
        return "is an ARFF file of Weka; save it as CSV with Weka"
    if _is_libsvm(lines):
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


def _is_libsvm(lines: Sequence[str]) -> bool:
    """Return whether each line is a label and pairs index:value with ascending indices.

    At least one pair must not look like a time of day, such as 10:30.
    """
    rows = [line.partition("#")[0].split() for line in lines]
    rows = [row for row in rows if row]
    for label, *pairs in rows:
        if not LABEL.fullmatch(label) or not all(map(PAIR.fullmatch, pairs)):
            return False
        indices = [int(pair.partition(":")[0]) for pair in pairs if not pair.startswith("qid:")]
        if any(b <= a for a, b in pairwise(indices)):
            return False
    return any(not TIME.fullmatch(pair) for _, *pairs in rows for pair in pairs)
