"""What the rungs on a GPU stand on: numba-cuda, data in place, and the host's side of the loop.

A rung queues the kernels of an iteration, and the host waits only where it must know something:
how many labels changed, where there is a stop rule.  With a fixed number of iterations it runs
ahead of the GPU, and waits once, at the end.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lloydia.imports import load
from lloydia.ladder.rung import Outcome, Watch
from lloydia.stopping import Rule

if find_spec("numba_cuda") is None:
    raise ImportError(
        "The rungs on a GPU need numba-cuda: pip install numba-cuda, or take one of the CPU."
    )

cuda: Any = load("numba.cuda")

if not hasattr(np, "row_stack"):
    # NumPy 2.5 removed it, and numba-cuda up to 0.30.4 asks for it when it first compiles.
    vars(np)["row_stack"] = np.vstack
    try:
        load("numba.cuda.np.arrayobj")
    finally:
        del vars(np)["row_stack"]

if load("numba").config.ENABLE_CUDASIM:
    load("lloydia.ladder.simulation").complete()

__all__ = ["SHARED_BYTES", "Placed", "Stopwatch", "ceil_div", "cuda", "zeros"]

# Shared memory that every block may have on any GPU.
SHARED_BYTES = 48 * 1024


def ceil_div(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
    """Return an array of zeros on the GPU."""
    return cuda.to_device(np.zeros(shape, dtype))


class Placed:
    """Points, centres and labels on the GPU, and the descent of the objective from there.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centers : ndarray of shape (k, d)
        The start, which is left as it is.
    block : int
        Threads in a block.
    order : {"C", "F"}
        Of X on the GPU: row-major or feature-major.  Kernels index both as ``X[i, f]``.

    Attributes
    ----------
    X, centers : device arrays of shapes (n, d) and (k, d)
    labels : device array of shape (n,), int32
        -1 before the first assignment.
    changed : device array of shape (1,), int64
        Where a rung counts changes of labels; it goes on from iteration to iteration.
    blocks : int
        Blocks in a grid of one thread a point.

    Raises
    ------
    RuntimeError
        If there is no GPU.
    ValueError
        If `block` is not a power of two from 32 to 1024.
    """

    def __init__(self, X: NDArray, centers: NDArray, block: int, order: str = "C") -> None:
        if block not in (32, 64, 128, 256, 512, 1024):
            raise ValueError(f"block={block!r} must be a power of two from 32 to 1024.")
        if not cuda.is_available():
            raise RuntimeError(
                "There is no NVIDIA GPU that numba-cuda can use here: take a rung of the CPU."
            )
        self.block, self.blocks = block, ceil_div(len(X), block)
        self.X = cuda.to_device(np.asarray(X, order=order))  # type: ignore[call-overload]
        self.centers = cuda.to_device(np.ascontiguousarray(centers))
        self.labels = cuda.to_device(np.full(len(X), -1, np.int32))
        self.changed = zeros(1, np.int64)
        self._seen = 0

    def n_changed(self) -> int:
        """Return by how much the count of changes grew since it was last asked for."""
        before, self._seen = self._seen, int(self.changed.copy_to_host()[0])
        return self._seen - before

    def descend(
        self,
        assign: Callable[[], object],
        means: Callable[[], object],
        rule: Rule | None,
        max_iter: int,
        *,
        n_changed: Callable[[], int] | None = None,
        phases: Mapping[str, float] | None = None,
        figures: Mapping[str, float] | None = None,
    ) -> Outcome:
        """Alternate assignments and means until the rule stops, and take the time.

        Parameters
        ----------
        assign, means : callable
            Queue the kernels that set the labels, and the centres; those of empty clusters stay.
        rule : Rule or None
        max_iter : int
        n_changed : callable, optional
            Returns the number of labels that the last assignment changed, where the rung does not
            count in :attr:`changed`.
        phases, figures : mapping, optional
            Of the outcome; `phases` may be filled until then.  Where there is a rule the host waits
            for every iteration, and the shortest and the longest are added to `figures`.

        Returns
        -------
        Outcome
        """
        asked = n_changed or self.n_changed
        watch = Watch(rule, max_iter, len(self.labels))
        old = self.centers.copy_to_host()
        cuda.synchronize()
        began = time.perf_counter()
        with warnings.catch_warnings():
            # Small problems are part of the experiments.
            warnings.filterwarnings("ignore", message=".*Grid size")
            over, loops = False, Range()
            while not over:
                assign()
                inertia = self.objective() if watch.needs_inertia else None
                means()
                move = None
                if watch.needs_move:
                    new = self.centers.copy_to_host()
                    move, old = float(np.abs(new - old).max()), new
                over = watch.over(0 if rule is None else asked(), move, inertia)
                loops.note()
        cuda.synchronize()
        seconds = time.perf_counter() - began
        labels, centers = self.labels.copy_to_host(), self.centers.copy_to_host()
        told = dict(figures or {}) | ({} if rule is None else loops.figures())
        return Outcome(labels, centers, watch.n_iter, seconds, phases or {}, told)

    def objective(self) -> float:
        """Return J, the sum of squared distances of the points to the centres of their clusters."""
        total = zeros(1, np.float64)
        _objective[min(self.blocks, 64), self.block](self.X, self.centers, self.labels, total)
        return float(total.copy_to_host()[0])


class Range:
    """The shortest and the longest of several spans of time, each from the end of the one before.

    Attributes
    ----------
    least, largest : float
        Seconds.
    """

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.least, self.largest = float("inf"), 0.0

    def note(self) -> None:
        """Note the end of a span."""
        now = time.perf_counter()
        span, self._last = now - self._last, now
        self.least, self.largest = min(self.least, span), max(self.largest, span)

    def figures(self) -> dict[str, float]:
        """Return both, by the names that an outcome has them under."""
        return {"shortest iteration": self.least, "longest iteration": self.largest}


@cuda.jit
def _objective(X, centers, labels, total):
    """Add J to `total`, a thread for every so many points."""
    own = 0.0
    for i in range(cuda.grid(1), X.shape[0], cuda.gridsize(1)):
        for f in range(X.shape[1]):
            difference = X[i, f] - centers[labels[i], f]
            own += difference * difference
    cuda.atomic.add(total, 0, own)


class Stopwatch:
    """Tells the time of kernels apart, by events queued between them.

    Where the GPU is faster than the host queues, waiting counts to the kernel after it.
    """

    def __init__(self) -> None:
        self._marks: list[tuple[str, Any]] = []

    def mark(self, name: str) -> None:
        """Queue an event at the end of what is called so; what ends with "" counts for nothing."""
        event = cuda.event()
        event.record()
        self._marks.append((name, event))

    def seconds(self) -> dict[str, float]:
        """Wait for all events, and return the time of each name."""
        cuda.synchronize()
        names = dict.fromkeys(name for name, _ in self._marks if name)
        result = dict.fromkeys(names, 0.0)
        for (_, start), (name, end) in zip(self._marks, self._marks[1:]):
            if name:
                result[name] += start.elapsed_time(end) / 1000
        return result
