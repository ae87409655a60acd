"""The cases: their shapes from ``cases.toml``, their rows and starts from a seed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lloydia.spelling import meant

__all__ = ["MODES", "PHOTOS", "Case", "choose", "named", "photo", "start", "table"]

MODES = ("iterations", "fits", "seeding")
BLOCK = 1 << 16
SMALL = 10_000  # cases up to this size are not made smaller by `quick`
PHOTOS = ("china.jpg", "flower.jpg")  # scikit-learn's
PHOTO = 427 * 640  # pixels of each


@dataclass(frozen=True)
class Case:
    """One row of the benchmark's tables; ``cases.toml`` says what the fields mean."""

    name: str
    n: int
    d: int
    k: int
    kind: str
    dtype: str = "float32"
    modes: Sequence[str] = ("iterations", "fits")
    iterations: Sequence[int] = (5, 20)
    defaults: bool = False
    seed: int = 0

    def rows(self) -> NDArray:
        """Return X, shape (n, d)."""
        X = np.empty((self.n, self.d), dtype=self.dtype)
        KINDS[self.kind](self, X, np.random.default_rng(self.seed))
        return X

    def tenth(self) -> Self:
        """Return the case with a tenth of its rows."""
        return self if self.n <= SMALL else replace(self, n=self.n // 10)


C = TypeVar("C", bound=Case)


def table() -> list[Case]:
    """Return all cases, in the order of ``cases.toml``."""
    text = files("lloydia.bench").joinpath("cases.toml").read_text(encoding="utf-8")
    return [Case(**fields) for fields in tomllib.loads(text)["case"]]


def choose(names: Sequence[str] | None, modes: Sequence[str]) -> list[Case]:
    """Return our cases that have one of the modes, or those named."""
    return named(table(), names, modes)


def named(cases: Sequence[C], names: Sequence[str] | None, modes: Sequence[str]) -> list[C]:
    """Return the cases that have one of the modes, or those named.

    Raises
    ------
    ValueError
        For a name that no case with these modes has.
    """
    having = {case.name: case for case in cases if set(case.modes) & set(modes)}
    for name in names or ():
        if name not in having:
            raise ValueError(
                f"There is no case {name!r}: the cases are {'; '.join(having)}{meant(name, having)}"
            )
    return [case for case in having.values() if not names or case.name in names]


def start(case: Case, X: NDArray) -> NDArray | None:
    """Return where all contenders start: shape (k, d), or None where each draws its own.

    k different rows, drawn at random and moved by 1 % of the deviation of X: from integers to
    integers there are ties, and libraries break them differently.
    """
    if case.defaults:
        return None
    rng = np.random.default_rng(case.seed + 1)
    rows = rng.choice(len(X), min(len(X), 8 * case.k), replace=False)
    first = np.sort(np.unique(X[rows], axis=0, return_index=True)[1])
    noise = rng.standard_normal((case.k, case.d)) * (0.01 * X[rows].std())
    return X[rows[first[: case.k]]] + noise.astype(X.dtype)


def _blocks(X: NDArray) -> Iterator[NDArray]:
    return (X[i : i + BLOCK] for i in range(0, len(X), BLOCK))


def _mixture(case: Case, X: NDArray, rng: np.random.Generator) -> None:
    centers = 4 / np.sqrt(case.d) * rng.standard_normal((case.k, case.d))
    centers = centers.astype(X.dtype)
    for block in _blocks(X):
        rng.standard_normal(out=block, dtype=X.dtype.type)
        block += centers[rng.integers(case.k, size=len(block))]


def _uniform(case: Case, X: NDArray, rng: np.random.Generator) -> None:
    for block in _blocks(X):
        rng.random(out=block, dtype=X.dtype.type)


def _pixels(case: Case, X: NDArray, rng: np.random.Generator) -> None:
    colors = np.concatenate([photo(name).reshape(-1, 3) for name in PHOTOS])
    for i, block in enumerate(_blocks(X)):
        rows = np.arange(i * BLOCK, i * BLOCK + len(block)) % len(colors)
        block[:] = np.rint(6 * rng.standard_normal(block.shape, dtype=np.float32))
        block += colors[rows]
        np.clip(block, 0, 255, out=block)


def _china(case: Case, X: NDArray, rng: np.random.Generator) -> None:
    X[:] = photo(PHOTOS[0]).reshape(-1, 3)[:: PHOTO // case.n][: case.n]


def _patches(case: Case, X: NDArray, rng: np.random.Generator) -> None:
    windows = np.lib.stride_tricks.sliding_window_view(photo(PHOTOS[1]), (4, 4, 3))
    patches = windows.reshape(-1, 48)
    X[:] = patches[:: len(patches) // case.n][: case.n]


def photo(name: str) -> NDArray[np.uint8]:
    """Return a photograph of scikit-learn's: shape (427, 640, 3)."""
    from sklearn.datasets import load_sample_image

    return load_sample_image(name)


def _table(name: str) -> Callable[[Case, NDArray, np.random.Generator], None]:
    def fill(case: Case, X: NDArray, rng: np.random.Generator) -> None:
        from sklearn import datasets

        X[:] = getattr(datasets, f"load_{name}")().data

    return fill


KINDS: dict[str, Callable[[Case, NDArray, np.random.Generator], None]] = {
    "mixture": _mixture,
    "uniform": _uniform,
    "pixels": _pixels,
    "china": _china,
    "patches": _patches,
    "digits": _table("digits"),
    "iris": _table("iris"),
}
