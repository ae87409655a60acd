"""Decoding by Pillow, with limits on sizes and with errors of one sentence for damaged files.

A file of a few kilobytes can expand to fill any memory.  So sizes are checked before decoding.  A
picture may have up to ``PIL.Image.MAX_IMAGE_PIXELS`` pixels (89,478,485 by default), and all frames
of an animation together three times as many.  Texts and colour profiles of a PNG may have up to the
sizes that Pillow reads (1 MB each).  The memory that a picture needs must be free.  With
`allow_huge`, nothing of this is checked.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from warnings import catch_warnings, simplefilter

from PIL import Image, PngImagePlugin, UnidentifiedImageError

from lloydia.data.columns import DataError
from lloydia.data.formats.damage import DAMAGE
from lloydia.data.outputs import TABLES
from lloydia.imports import load
from lloydia.spelling import either, option

__all__ = ["FRAMES", "check_size", "sound", "whole"]

FRAMES = 3  # all frames together may have this many times the pixels of one picture
# Bytes per pixel of a picture, and of frames, at the peak of `lloydia quantize`, measured.
ONE, EACH = 40, 24

# The exceptions that Pillow raises for damaged images.
_DAMAGE = (*DAMAGE, IndexError, AttributeError, ZeroDivisionError, AssertionError)
_BOMBS = (Image.DecompressionBombError, Image.DecompressionBombWarning)


def check_size(where: str, size: tuple[int, int], n_frames: int = 1) -> None:
    """Refuse an image that is too large to be decoded.

    Parameters
    ----------
    where : str
        The name of the file in errors.
    size : tuple of int
        Width and height.
    n_frames : int
        The number of frames to decode.

    Raises
    ------
    DataError
        If there are more pixels than the limit, or than fit into the free memory.
    """
    width, height = size
    n_pixels = width * height * n_frames
    many = f"{n_frames:,} frames of {width:,} x {height:,} pixels, {n_pixels:,} in all"
    what = f"{where} has {many if n_frames > 1 else f'{n_pixels:,} pixels'}"
    limit = (Image.MAX_IMAGE_PIXELS or n_pixels) * (FRAMES if n_frames > 1 else 1)
    needed = n_pixels * (EACH if n_frames > 1 else ONE)
    if n_pixels > limit:
        raise _beyond(what, limit, needed)
    _check_free(what, needed)


def whole(stream: BinaryIO, where: str, allow_huge: bool) -> bytes:
    """Return the bytes of a file; a file that is not an image is refused before it is read.

    Raises
    ------
    DataError
        If the file is empty, or larger than the free memory.
    """
    if not stream.seekable():
        data = stream.read()
        if not data:
            raise DataError(f"{where} is empty.")
        return data
    n_bytes = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if not stream.read(1):
        raise DataError(f"{where} is empty.")
    stream.seek(0)
    Image.open(stream)
    if not allow_huge:
        _check_free(f"{where} has {n_bytes:,} bytes", n_bytes)
    stream.seek(0)
    return stream.read()


def _check_free(what: str, needed: int) -> None:
    memory = load("lloydia.data.chunks.memory")
    free = needed
    with suppress(ValueError):  # the system may not report its free memory
        free = memory.available()
    if needed > free:
        raise _huge(
            f"{what}; about {memory.spell(needed)} are needed, {memory.spell(free)} are free"
        )


@contextmanager
def sound(where: str, allow_huge: bool) -> Iterator[None]:
    """Turn Pillow's exceptions for damaged images into errors of one sentence.

    Raises
    ------
    DataError
        As :func:`lloydia.images.formats.files.read`.
    """
    limits = Image.MAX_IMAGE_PIXELS, PngImagePlugin.MAX_TEXT_CHUNK, PngImagePlugin.MAX_TEXT_MEMORY
    try:
        with catch_warnings():
            simplefilter("error", Image.DecompressionBombWarning)
            if allow_huge:
                Image.MAX_IMAGE_PIXELS = None
                PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY = sys.maxsize
            yield
    except DataError:
        raise
    except _BOMBS as error:
        raise _too_many_pixels(where, str(error)) from None
    except MemoryError:
        raise DataError(f"{where} needs more memory than is free.") from None
    except UnidentifiedImageError:
        if Path(where).suffix.lower() in (*TABLES, ".npz"):
            fit = either("lloydia.KMeans clusters its rows", "lloydia fit clusters tables")
            raise DataError(f"{where} is a table, not an image; {fit}.") from None
        what = "is not an image that Pillow reads: of an unknown format, cut short, or empty"
        raise DataError(f"{where} {what}.") from None
    except _DAMAGE as error:
        if "MAX_TEXT" in str(error):
            raise _huge(
                f"{where} has a text or a colour profile that expands to more than "
                f"{limits[1]:,} bytes, the limit that guards against files made to fill the memory"
            ) from None
        reason = str(error).rstrip(".") or type(error).__name__
        raise DataError(f"{where} is damaged or cut short: {reason}.") from None
    finally:
        (
            Image.MAX_IMAGE_PIXELS,
            PngImagePlugin.MAX_TEXT_CHUNK,
            PngImagePlugin.MAX_TEXT_MEMORY,
        ) = limits


def _too_many_pixels(where: str, words: str) -> DataError:
    """Return the error for Pillow's message about a picture beyond its limit."""
    limit = Image.MAX_IMAGE_PIXELS or 0
    found = re.search(r"\((\d+) pixels\)", words)
    n_pixels = int(found[1]) if found else limit
    return _beyond(f"{where} has {n_pixels:,} pixels", limit, n_pixels * ONE)


def _beyond(what: str, limit: int, needed: int) -> DataError:
    spelled = load("lloydia.data.chunks.memory").spell(needed)
    return _huge(
        f"{what}, more than {limit:,}, the limit that guards against files made to fill the "
        f"memory; about {spelled} are needed"
    )


def _huge(what: str) -> DataError:
    return DataError(f"{what}; {option('allow_huge', True)} reads it.")
