"""Where compiled kernels are stored."""

from __future__ import annotations

from pathlib import Path

__all__ = ["numba_folder", "triton_folder"]


def numba_folder() -> Path:
    """Return the folder below which Numba stores kernels: the engine's own, or another one.

    Raises
    ------
    RuntimeError, OSError
        No folder can be written.
    """
    from numba.core.caching import FunctionCache

    from lloydia.backends import cpu
    from lloydia.backends.cpu.runtime.pool import available_threads

    own, used = Path(cpu.__path__[0]), Path(FunctionCache(available_threads).cache_path)
    return own if used.is_relative_to(own) else used.parent


def triton_folder() -> Path:
    """Return the folder in which Triton stores kernels.

    Raises
    ------
    ImportError
        Triton is missing.
    """
    import triton

    return Path(triton.knobs.cache.dir)
