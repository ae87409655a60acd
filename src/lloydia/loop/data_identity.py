"""Whether the rows of a resumed fit are those that it began with."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from lloydia.backends.engine import Engine
from lloydia.loop.run import OtherDataError

__all__ = ["check_data", "known_by"]

# The number of rows in the digest of the data.
SAMPLE = 16


def known_by(engine: Engine) -> dict[str, Any]:
    """Return what identifies the data: their shape and type, and a digest of some values.

    The digest is of the largest magnitude of each feature, the magnitudes of the weights and a few
    rows; it is the same on every engine.  A run that continues also tests that its centres follow
    from the rows.
    """
    magnitudes, n = engine.magnitudes(), engine.n_samples
    rows = np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64)
    weights = np.array([magnitudes.largest_weight, magnitudes.smallest_weight])
    parts = (engine.rows(rows), np.asarray(magnitudes.largest, dtype=np.float64), weights)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    return {
        "shape": [n, engine.n_features],
        "dtype": str(engine.dtype),
        "digest": digest.hexdigest(),
    }


def check_data(given: dict[str, Any], before: dict[str, Any]) -> None:
    """Raise OtherDataError if what data are known by is not what it was."""
    for name in ("shape", "dtype"):
        if given[name] != before[name]:
            own, first = (tuple(x) if name == "shape" else x for x in (given[name], before[name]))
            raise OtherDataError(
                f"The rows have the {name} {own}, and those of the interrupted fit had {first}: "
                "give the same rows and weights, or name another checkpoint."
            )
    if given["digest"] != before["digest"]:
        raise OtherDataError(
            "The rows or their weights have other values than those of the interrupted fit: give "
            "the same ones, in the same order."
        )
