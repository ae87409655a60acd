"""Compiled kernels on disk: a file is complete or not used, and no error of the cache ends a fit.

The cache only saves time.  If its folder cannot be written, or a file in it is damaged, kernels are
compiled again, a damaged file is replaced, and one warning names the folder.

Each file begins with a digest of the rest, so that an empty, truncated or altered one is never
loaded.  A data file also stores the key of its kernel: if two processes write the same index at the
same time, one file name may belong to two kernels, and the key keeps each process from loading the
wrong one.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import secrets
import warnings
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

__all__ = ["Cache"]

DIGEST_BYTES = 16

# The kinds of warnings that this process has shown: each is shown once.
_warned: set[str] = set()


class DamagedError(Exception):
    """A file of the cache is damaged."""


class Files(IndexDataCacheFile):
    """The index and the data files of one function's kernels."""

    @property
    def exists(self) -> bool:
        """Whether there is an index."""
        return os.path.exists(self._index_path)

    def load(self, key: Any) -> Any:
        """Return the kernel of a key; None where there is none."""
        name = self._load_index().get(key)
        if name is None:
            return None
        path = self._data_path(name)
        try:
            stored_key, kernel = unsealed(path)
        except FileNotFoundError:
            return None
        return kernel if stored_key == key else None

    def save(self, key: Any, kernel: Any) -> None:
        """Write the kernel of a key.

        Raises
        ------
        OSError
            A file cannot be written.
        """
        try:
            names = self._load_index()
        except (DamagedError, OSError):
            names = {}
        known = key in names
        if not known:
            taken = set(names.values())
            number = next(i for i in range(1, len(taken) + 2) if self._data_name(i) not in taken)
            names[key] = self._data_name(number)
        seal(self._data_path(names[key]), (key, kernel))
        if not known:
            self._save_index(names)

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, names = unsealed(self._index_path)
        except FileNotFoundError:
            return {}
        # Keys of another release of Numba may have types that no longer exist.
        fresh = version == self._version and stamp == self._source_stamp
        return pickle.loads(names) if fresh else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        seal(self._index_path, (self._version, self._source_stamp, dumps(overloads)))


class Cache(FunctionCache):
    """Kernels on disk, loaded without the parts of Numba that only a compiler needs.

    Numba declares all functions that a kernel might call before it loads one, which takes as long
    as loading a dozen kernels.  Here it does so only before it compiles.
    """

    # Whether kernels count references to arrays, for which every process compiles some functions.
    counts = True

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file: Files = Files(self._cache_path, self._impl.filename_base, stamp)

    @property
    def holds_any(self) -> bool:
        """Whether the function was compiled for some types, perhaps by another release of Numba."""
        return self._cache_file.exists

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for these types, or None."""
        if self.counts:
            rtsys.initialize(target_context)
        try:
            # Windows denies access to a file while another process replaces it.  Numba's guard then
            # reports that there is no kernel.
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except OSError as error:
            self._warn("read", _reason(error))
        except Exception:
            # A complete file may have objects of another release of Numba, which cannot be loaded.
            self._warn("damaged", "a file in it is damaged")
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled kernel, if its folder can be written."""
        try:
            with self._guard_against_spurious_io_errors():
                self._save_overload(sig, data)
        except OSError as error:
            self._warn("written", _reason(error))

    def _warn(self, what: str, why: str) -> None:
        if what in _warned:
            return
        _warned.add(what)
        folder = self._cache_path
        if what == "damaged":
            text = f"compiled kernels in {folder}: {why}; it is compiled again and replaced."
        else:
            text = (
                f"compiled kernels in {folder} cannot be {what}: {why}; each process compiles them "
                "again until that folder can be used: set NUMBA_CACHE_DIR to use another folder."
            )
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def seal(path: str, content: Any) -> None:
    """Write a file with a digest, under a temporary name, and rename it.

    Raises
    ------
    OSError
        The file cannot be written; no part of it remains.
    """
    data = dumps(content)
    temporary = f"{path}.tmp.{secrets.token_hex(8)}"
    try:
        with open(temporary, "wb") as stream:
            stream.write(_digest(data))
            stream.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def unsealed(path: str) -> Any:
    """Return the content that :func:`seal` wrote.

    Raises
    ------
    DamagedError
        The file is empty, truncated or altered.
    OSError
        The file cannot be read.
    """
    with open(path, "rb") as stream:
        data = memoryview(stream.read())
    if data[:DIGEST_BYTES] != _digest(data[DIGEST_BYTES:]):
        raise DamagedError(path)
    return pickle.loads(data[DIGEST_BYTES:])


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
