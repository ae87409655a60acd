"""A writable cache of compiled kernels for this process, where Triton's folder is not writable.

Triton compiles nothing that it cannot store, so a full disk or a folder of another user would end
the fit.  Kernels in Triton's folder are still read from there.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from functools import cache

import triton
from triton.runtime.cache import FileCacheManager

__all__ = ["make_writable"]

# Bytes that are written to check for room: a fit compiles some megabytes.
ROOM = 4_000_000


@cache
def make_writable() -> None:
    """Store kernels elsewhere until the process ends, if Triton's folder cannot be written.

    A cache manager that the user has chosen is kept.

    Raises
    ------
    OSError
        There is no place for temporary files either.

    Warns
    -----
    RuntimeWarning
        The folder cannot be written; the sentence names it.
    """
    knobs = triton.knobs.cache
    if knobs.manager_class is not None:
        return
    try:
        os.makedirs(knobs.dir, exist_ok=True)
        _write(knobs.dir)
    except OSError as error:
        Elsewhere.folder = tempfile.mkdtemp(prefix="lloydia-kernels-")
        atexit.register(shutil.rmtree, Elsewhere.folder, ignore_errors=True)
        knobs.manager_class = Elsewhere
        reason = (error.strerror or str(error)).lower()
        warnings.warn(
            f"compiled kernels in {knobs.dir} cannot be written: {reason}; they are compiled anew "
            "in each process until that folder can be used, or TRITON_CACHE_DIR names another.",
            RuntimeWarning,
            stacklevel=2,
        )


def _write(folder: str) -> None:
    """Write as much as a fit needs, and remove it.

    Raises
    ------
    OSError
        There is no room.
    """
    with tempfile.TemporaryFile(dir=folder, buffering=0) as stream:
        rest = memoryview(bytes(ROOM))
        while rest:
            rest = rest[stream.write(rest) :]


class Elsewhere(FileCacheManager):
    """Reads kernels from Triton's folder, and writes them to another."""

    folder: str

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.there: FileCacheManager | None = None
        if override or dump:
            super().__init__(key, override, dump)
            return
        self.there = FileCacheManager.__new__(FileCacheManager)
        self.there.cache_dir = os.path.join(triton.knobs.cache.dir, key)
        self.key, self.cache_dir = key, os.path.join(self.folder, key)
        self.lock_path = os.path.join(self.cache_dir, "lock")
        os.makedirs(self.cache_dir, exist_ok=True)

    def get_file(self, filename: str) -> str | None:
        """Return the path of a file in either folder."""
        path = super().get_file(filename)
        return path if path or self.there is None else self.there.get_file(filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        """Return the paths of the files of a kernel in either folder."""
        paths = super().get_group(filename)
        return paths if paths or self.there is None else self.there.get_group(filename)
