"""Decoding by Pillow: what is too large is refused before it is decoded, what is damaged in words.

A file of a few kilobytes can expand to fill any memory.  So a picture may have as many pixels as
``PIL.Image.MAX_IMAGE_PIXELS`` (89,478,485 unless it is set), all frames of an animation together
three times as many, and texts and colour profiles of a PNG as many bytes as Pillow reads (1 MB
each); and what a picture needs must be free.  With `allow_huge` none of these is checked.
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

FRAMES = 3  # times the limit of one picture
# Bytes a pixel, of one picture and of frames, at the peak of `lloydia quantize`, measured.
ONE, EACH = 40, 24

# What Pillow raises beside on bytes that are no sound image.
_DAMAGE = (*DAMAGE, IndexError, AttributeError, ZeroDivisionError, AssertionError)
_BOMBS = (Image.DecompressionBombError, Image.DecompressionBombWarning)


def check_size(where: str, size: tuple[int, int], n_frames: int = 1) -> None:
    """Refuse an image that is too large to be decoded.

    Parameters
    ----------
    where : str
        What an error calls the file.
    size : tuple of int
        Width and height.
    n_frames : int
        How many of these are decoded.

    Raises
    ------
    DataError
        There are more pixels than the limit, or than fit the memory.
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
    """Return the bytes of a file; one that is no image is refused before all of it is read.

    Raises
    ------
    DataError
        The file is empty, or larger than the memory that is free.
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
    with suppress(ValueError):  # a system that does not say what is free
        free = memory.available()
    if needed > free:
        raise _huge(
            f"{what}; about {memory.spell(needed)} are needed, {memory.spell(free)} are free"
        )


@contextmanager
def sound(where: str, allow_huge: bool) -> Iterator[None]:
    """Turn what Pillow raises on bytes that are no sound image into one sentence.

    Raises
    ------
    DataError
        As :func:`lloydia.images.files.read`.
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
    """Return the error for what Pillow says of a picture beyond its limit."""
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
