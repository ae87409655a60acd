"""Data that breaks careless arithmetic, for hypothesis and for tables of cases."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

__all__ = ["FLAVOURS", "clusters_of", "nasty_rows", "nasty_weights", "rows_of"]

FLAVOURS = (
    "gauss",
    "offset",
    "outlier",
    "grid",
    "duplicates",
    "subnormal",
    "zeros",
    "constant",
    "wide",
    "tiny",
)


def rows_of(flavour: str, n: int, d: int, dtype: str, seed: int) -> np.ndarray:
    """Return n rows of d features of one kind."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if flavour == "offset":
        X += 1e6
    elif flavour == "outlier":
        X[rng.integers(n)] = 1e30 if dtype == "float32" else 1e140
    elif flavour == "grid":
        X = rng.integers(-3, 4, size=(n, d)).astype(float)
    elif flavour == "duplicates":
        X = X[rng.integers(max(1, n // 4), size=n)]
    elif flavour == "subnormal":
        X *= float(np.finfo(dtype).smallest_subnormal) * 20
    elif flavour == "zeros":
        X = np.where(rng.random((n, d)) < 0.5, np.where(rng.random((n, d)) < 0.5, 0.0, -0.0), X)
    elif flavour == "constant":
        X[:, 0] = 7.1
    elif flavour == "tiny":
        # In float64 the squares of the differences are subnormal or 0.
        X *= 10.0 ** rng.uniform(-175, -145) if dtype == "float64" else 1e-30
    elif flavour == "wide":
        X *= 10.0 ** rng.uniform(-35, 35, size=(n, d))
    return np.ascontiguousarray(X.astype(dtype))


@st.composite
def nasty_rows(draw: st.DrawFn, most: int = 40, features: int = 4, fewest: int = 1) -> np.ndarray:
    """Draw an array of shape (n, d), float32 or float64, with `fewest` to `features` features."""
    flavour = draw(st.sampled_from(FLAVOURS))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    n, d = draw(st.integers(1, most)), draw(st.integers(fewest, features))
    return rows_of(flavour, n, d, dtype, draw(st.integers(0, 10**6)))


@st.composite
def nasty_weights(draw: st.DrawFn, n: int) -> np.ndarray | None:
    """Draw None or n weights: some 0, the others from 1e-8 to 1e8, at least one positive."""
    if draw(st.booleans()):
        return None
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    weights = 10.0 ** rng.uniform(-8, 8, size=n) * (rng.random(n) < 0.8)
    weights[rng.integers(n)] = 1.7
    return weights


def clusters_of(n: int, weights: np.ndarray | None, most: int) -> st.SearchStrategy[int]:
    """Draw a number of clusters that n rows with these weights can make, `most` at the most."""
    return st.integers(1, min(n if weights is None else int(np.count_nonzero(weights)), most))
