"""The exceptions that libraries raise for damaged files."""

from __future__ import annotations

import lzma
import struct
import tokenize
import zipfile
import zlib

__all__ = ["DAMAGE"]

# NumPy, zipfile, Pillow, zarr and h5py raise these.
DAMAGE = (
    *(ValueError, TypeError, KeyError, EOFError, OSError, OverflowError, SyntaxError),
    *(NotImplementedError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error),
    *(tokenize.TokenError, lzma.LZMAError),
)
