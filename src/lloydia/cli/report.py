"""What goes to standard output: one JSON object, or a short text."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lloydia.spelling import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def flush() -> None:
    """Hand on what was printed, so that a failure shows before any output file is renamed."""
    if sys.stdout is not None:
        sys.stdout.flush()


def print_json(facts: Mapping[str, Any]) -> None:
    """Print one JSON object on one line; floats read back as the same number."""
    print(json.dumps(facts, allow_nan=False))


def print_pairs(facts: Mapping[str, Any]) -> None:
    """Print one fact a line; facts that are None are left out."""
    shown = {name.replace("_", " "): value for name, value in facts.items() if value is not None}
    width = max(map(len, shown))
    for name, value in shown.items():
        timed = isinstance(value, float) and name.split()[0] == "seconds"
        print(f"{name:<{width}}  {f'{value:.3g}' if timed else _text(value)}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def sizes(labels: NDArray[np.integer], k: int) -> NDArray[np.integer]:
    """Return how many rows each cluster has."""
    import numpy as np

    return np.bincount(labels, minlength=k)


def print_clusters(facts: Mapping[str, Any], counts: NDArray[np.integer], json: bool) -> None:
    """Print facts and the sizes of clusters, as JSON or for people, who get these in short."""
    if json:
        print_json({**facts, "sizes": counts.tolist()})
    else:
        print_pairs({**facts, "sizes": _short(counts)})


def _short(counts: NDArray[np.integer]) -> str:
    """Return sizes in short: all of up to 12, else the range and the median."""
    import numpy as np

    if len(counts) <= 12:
        return ", ".join(f"{count:,}" for count in counts)
    if counts.min() == counts.max():
        return f"{counts[0]:,} each"
    return f"{counts.min():,} to {counts.max():,}, median {int(np.median(counts)):,}"
