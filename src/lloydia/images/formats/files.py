"""Reading and writing of image files.

Pillow decodes and encodes.  A picture is upright (the EXIF orientation is applied), grey or RGB
with separate alpha, and has 8 or 16 bits per channel as in the file (:mod:`.deep` adds what Pillow
does not support).  The colours are not converted; `Picture.info` keeps the file's description of
them (:mod:`.colorimetry`), and is written again.  `Picture.note` says what could not be kept, and a
warning says what the format of a written file cannot hold.  Files are written under a temporary
name.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageOps

from lloydia.data.columns import DataError
from lloydia.data.formats.opening import STANDARD_INPUT, open_input
from lloydia.data.outputs import Renames, writing
from lloydia.images.formats import colorimetry, deep
from lloydia.images.formats.decoding import check_size, sound, whole
from lloydia.images.formats.embedding import save

__all__ = ["WRITABLE", "Picture", "check_form", "read", "write"]

# Pillow's name of the format of each extension, and its options.  A JPEG keeps full colour
# resolution, because flat segments have sharp edges.
_FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    ".png": ("PNG", {"optimize": True}),
    ".jpg": ("JPEG", {"quality": 95, "subsampling": 0, "optimize": True}),
    ".jpeg": ("JPEG", {"quality": 95, "subsampling": 0, "optimize": True}),
    ".webp": ("WEBP", {"lossless": True}),
    ".tif": ("TIFF", {"compression": "tiff_lzw"}),
    ".tiff": ("TIFF", {"compression": "tiff_lzw"}),
    ".bmp": ("BMP", {}),
}
WRITABLE = tuple(_FORMATS)
_OPAQUE = ("JPEG", "BMP")

# Modes of Pillow that need no conversion, and the modes to which others are converted.
_PLAIN = ("L", "LA", "RGB", "RGBA")
_KIN = {"1": "L", "La": "LA", "RGBa": "RGBA", "RGBX": "RGB", "PA": "RGBA"}
_NAMES = {
    "P": "a palette",
    "PA": "a palette",
    "CMYK": "CMYK",
    "LAB": "Lab",
    "YCbCr": "YCbCr",
    "HSV": "HSV",
}


@dataclass(frozen=True)
class Picture:
    """An image as it was read.

    Parameters
    ----------
    pixels : ndarray of uint8 or uint16, shape (height, width, 1) or (height, width, 3)
        Grey or RGB, from 0 to 255 or 65,535, in the file's own colour profile.
    alpha : ndarray of the same type, shape (height, width), or None
        The opacity of each pixel; None if the file has no transparency.
    note : str or None
        A sentence about what was converted or left out, if anything was.
    info : dict
        The values for :func:`write`, if the file has them: "dpi", a pair; and the description of
        the colours, "icc_profile" and chunks of a PNG (:data:`.colorimetry.CHUNKS`), as bytes.
    """

    pixels: NDArray[Any]
    alpha: NDArray[Any] | None = None
    note: str | None = None
    info: dict[str, Any] = field(default_factory=dict)


def read(path: str | Path, *, allow_huge: bool = False) -> Picture:
    """Read an image; from an animation or a file of several pages, read the first image.

    Parameters
    ----------
    path : str or Path
        A file that Pillow can read; "-" is standard input.
    allow_huge : bool
        Whether to read images beyond the limits of :mod:`.decoding`, which guard against small
        files that expand to fill the memory.  Pillow's limits are lifted for the whole process
        during the reading.

    Returns
    -------
    Picture

    Raises
    ------
    DataError
        If there is no such file, or it is not an image, is damaged, cut short, empty or too large,
        or does not have 8 or 16 bits per channel.
    """
    where = "standard input" if str(path) in STANDARD_INPUT else str(path)
    with open_input(path) as (stream, _), sound(where, allow_huge):
        data = whole(stream, where, allow_huge)
        image = Image.open(io.BytesIO(data))
        if not allow_huge:
            check_size(where, image.size)
        notes = [_pages(image)]
        info, left_out = colorimetry.found(image, data)
        if deep.rawmode(image) in deep.KEPT:
            samples = deep.samples(data)
        else:
            samples, note, info = _samples(image, where, info)
            notes.append(note)
        info = _resolution(image, samples) | info
    pixels, alpha = _parted(samples)
    notes += left_out
    told = ", and ".join(note for note in notes if note)
    return Picture(pixels, alpha, f"{where} {told}." if told else None, info)


def check_form(path: str | Path, dtype: np.dtype, transparent: bool) -> None:
    """Refuse a file whose format, by its extension, cannot hold such pixels.

    Parameters
    ----------
    path : str or Path
    dtype : dtype
        uint8 or uint16.
    transparent : bool

    Raises
    ------
    DataError
        If the extension is unknown, or the format does not support transparency or 16 bits per
        channel.
    """
    path = Path(path)
    if path.suffix.lower() not in _FORMATS:
        raise DataError(f"cannot write {path}: its extension must be one of {', '.join(WRITABLE)}.")
    form, _ = _FORMATS[path.suffix.lower()]
    if transparent and form in _OPAQUE:
        raise DataError(f"cannot write {path}: {form} has no transparency; name it .png.")
    if dtype == np.uint16 and form != "PNG":
        raise DataError(f"cannot write {path}: 16 bits a channel need .png.")


def write(
    path: str | Path,
    pixels: NDArray[Any],
    alpha: NDArray[Any] | None = None,
    info: Mapping[str, Any] | None = None,
    renames: Renames | None = None,
) -> None:
    """Write an image; if writing fails, no incomplete file is left.

    Parameters
    ----------
    path : str or Path
        The file; its extension, one of `WRITABLE`, chooses the format.
    pixels : ndarray of uint8 or uint16, shape (height, width), (height, width, 1 or 3)
    alpha : ndarray of the same type, shape (height, width), or None
    info : mapping or None
        As in :class:`Picture`.
    renames : Renames or None
        The file appears when this context ends; None: at once.

    Raises
    ------
    DataError
        As :func:`check_form`.
    OSError
        The file cannot be written.
    """
    check_form(path, pixels.dtype, alpha is not None)
    path, found = Path(path), info or {}
    form, options = _FORMATS[path.suffix.lower()]
    samples = pixels.reshape(*pixels.shape[:2], -1)
    if alpha is not None:
        samples = np.dstack([samples, alpha])
    with Renames() as own, writing(path, renames or own) as to:
        if samples.dtype == np.uint16:
            deep.write(to, samples, colorimetry.kept(found, form, samples.shape[2] < 3, path))
        else:
            flat = samples[..., 0] if samples.shape[2] == 1 else samples
            image = Image.fromarray(np.ascontiguousarray(flat))
            save(image, to, form, found, path, **options)


def _pages(image: Image.Image) -> str | None:
    """Return a note if a file holds several images; an MPO of a phone counts as one."""
    n = getattr(image, "n_frames", 1)
    if n == 1 or image.format == "MPO":
        return None
    return f"holds {n} images, of which the first is taken"


def _samples(
    image: Image.Image, where: str, info: dict[str, Any]
) -> tuple[NDArray[Any], str | None, dict[str, Any]]:
    """Return the upright samples, shape (height, width, 1 to 4), a note, and their colours."""
    deeper = "16" in (deep.rawmode(image) or "")
    note = "has 16 bits a channel, of which 8 are read" if deeper else None
    image = ImageOps.exif_transpose(image)
    mode = image.mode  # the mode of an icon is known only after decoding
    if mode.startswith(("I", "F")):
        key = image.info.get("transparency")
        return _integers(np.asarray(image), where, key), None, info
    if mode in ("CMYK", "LAB"):  # the description is that of the numbers before the conversion
        info = {}
    if mode == "CMYK" and (profiled := _by_profile(image)):
        note, image = "was converted from CMYK to sRGB by its colour profile", profiled
        info = {"icc_profile": image.info["icc_profile"]}
    elif mode not in _PLAIN:
        if mode in _NAMES:
            note = f"was converted from {_NAMES[mode]} to RGB"
        if mode == "CMYK":
            note = f"{note} by the plain formula, for want of a usable colour profile"
        image = image.convert(_KIN.get(mode, "RGBA" if _keyed(image) else "RGB"))
    elif mode in ("L", "RGB") and _keyed(image):
        image = image.convert("LA" if mode == "L" else "RGBA")
    values = np.asarray(image)
    return values.reshape(*values.shape[:2], -1), note, info


def _keyed(image: Image.Image) -> bool:
    return "transparency" in image.info


def _by_profile(image: Image.Image) -> Image.Image | None:
    """Return a CMYK image converted to sRGB by its profile; None without a usable profile."""
    if not (profile := image.info.get("icc_profile")):
        return None
    srgb = ImageCms.createProfile("sRGB")
    try:
        converted = ImageCms.profileToProfile(image, io.BytesIO(profile), srgb, outputMode="RGB")
    except ImageCms.PyCMSError:
        return None
    assert converted is not None  # it is None where the image is converted in place
    converted.info = image.info | converted.info
    return converted


def _integers(values: NDArray[Any], where: str, key: int | None) -> NDArray[np.uint16]:
    """Return grey values of more than 8 bits as uint16, with alpha if one value is transparent."""
    low, high = values.min(), values.max()
    if values.dtype.kind == "f" or low < 0 or high > 65_535:
        raise DataError(
            f"{where} has values from {low:g} to {high:g}: 8 or 16 bits a channel are read, whole "
            "numbers from 0 to 255 or 65,535."
        )
    return deep.keyed(values.astype(np.uint16)[..., np.newaxis], key)


def _resolution(image: Image.Image, samples: NDArray[Any]) -> dict[str, Any]:
    """Return the resolution, rotated like the picture."""
    if not (dpi := image.info.get("dpi")):
        return {}
    x, y = (float(value) for value in dpi)
    return {"dpi": (x, y) if samples.shape[1] == image.size[0] else (y, x)}


def _parted(samples: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Split the samples into pixels and alpha."""
    if samples.shape[2] in (2, 4):
        return np.ascontiguousarray(samples[..., :-1]), np.ascontiguousarray(samples[..., -1])
    return np.ascontiguousarray(samples), None
