"""System D's experiment on a photograph of ten megapixels, compared with clustering every pixel.

    python benchmarks/segmenting.py                 the table; about two minutes
    python benchmarks/segmenting.py -k 2 --threads 2 --save
    python benchmarks/segmenting.py --contenders Lloydia scikit-learn

The photograph is scikit-learn's china.jpg, enlarged by Lanczos' filter to 3,872 x 2,592 pixels,
which gives it over a million colours: more than a camera's picture of that size mostly has, and so
more work for Lloydia alone.  Every library starts from the same k colours, in RGB.  Lloydia's time
is that of `segment`, from the bytes of the picture to the bytes of the result; the others get
pixels as float32 rows and give labels and centres.  The rung of the ladder does all iterations, as
D did; the others stop when nothing changes.  Lloydia computes each inertia from the centres.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_sample_image

from lloydia import KMeans, assign
from lloydia.bench.machine import cpu_name, keep, load
from lloydia.images import segment

SIZE = (3872, 2592)
ROUNDS = 3  # of what takes less than a few seconds

# The result of a contender: centres, iterations (None if it does not return them), seconds.
Answer = tuple[NDArray, int | None, float]


def photograph() -> NDArray[np.uint8]:
    """Return the pixels, shape (2592, 3872, 3)."""
    small = Image.fromarray(load_sample_image("china.jpg"))
    return np.asarray(small.resize(SIZE, Image.Resampling.LANCZOS))


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call gives, and its seconds."""
    begin = time.perf_counter()
    found = function()
    return found, time.perf_counter() - begin


def lloydia(pixels: NDArray, start: NDArray, iterations: int, threads: int) -> Answer:
    """Segment the picture."""
    found, seconds = timed(
        lambda: segment(
            pixels, len(start), "RGB", init=start, max_iter=iterations, n_threads=threads
        )
    )
    return found.centers, found.n_iter, seconds


def every_pixel(pixels: NDArray, start: NDArray, iterations: int, threads: int) -> Answer:
    """Cluster every pixel with Lloydia."""
    return _estimator(KMeans, pixels, start, iterations, n_threads=threads)


def scikit_learn(pixels: NDArray, start: NDArray, iterations: int, threads: int) -> Answer:
    """Cluster every pixel with scikit-learn, whose exact method is lloyd."""
    from sklearn.cluster import KMeans as Theirs
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        return _estimator(Theirs, pixels, start, iterations)


def _estimator(
    kind: Any, pixels: NDArray, start: NDArray, iterations: int, **options: Any
) -> Answer:
    X, first = _rows(pixels), start.astype(np.float32)
    model = kind(len(start), init=first, n_init=1, max_iter=iterations, tol=0, **options)
    fitted, seconds = timed(lambda: model.fit(X))
    return fitted.cluster_centers_, fitted.n_iter_, seconds


def opencv(pixels: NDArray, start: NDArray, iterations: int, threads: int) -> Answer:
    """Cluster every pixel with OpenCV, which starts from the labels of the starting colours."""
    import cv2

    cv2.setNumThreads(threads)
    X, k = _rows(pixels), len(start)
    labels = assign(X, start.astype(np.float32))[0][:, None].copy()
    until = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, iterations, 0.0)
    (_, _, centers), seconds = timed(
        lambda: cv2.kmeans(X, k, labels, until, 1, cv2.KMEANS_USE_INITIAL_LABELS)
    )
    return centers, None, seconds


def sequential(pixels: NDArray, start: NDArray, iterations: int, threads: int) -> Answer:
    """Run the ladder's sequential rung, compiled beforehand."""
    from lloydia.ladder import r01_lloyd

    X, first = _rows(pixels), start.astype(np.float32)
    r01_lloyd.fit(X[:1000], first, rule=None, max_iter=2)
    done = r01_lloyd.fit(X, first, rule=None, max_iter=iterations)
    return done.centers, done.n_iter, done.seconds


def _rows(pixels: NDArray) -> NDArray[np.float32]:
    return pixels.reshape(-1, 3).astype(np.float32)


CONTENDERS: dict[str, tuple[Callable[..., Answer], int]] = {
    "Lloydia": (lloydia, ROUNDS),
    "Lloydia, every pixel": (every_pixel, 1),
    "scikit-learn": (scikit_learn, 1),
    "OpenCV": (opencv, 1),
    "sequential rung": (sequential, 1),
}


def measure(contenders: list[str], k: int, iterations: int, threads: int) -> list[dict[str, Any]]:
    """Return a row for each contender; its ratio is its time divided by that of the first."""
    pixels = photograph()
    colors = np.unique(pixels.reshape(-1, 3)[::97], axis=0)
    start = colors[np.random.default_rng(0).choice(len(colors), k, replace=False)]
    X, rows = _rows(pixels), []
    lloydia(pixels[:100], start, 3, threads)  # compiles
    for name in contenders:
        contender, rounds = CONTENDERS[name]
        answers = [contender(pixels, start, iterations, threads) for _ in range(rounds)]
        centers, n_iter, _ = answers[0]
        rows.append(
            {
                "contender": name,
                "k": k,
                "iterations": iterations,
                "threads": 1 if contender is sequential else threads,
                "n_iter": n_iter,
                "seconds": median(answer[2] for answer in answers),
                "inertia": assign(X, centers.astype(np.float32))[1],
            }
        )
    for row in rows:
        row["ratio"] = row["seconds"] / rows[0]["seconds"]
        row["relative_inertia"] = row["inertia"] / rows[0]["inertia"]
    return rows


def table(rows: list[dict[str, Any]]) -> Table:
    """Return the rows for people."""
    k, iterations = rows[0]["k"], rows[0]["iterations"]
    title = f"10 megapixels, k = {k}, at most {iterations} iterations, on {cpu_name()}"
    result = Table(title=title, box=box.SIMPLE_HEAD)
    result.add_column("contender")
    for head in ("threads", "iterations", "seconds", "ratio", "inertia"):
        result.add_column(head, justify="right")
    for row in rows:
        result.add_row(
            *(row["contender"], str(row["threads"]), str(row["n_iter"] or "?")),
            *(f"{row['seconds']:.3f}", f"{row['ratio']:.1f}", f"{row['relative_inertia']:.6f}"),
        )
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-k", type=int, default=7)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--save", action="store_true", help="append the rows to results/")
    options = parser.parse_args()
    busy = load()
    rows = measure(options.contenders, options.k, options.iterations, options.threads)
    Console().print(table(rows))
    if options.save:
        print("kept in", keep("segmenting", [{**row, "load": busy} for row in rows]))


if __name__ == "__main__":
    main()
