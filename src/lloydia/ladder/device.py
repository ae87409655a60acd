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

MISSING = "The rungs on a GPU need numba-cuda: pip install numba-cuda, or take one of the CPU."
INSTALLED = find_spec("numba_cuda") is not None


class Missing:
    """Stands for numba-cuda where it is not installed: rungs can be listed, but not run."""

    def jit(self, *args: Any, **options: Any) -> Any:
        """Leave a function as it is, as no kernel is ever launched."""
        return args[0] if args and callable(args[0]) else lambda function: function

    def __getattr__(self, name: str) -> Any:
        raise ImportError(MISSING)


cuda: Any = load("numba.cuda") if INSTALLED else Missing()

if INSTALLED and not hasattr(np, "row_stack"):
    # NumPy 2.5 removed it, and numba-cuda up to 0.30.4 asks for it when it first compiles.
    vars(np)["row_stack"] = np.vstack
    try:
        load("numba.cuda.np.arrayobj")
    finally:
        del vars(np)["row_stack"]

SIMULATED = INSTALLED and "simulator" in load("numba.cuda.cudadrv").__name__
if SIMULATED:
    load("lloydia.ladder.simulation").complete()

# What a rung raises that cannot run here, or not on this problem; the driver's errors among them.
REFUSALS: tuple[type[Exception], ...] = (ImportError, MemoryError, ValueError)
if INSTALLED and not SIMULATED:
    REFUSALS += (load("numba.cuda.cudadrv.driver").CudaAPIError,)

# Options of a kernel that runs in blocks of up to 1024 threads: a thread of those has 64 registers.
LARGE_BLOCKS = {} if SIMULATED else {"max_registers": 64}

__all__ = [
    "LARGE_BLOCKS",
    "REFUSALS",
    "SHARED_BYTES",
    "SIMULATED",
    "Kernels",
    "Placed",
    "ceil_div",
    "cuda",
    "zeros",
]

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
        move: Callable[[], float] | None = None,
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
        move : callable, optional
            Returns the largest change of a coordinate of a centre, where the host does not compare
            the centres.
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
                moved = None
                if watch.needs_move and move:
                    moved = move()
                elif watch.needs_move:
                    new = self.centers.copy_to_host()
                    moved, old = float(np.abs(new - old).max()), new
                over = watch.over(asked() if watch.needs_changes else 0, moved, inertia)
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


class Kernels:
    """Launches kernels by name, and times each of them if that is wanted.

    Kernels of a few microseconds end before the host has queued the next, so an event after one
    would tell the time of the host.  A timed run therefore begins with a kernel that keeps the GPU
    busy for `LEAD` seconds while the host queues the others, which then run without gaps.  That
    holds for some hundred launches, and as long as the host waits for nothing in between.

    Parameters
    ----------
    timed : bool
    """

    LEAD = 0.1

    def __init__(self, *, timed: bool) -> None:
        self._timed = timed
        self._marks: list[tuple[str, Any]] = []

    def __call__(self, name: str, kernel: Any, grid: tuple, *args: Any) -> None:
        """Launch a kernel: `grid` is what numba-cuda takes in brackets."""
        if self._timed and not self._marks and not SIMULATED:
            _occupy[1, 1](np.int64(self.LEAD * 1e9 / NAP))
        self._mark("")
        kernel[grid](*args)
        self._mark(name)

    def _mark(self, name: str) -> None:
        """Queue an event at the end of what has this name; "" is for gaps."""
        if self._timed:
            event = cuda.event()
            event.record()
            self._marks.append((name, event))

    def seconds(self) -> dict[str, float]:
        """Wait for the GPU, and return the time of each name; {} if nothing was timed."""
        if not self._timed:
            return {}
        cuda.synchronize()
        result = dict.fromkeys((name for name, _ in self._marks if name), 0.0)
        for (_, start), (name, end) in zip(self._marks, self._marks[1:]):
            if name:
                result[name] += start.elapsed_time(end) / 1000
        return result


NAP = 500_000  # nanoseconds; the hardware allows a million


@cuda.jit
def _occupy(naps):
    """Do nothing for so many naps."""
    for _ in range(naps):
        cuda.nanosleep(np.uint32(NAP))
