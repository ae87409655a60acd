"""Writing images by Pillow, with the description of their colours (:mod:`.colorimetry`).

Pillow writes profiles, except in a GIF, and only some chunks of a PNG.  This module inserts the
missing parts into Pillow's output: the chunks after the header of a PNG, and the profile before the
first frame of a GIF.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import putchunk
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from lloydia.images.formats.colorimetry import (
    CHUNKS,
    GIF_PROFILE,
    PRIMARIES,
    PRIMARY_CHROMATICITIES,
    UNIT,
    WHITE_POINT,
    kept,
)

__all__ = ["put_chunks", "save"]

_PNG_HEAD = 33  # bytes: the signature and IHDR
_GIF_HEAD = 13  # bytes: signature and screen; a palette may follow
_BLOCK = 255  # the largest number of bytes in a block of a GIF


def save(
    image: Image.Image, to: Path, form: str, info: Mapping[str, Any], path: Path, **options: Any
) -> None:
    """Write an image, and warn if the format cannot hold the description of its colours.

    Parameters
    ----------
    image : PIL.Image.Image
    to : Path
        The file to write, a temporary one.
    form : str
        The format, in Pillow's words.
    info : mapping
        As in :class:`lloydia.images.formats.files.Picture`.
    path : Path
        The name of the file in warnings.
    **options
        Pillow's options of the format.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    rest = kept(info, form, image.mode in ("L", "LA"), path)
    options |= {name: rest[name] for name in ("dpi", "icc_profile") if name in rest}
    if form == "TIFF":
        options["tiffinfo"] = _tags(rest)
    stream = io.BytesIO()
    image.save(stream, form, **options)
    data, added = stream.getvalue(), io.BytesIO()
    place = 0
    if form == "PNG":
        place = _PNG_HEAD
        put_chunks(added, rest)
    elif form == "GIF" and "icc_profile" in rest:
        place = _GIF_HEAD + (3 << (data[10] & 7) + 1 if data[10] & 128 else 0)
        _put_blocks(added, rest["icc_profile"])
    with to.open("wb") as file:
        for part in (data[:place], added.getvalue(), data[place:]):
            file.write(part)


def put_chunks(stream: Any, info: Mapping[str, Any]) -> None:
    """Write the chunks of a PNG except the profile; a PNG with a profile must not have sRGB."""
    for name in CHUNKS:
        if name in info and not (name == "sRGB" and "icc_profile" in info):
            putchunk(stream, name.encode(), info[name])


def _put_blocks(stream: io.BytesIO, profile: bytes) -> None:
    stream.write(GIF_PROFILE)
    for start in range(0, len(profile), _BLOCK):
        block = profile[start : start + _BLOCK]
        stream.write(bytes([len(block)]) + block)
    stream.write(b"\0")


def _tags(info: Mapping[str, Any]) -> ImageFileDirectory_v2:
    directory = ImageFileDirectory_v2()
    if "cHRM" in info:
        values = [value / UNIT for value in PRIMARIES.unpack(info["cHRM"])]
        directory[WHITE_POINT] = tuple(values[:2])
        directory[PRIMARY_CHROMATICITIES] = tuple(values[2:])
    return directory
