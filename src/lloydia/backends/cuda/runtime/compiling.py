"""Compilation of kernels by several threads.

A kernel is compiled in two steps.  Triton first translates its source, some 2 s of a first fit for
all kernels together.  This step is Python code and holds Python's lock, so that threads cannot
translate at the same time.  The second step, the passes of Triton, LLVM and ptxas, releases the
lock.  Here only one thread at a time may translate: its kernel soon reaches the second step, which
runs while the next thread translates.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import nullcontext, suppress
from functools import cache, wraps
from threading import Lock, Thread, main_thread
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from triton.compiler import code_generator
from triton.runtime import driver as drivers
from triton.runtime.cache import triton_key
from triton.runtime.jit import JITCallable

from lloydia.backends.cuda.runtime.loaded_kernels import LoadedKernel

__all__ = ["Compilers", "compiled_now", "compilers", "length_of"]

# A first fit of (200k, 768, 1000) took 4.8 s with 16 threads on the 16 cores of an H200's host, and
# 4.8 and 5.1 s with 8 threads.
MAX_THREADS = 16


# The ids of the kernels and functions that are hashed, and the lock of a thread that hashes one.
_hashed: set[int] = set()
_hashing = Lock()


def compiled_now(kernel: Any, args: tuple, options: dict, device: int) -> LoadedKernel:
    """Compile a kernel for these arguments, or find it on disk, and load it on a GPU.

    Parameters
    ----------
    kernel : triton kernel
    args, options
        Those of its launch; tensors may be on the device ``"meta"``.
    device : int
        The number of the GPU.
    """
    with _hashing:
        hash_callees_first(kernel)
    # Each thread has a current device; this may be the thread of a fit, which keeps its own.
    with torch.cuda.device(device):
        return LoadedKernel.load(kernel.warmup(*args, grid=(1,), **options), device)


def hash_callees_first(function: Any) -> None:
    """Hash a kernel, after all functions that it calls.

    Triton finds kernels on disk by this hash.  It includes the constants of called functions only
    if these were hashed before: without this order it would depend on which kernels a process
    compiles first.
    """
    if id(function) in _hashed:
        return
    _hashed.add(id(function))
    for one in called_by(function):
        hash_callees_first(one)
    _ = function.cache_key


def called_by(function: Any) -> list[Any]:
    """Return the Triton functions that `function` may call, by name or as a module's attribute."""
    names, variables = function.fn.__code__.co_names, function.fn.__globals__
    found = [variables.get(name) for name in names]
    for module in [one for one in found if isinstance(one, ModuleType)]:
        found += [vars(module).get(name) for name in names]
    return [one for one in found if isinstance(one, JITCallable)]


def length_of(kernel: Any) -> int:
    """Return the number of characters of a kernel and of all functions that it calls.

    Longer kernels take longer to compile.
    """
    found, left = {id(kernel): kernel}, [kernel]
    while left:
        new = {id(one): one for one in called_by(left.pop()) if id(one) not in found}
        found |= new
        left += new.values()
    return sum(len(one.src) for one in found.values())


class Compilers:
    """Threads that compile; they start when there is work, and end when none is left.

    When the process ends, each thread finishes the kernel that it is compiling, and the futures of
    all other work are cancelled.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.lock, self.works, self.running = Lock(), deque[tuple[Future, Callable]](), 0

    def submit(self, work: Callable[[], Any]) -> Future:
        """Have work done by a thread; return the future of its result."""
        future: Future = Future()
        with self.lock:
            self.works.append((future, work))
            begins = self.running < self.n_threads
            self.running += begins
        if begins:
            try:
                # No daemon, even if the caller is one: exit waits for the kernel in progress.
                Thread(target=self._run, name="lloydia-compiler", daemon=False).start()
            except RuntimeError:  # The process may have no more threads.
                self._run()
        return future

    def _run(self) -> None:
        while True:
            with self.lock:
                if not main_thread().is_alive():
                    for left, _ in self.works:
                        left.cancel()
                    self.works.clear()
                if not self.works:
                    self.running -= 1
                    return
                future, work = self.works.popleft()
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)


@cache
def compilers() -> Compilers:
    """Return the threads of this process."""
    keep_warning_filters()
    translate_one_at_a_time()
    out = Compilers(min(MAX_THREADS, len(os.sched_getaffinity(0))))
    # These are prepared once for all threads: a digest of Triton's files, and Triton's driver, part
    # of which is compiled.
    digest = out.submit(triton_key)
    drivers.active.get_current_device()
    with suppress(CancelledError):
        digest.result()
    return out


def keep_warning_filters() -> None:
    """Keep Triton from changing the filters of warnings.

    Before 3.9 it changes and restores them at each node of a kernel's source, for warnings that no
    supported version of Python gives there.  They belong to the process: threads that do so at once
    would leave other filters behind.
    """
    if getattr(code_generator, "warnings", None) is warnings:
        code_generator.warnings = SimpleNamespace(
            catch_warnings=nullcontext,
            simplefilter=lambda *args: None,
            warn=warnings.warn,
            warn_explicit=warnings.warn_explicit,
        )


def translate_one_at_a_time() -> None:
    """Have one thread at a time translate the source of a kernel; the others wait for it.

    Triton looks the patched function up in its module each time it compiles a kernel.
    """
    translate, lock = code_generator.ast_to_ttir, Lock()

    @wraps(translate)
    def locked(*args: Any, **options: Any) -> Any:
        with lock:
            return translate(*args, **options)

    code_generator.ast_to_ttir = locked
