"""C's output: centres, labels and points as text, at the end or after every iteration.

A file has three blocks of lines, each under a line that begins with #: the centres, of which the
j-th line is that of cluster j, then a line for each point with its label and its coordinates.
Numbers are the shortest that read back to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lloydia import ladder
from lloydia.data.outputs import Renames, writing
from lloydia.ladder.rung import Outcome, Watch
from lloydia.stopping import Rule

__all__ = ["FILES", "dump", "iterations", "write"]

# What files are called; the number of the iteration is in the place of the star.
FILES = "iteration-*.txt"


def dump(
    folder: Path,
    X: NDArray,
    start: NDArray,
    *,
    rung: str,
    rule: Rule,
    max_iter: int,
    every: bool,
    force: bool = True,
) -> Iterator[Path]:
    """Run a rung, and write its result, or that of every iteration.

    Parameters
    ----------
    folder : Path
        Made if it is not there; files are called ``iteration-001.txt`` and so on.
    X : ndarray of shape (n, d)
    start : ndarray of shape (k, d)
    rung : str
        One that solves by Lloyd's method, which remembers nothing but the centres.
    rule : Rule
    max_iter : int
    every : bool
        Whether to write after every iteration, not the last alone.
    force : bool
        Whether files are replaced that Lloydia did not write.

    Yields
    ------
    Path
        Each file, once it is written.

    Raises
    ------
    ValueError
        If the rung keeps bounds.
    OSError
        If a file cannot be written.
    DataError
        If a file would be replaced that Lloydia did not write.
    """
    if ladder.named(rung).ABOUT.solves != "lloyd":
        raise ValueError(f"{rung} keeps bounds between iterations: take a rung that does not.")
    folder.mkdir(parents=True, exist_ok=True)
    for number, outcome, last in iterations(X, start, rung, rule, max_iter):
        if every or last:
            path = folder / FILES.replace("*", f"{number:03}")
            with Renames(force=force) as renames, writing(path, renames) as to:
                write(to, X, outcome)
            yield path


def iterations(
    X: NDArray, start: NDArray, rung: str, rule: Rule, max_iter: int
) -> Iterator[tuple[int, Outcome, bool]]:
    """Yield each iteration's number and outcome, and whether it is the last."""
    watch = Watch(rule, max_iter, len(X))
    centers, labels, over = start, np.full(len(X), -1, np.int32), False
    while not over:
        outcome = ladder.named(rung).fit(X, centers, rule=None, max_iter=1)
        move = float(np.abs(outcome.centers - centers).max())
        inertia = float(np.square(X - centers[outcome.labels]).sum(dtype=np.float64))
        over = watch.over(int((outcome.labels != labels).sum()), move, inertia)
        centers, labels = outcome.centers, outcome.labels
        yield watch.n_iter, outcome, over


def write(path: Path, X: NDArray, outcome: Outcome) -> None:
    """Write centres, labels and points to a text file."""
    (n, d), k = X.shape, len(outcome.centers)
    with path.open("w", encoding="utf-8") as file:
        file.write(f"# {k} centres of {d} coordinates\n")
        file.writelines(_lines(outcome.centers.astype(str)))
        file.write(f"# {n} labels and points of {d} coordinates\n")
        file.writelines(_lines(np.column_stack([outcome.labels.astype(str), X.astype(str)])))


def _lines(rows: NDArray) -> Iterator[str]:
    return (" ".join(row) + "\n" for row in rows.tolist())
