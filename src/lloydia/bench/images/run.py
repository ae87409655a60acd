"""A run: every photograph at every k, by every contender in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lloydia.bench.images.contenders import Contender
from lloydia.bench.images.photographs import photograph
from lloydia.bench.machine import load
from lloydia.images.quality import psnr, ssim

__all__ = ["SIZES", "run"]

Row = dict[str, Any]

SIZES = (8, 16, 64, 256)
ENOUGH = 1.0  # seconds of a contender at one size, after which it gets no further round


def run(
    names: Sequence[str],
    sizes: Sequence[int],
    contenders: Sequence[Contender],
    *,
    threads: int,
    rounds: int,
    step: Callable[[str], None],
) -> Iterator[list[Row]]:
    """Measure every photograph at every size.

    Parameters
    ----------
    names : sequence of str
        Of photographs.
    sizes : sequence of int
        Numbers of colours.
    contenders : sequence of Contender
    threads : int
        Of every contender.
    rounds : int
        At most, after one that is not counted.
    step : callable
        Gets what is being done, for people.

    Yields
    ------
    list of dict
        The rows of one photograph at one size, one a contender.  A contender that is not installed
        has that as its status, and no time.
    """
    facts = {
        "run": datetime.now(UTC).isoformat(timespec="seconds"),
        "threads": threads,
        "load": load(),
    }
    for name in names:
        pixels = photograph(name)
        height, width, _ = pixels.shape
        n_colors = len(np.unique(pixels.reshape(-1, 3), axis=0))
        shared = {"case": name, "width": width, "height": height, "n_colors": n_colors}
        for k in sizes:
            step(f"{name}: {k} colours")
            with threadpool_limits(threads):
                rows = _contest(pixels, k, contenders, threads, rounds)
            yield [{**shared, "mode": "images", "k": k, **row, **facts} for row in rows]


def _contest(
    pixels: NDArray[np.uint8], k: int, contenders: Sequence[Contender], threads: int, rounds: int
) -> list[Row]:
    """Let the contenders take turns, the first round uncounted, and judge what they return."""
    absent = [contender for contender in contenders if not contender.version()]
    contenders = [contender for contender in contenders if contender not in absent]
    images = [contender.reduce(pixels, k, threads) for contender in contenders]
    seconds: list[list[float]] = [[] for _ in contenders]
    for _ in range(rounds):
        for contender, taken in zip(contenders, seconds):
            if sum(taken) < ENOUGH:
                start = time.perf_counter()
                contender.reduce(pixels, k, threads)
                taken.append(time.perf_counter() - start)
    return [
        {"peer": contender.name, "version": contender.version(), **_judged(pixels, image, k, taken)}
        for contender, image, taken in zip(contenders, images, seconds)
    ] + [
        {"peer": contender.name, "version": None, "status": "not installed", "reason": ""}
        for contender in absent
    ]


def _judged(
    pixels: NDArray[np.uint8], image: NDArray[np.uint8], k: int, seconds: list[float]
) -> Row:
    found = len(np.unique(image.reshape(-1, 3), axis=0))
    if image.shape != pixels.shape or found > k:
        return {"status": "differs", "reason": f"{found} colours, shape {image.shape}"}
    return {
        "status": "ok",
        "reason": "",
        "palette_size": found,
        "rounds": len(seconds),
        "ms": 1e3 * median(seconds),
        "psnr": psnr(pixels, image),
        "ssim": ssim(pixels, image),
    }
