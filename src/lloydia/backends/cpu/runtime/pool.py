"""The thread pool: nogil kernels over blocks of rows, handed out as threads become free.

Numba's threading layers are not fork-safe or not re-entrant, and take seconds to compile; a kernel
compiled with ``nogil=True`` only needs ordinary threads.  Kernels return integers or write to
different rows, so any schedule gives the same result.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from lloydia import control_groups

__all__ = ["Task", "available_threads", "blocks", "default_threads", "run", "threads_of"]

# A task takes the number of its thread, the first row (or other item), and the row after the last.
Task = Callable[[int, int, int], None]

# The pool has as many workers as the largest call so far needed.  A smaller one, which it replaces,
# ends with the last call that uses it.
_pool: ThreadPoolExecutor | None = None
_workers = 0
_lock = threading.Lock()

# A caller may use this many threads, however few processors there are.
MAX_THREADS = 64

# Seconds that a caller polls for the end of the other threads before it sleeps until then.
POLLING_SECONDS = 200e-6


def available_threads() -> int:
    """Return the number of processors this process may use.

    It is the smallest of its affinity, the time that its control groups grant (in a container), and
    ``PYTHON_CPU_COUNT`` (from Python 3.13 on).
    """
    if hasattr(os, "sched_getaffinity"):
        counts = [len(os.sched_getaffinity(0))]
    else:
        counts = [os.cpu_count() or 1]
    if hasattr(os, "process_cpu_count"):
        counts.append(os.process_cpu_count() or 1)
    if (granted := _granted()) is not None:
        counts.append(granted)
    return max(min(counts), 1)


@cache
def _granted() -> int | None:
    """Return the number of processors that control groups grant, rounded up.

    Reading the groups' files takes longer than a small fit, so this is done once per process.
    """
    processors = control_groups.processors()
    return None if processors is None else math.ceil(processors)


def default_threads() -> int:
    """Return the processors this process may use, or OMP_NUM_THREADS where that is smaller.

    Nested parallelism (joblib, dask) sets OMP_NUM_THREADS in its workers.
    """
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    available = available_threads()
    return min(available, int(limit)) if limit.isdigit() and int(limit) > 0 else available


def threads_of(n_threads: int | None) -> int:
    """Return how many threads to use for a parameter `n_threads`, which may be None.

    Each thread has scratch memory, and more threads than processors are no faster: so the number
    is limited.
    """
    if n_threads is None:
        return default_threads()
    return min(int(n_threads), max(MAX_THREADS, available_threads()))


def blocks(n: int, size: int, smallest_block: int, n_threads: int) -> list[tuple[int, int]]:
    """Return the bounds ``(start, stop)`` of consecutive blocks of at most `size` rows.

    A block is at most half of a thread's share of the remaining rows, but not less than
    `smallest_block`.  So threads that began at different times, or are not equally fast, end
    together (guided self-scheduling, Polychronopoulos and Kuck 1987).
    """
    found, start = [], 0
    while start < n:
        stop = min(start + max(smallest_block, min(size, (n - start) // (2 * n_threads))), n)
        found.append((start, stop))
        start = stop
    return found


def run(
    task: Task,
    n: int,
    size: int,
    n_threads: int,
    smallest_block: int | None = None,
) -> None:
    """Call ``task(thread, start, stop)`` for every block of rows, on `n_threads` threads.

    Parameters
    ----------
    task : callable
        Receives the number of its thread (0 to ``n_threads - 1``: an index into per-thread
        partial results) and the block.  Two calls with the same thread number never overlap.
    n, size : int
        Number of rows, and largest number of rows per block.
    n_threads : int
        The calling thread is one of them; for one thread or one block no other thread is used.
    smallest_block : int, optional
        Rows of the last blocks, which may be smaller; `size` by default.

    Raises
    ------
    Exception
        The error of a task, after every thread has stopped; no further block is started.
    """
    if n <= size or n_threads <= 1:
        for start in range(0, n, size):
            task(0, start, min(start + size, n))
        return
    todo = blocks(n, size, size if smallest_block is None else smallest_block, n_threads)
    n_threads = min(n_threads, len(todo))
    queue = iter(todo)
    queue_lock = threading.Lock()

    def work(thread: int) -> None:
        while True:
            with queue_lock:
                block = next(queue, None)
            if block is None:
                return
            task(thread, *block)

    def guarded(thread: int) -> None:
        nonlocal queue
        try:
            work(thread)
        except BaseException:
            queue = iter(())
            raise

    futures = []
    try:
        for thread in range(1, n_threads):
            futures.append(_executor(n_threads - 1).submit(guarded, thread))
        guarded(0)
    finally:
        queue = iter(())
        # Threads that have not begun yet find no block left.
        running = [future for future in futures if not future.cancel()]
        # Polls first: to wake from sleep takes longer than most threads still need.
        deadline = time.perf_counter() + POLLING_SECONDS
        while not all(f.done() for f in running) and time.perf_counter() < deadline:
            time.sleep(0)
        errors = [future.exception() for future in running]
    for error in errors:
        if error is not None:
            raise error


def _executor(workers: int) -> ThreadPoolExecutor:
    global _pool, _workers
    with _lock:
        if _pool is None or workers > _workers:
            _pool, _workers = ThreadPoolExecutor(workers, thread_name_prefix="lloydia"), workers
        return _pool


def _forget() -> None:
    """Reset the pool in a forked child: it has no threads, and its lock may be locked."""
    global _pool, _lock
    _pool = None
    _lock = threading.Lock()
    _granted.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
