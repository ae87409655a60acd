"""Rungs on data of the user's own: a table of points, or the pixels of a picture.

A run has the start, the precision and the stop rule of the document whose experiment is named, so
that it is what that author's program would do with the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia import ladder
from lloydia.backends import choose
from lloydia.backends.cpu.runtime.pool import threads_of
from lloydia.estimators.functions import assign
from lloydia.images.segments import Clustering, Segments, segment_by
from lloydia.ladder.experiments.lab import PEERS, Lab
from lloydia.ladder.experiments.measurement import Measurement
from lloydia.ladder.experiments.oracle import Trial
from lloydia.seeding import SEEDINGS
from lloydia.stopping import Centers, Labels, Rule

__all__ = ["PART", "measure", "points_of", "segment", "start"]

PART = "own data"


@dataclass(frozen=True)
class Program:
    """How a document's program begins and ends."""

    seeding: str
    rule: Rule | None
    max_iter: int
    dtype: str
    block: int = 256


PROGRAMS = {
    "walk": Program("random", None, 20, "float64"),
    "T": Program("farthest", Labels(), 100_000, "float64"),
    "A": Program("random", None, 300, "float32", block=1024),
    "B": Program("first", Labels(0.001), 10, "float64"),
    "C": Program("first", Centers(5e-6), 10_000, "float32"),
    "D": Program("random", None, 200, "float32"),
}


def points_of(table: NDArray) -> NDArray:
    """Return the points of a table: its rows, or of a single row each two numbers, x and y."""
    n, d = table.shape
    return table.reshape(-1, 2) if n == 1 and d > 2 and d % 2 == 0 else table


def start(X: NDArray, k: int, seeding: str, seed: int) -> NDArray:
    """Return k rows of X by the name of a seeding: shape (k, d)."""
    rows = SEEDINGS[seeding](choose("cpu", X, None, None), k, np.random.RandomState(seed))
    return X[rows]


def measure(
    lab: Lab,
    name: str,
    points: NDArray,
    k: int,
    *,
    rungs: Sequence[str] = (),
    max_iter: int | None = None,
    seed: int = 0,
) -> Iterator[Measurement]:
    """Run a document's rungs, or some, on points.

    Parameters
    ----------
    lab : Lab
    name : str
        Of an experiment.
    points : ndarray of shape (n, d)
    k : int
    rungs : sequence of str
        Names; by default those of the document that run where the lab is, with scikit-learn.
    max_iter : int or None
        The document's own by default.
    seed : int

    Raises
    ------
    ValueError
        If the points are not numbers that the document's precision has.
    """
    program = PROGRAMS[name]
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(points, program.dtype)
    if not np.isfinite(X).all():
        raise ValueError(
            f"{name}'s programs compute in {program.dtype}, which has no number as large as "
            f"{np.abs(points).max():g}: scale the points."
        )
    first = start(X, k, program.seeding, seed)
    trial = Trial(name, PART, X, first, program.rule, max_iter or program.max_iter)
    contenders = lab.contenders(hosts=rungs or _rungs(lab, name), blocks=(program.block,))
    yield from lab.measure(trial, contenders)


def _rungs(lab: Lab, name: str) -> list[str]:
    """Return scikit-learn and the rungs of a document that run where the lab is."""
    here = [("cpu", lab.cpu), ("cuda", lab.cuda)]
    places = [place for place, wanted in here if wanted]
    every = [each for each in ladder.names() if ladder.where(each) in places]
    own = [each for each in every if name == "walk" or name in ladder.named(each).ABOUT.systems]
    return [*PEERS[:1], *own]


def segment(
    rung: str,
    pixels: Any,
    k: int,
    space: str,
    *,
    init: str,
    seed: int,
    max_iter: int,
    xy: float = 0.0,
    threads: int | None = None,
) -> Segments:
    """Segment a picture by a rung, which does all of `max_iter` iterations, over all pixels.

    Parameters
    ----------
    rung : str
    pixels, k, space, init, max_iter, xy
        As for :func:`lloydia.images.segment`.
    seed : int
    threads : int or None
        All cores by default.

    Raises
    ------
    ValueError
        If some pixels are transparent: rungs have no weights.
    """
    fit: Callable[..., Any] = ladder.named(rung).fit
    uses = ladder.named(rung).ABOUT.uses
    options = {"threads": threads_of(threads)} if "threads" in uses else {}

    def cluster(
        points: Any, weights: NDArray | None, k: int, seeding: Any, place: str | None
    ) -> Clustering:
        if weights is not None:
            raise ValueError(
                "A rung counts every pixel, and this picture has transparent ones: leave out "
                "--rung, or use a picture without transparency."
            )
        X = np.ascontiguousarray(points, np.float32)
        began = time.perf_counter()
        first = start(X, k, seeding, seed)
        seconds = time.perf_counter() - began
        fit(X, first, rule=None, max_iter=1, **options)  # compiles
        outcome = fit(X, first, rule=None, max_iter=max_iter, **options)
        labels, inertia = assign(X, outcome.centers.astype(np.float32), device="cpu")
        return Clustering(
            labels=outcome.labels,
            centers=outcome.centers.astype(np.float32),
            inertia=float(inertia),
            n_iter=outcome.n_iter,
            converged=bool((labels == outcome.labels).all()),
            device=ladder.where(rung),
            seconds_seeding=seconds,
            seconds_iterating=outcome.seconds,
        )

    return segment_by(cluster, pixels, k, space, init=init, xy=xy, every_pixel=True)
