"""How every kernel is compiled, and kept on disk for the next process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

from lloydia.imports import uncollected

__all__ = ["floats", "integers", "kernel", "subroutine"]


def _digest() -> str:
    """Return a digest of all source that kernels are made of.

    Numba notices a change in a kernel's own file only, not in one that it calls.
    """
    package = Path(__file__).resolve().parents[2]
    folders = ("algorithms", "backends/cpu", "exact", "metrics")
    files = sorted(path for folder in folders for path in (package / folder).glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


DIGEST = _digest()


OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


class Cache(FunctionCache):
    """Kernels on disk, read without what only a compiler needs.

    Numba first declares all that a kernel might call, which takes as long as to read a dozen of
    them; it does so as well before it compiles one that is not there.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for these types, or None."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function that releases the interpreter lock, and cache the result on disk.

    There is no fastmath unless asked for: the canonical distance forbids contraction.  The digest
    becomes part of the cache file's name.  Where no folder can be written, nothing is cached.
    """
    if function is None:
        return lambda function: kernel(function, **options)
    function.__qualname__ += f"-{DIGEST}"
    options = {**OPTIONS, **options}
    compiled = njit(**options)(function)
    # Where there is no locator, neither the package nor a home is writeable.
    with suppress(RuntimeError):
        compiled._cache = Cache(function)
    # Compiling makes many objects and hardly any garbage.
    compiled.compile = uncollected(compiled.compile)
    return compiled


def subroutine(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function for kernels that call it: Python cannot, and it is cached in them.

    What a kernel calls at one place is best compiled there and never by itself, which takes longer:
    ``inline="always"``.
    """
    if function is None:
        return lambda function: subroutine(function, **options)
    options = {**OPTIONS, "no_cpython_wrapper": True, **options}
    return njit(**options)(function)


# np.empty itself is compiled anew for each kernel that calls it.
@subroutine
def floats(size):
    """Return an empty float64 array."""
    return np.empty(size)


@subroutine
def integers(size):
    """Return an empty int64 array."""
    return np.empty(size, np.int64)
