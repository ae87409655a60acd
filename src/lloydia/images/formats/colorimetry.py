"""The description of colours in image files, and which formats can hold it.

A file describes the colours of its numbers by a code (cICP), a profile, or a gamma and primaries;
the first of these that is present applies.  Without any of them, the numbers are sRGB.  The
description is stored under the names of PNG's chunks (W3C, Portable Network Graphics Specification,
third edition, section 11.3.2), as the bytes of these chunks; the profile itself is "icc_profile".

========== =========================================================================================
read from  what
========== =========================================================================================
PNG        a profile; gAMA, cHRM, sRGB, cICP, and mDCV and cLLI, which belong to cICP
JPEG       a profile; Exif: Adobe RGB by its name (interoperability index R03), gamma and primaries
WebP, AVIF as JPEG
TIFF       a profile; white point and primaries (tags 318 and 319); and as JPEG
GIF        a profile (application extension ICCRGBG1012)
BMP        of versions 4 and 5: gamma and primaries, and a profile that is embedded
AVIF       and the code (colour information box nclx)
JPEG 2000  a profile
QOI        whether the numbers are linear light
========== =========================================================================================

A written PNG can hold all of it; a TIFF a profile, white point and primaries; a JPEG, WebP or GIF a
profile.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import ExifTags, Image

from lloydia.data.formats.damage import DAMAGE

__all__ = ["CHUNKS", "found", "kept"]

# The chunks of PNG, with their lengths.
CHUNKS = {"cICP": 4, "mDCV": 24, "cLLI": 8, "sRGB": 1, "gAMA": 4, "cHRM": 32}

# Gammas and coordinates are multiples of it.
UNIT = 100_000
_GAMMA, PRIMARIES = struct.Struct(">I"), struct.Struct(">8I")  # white, red, green, blue: x and y

# IEC 61966-2-1, and Adobe RGB (1998), as PNG writes them.
_SRGB = (45_455, (31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000))
_ADOBE = (45_471, (31_270, 32_900, 64_000, 33_000, 21_000, 71_000, 15_000, 6_000))
_SRGB_CODE = (1, 13)  # primaries and transfer function of ITU-T H.273
_NEAR = 25  # units: how far the numbers of files that mean sRGB are from it

_TRANSFER_FUNCTION, WHITE_POINT, PRIMARY_CHROMATICITIES = 301, 318, 319
_EXIF_GAMMA, _ADOBE_INDEX = 0xA500, "R03"
GIF_PROFILE = b"\x21\xff\x0bICCRGBG1012"
# Exceptions for a damaged description of colours, which is then ignored.
_UNREADABLE = (*DAMAGE, IndexError, ZeroDivisionError)


def found(image: Image.Image, data: bytes) -> tuple[dict[str, Any], list[str]]:
    """Return the description of a file's colours.

    Parameters
    ----------
    image : PIL.Image.Image
        The file as it was opened.
    data : bytes
        The file.

    Returns
    -------
    dict
        "icc_profile" and names of `CHUNKS`, if the file has them.
    list of str
        Texts about what is left out, to follow the name of the file.
    """
    said: dict[str, Any] = {}
    notes = []
    with suppress(*_UNREADABLE):
        said = _READERS.get(image.format or "", _nothing)(image, data)
    profile = image.info.get("icc_profile") or said.pop("icc_profile", None)
    # Without Exif in its info a PNG would be decoded to look for it.
    if not (said or profile) and (image.format == "TIFF" or "exif" in image.info):
        with suppress(*_UNREADABLE):
            said = _exif(image)
    if profile and len(profile) >= 128 and profile[36:40] == b"acsp":
        said["icc_profile"] = profile
    elif profile or "icc_profile" in image.info:
        notes.append("has a damaged colour profile, which is left out")
    if image.format == "TIFF" and _TRANSFER_FUNCTION in image.tag_v2:  # type: ignore[attr-defined]
        notes.append("has a transfer function (tag 301), which is left out")
    if image.format in ("JPEG", "MPO") and _has_gain_map(data):
        notes.append("has a gain map for bright displays (HDR), which is left out")
    return {name: value for name, value in said.items() if value}, notes


def kept(info: Mapping[str, Any], form: str, grey: bool, path: Path) -> dict[str, Any]:
    """Return the part of `info` that a file can hold, and warn of colours that it cannot hold.

    Parameters
    ----------
    info : mapping
        As in :class:`lloydia.images.formats.files.Picture`.
    form : str
        The format, in Pillow's words.
    grey : bool
        Whether the file's pixels are grey; otherwise they are RGB, as palette entries are.
    path : Path
        The file, for the warning.
    """
    held = {"dpi", *_HELD.get(form, ())}
    profile = info.get("icc_profile")
    # Bytes 16 to 19 of a profile name its colour space (ICC.1:2022, section 7.2.6).
    foreign = profile is not None and profile[16:20] != (b"GRAY" if grey else b"RGB ")
    rest = {name: value for name, value in info.items() if name in held}
    if foreign:
        rest.pop("icc_profile", None)
    lost = [_WORDS[name] for name in _that_count(info) if name not in rest]
    if lost:
        why = f"{form} cannot hold {'it' if len(lost) == 1 else 'them'}; a .png can"
        if foreign and "icc_profile" in held:
            why = f"its pixels are {'grey' if grey else 'RGB'}, and the profile is not"
        warnings.warn(
            f"{path} lacks the {' and the '.join(lost)} of the picture, so its colours may "
            f"look different: {why}.",
            stacklevel=4,
        )
    return rest


_HELD = {
    "PNG": ("icc_profile", *CHUNKS),
    "TIFF": ("icc_profile", "cHRM"),
    **dict.fromkeys(("JPEG", "WEBP", "GIF"), ("icc_profile",)),
}
_WORDS = {
    "icc_profile": "colour profile",
    "cICP": "colour code (cICP)",
    "gAMA": "gamma (gAMA)",
    "cHRM": "primaries (cHRM)",
}


def _that_count(info: Mapping[str, Any]) -> list[str]:
    """Return the names in `info` that make the colours differ from sRGB.

    A gamma counts only without a profile.
    """
    counting = []
    if "cICP" in info and tuple(info["cICP"][:2]) != _SRGB_CODE:
        counting.append("cICP")
    if "icc_profile" in info:
        return [*counting, "icc_profile"]
    if "sRGB" in info or "cICP" in info:
        return counting
    gamma, primaries = _SRGB
    if "gAMA" in info and abs(_GAMMA.unpack(info["gAMA"])[0] - gamma) > _NEAR:
        counting.append("gAMA")
    if "cHRM" in info:
        own = PRIMARIES.unpack(info["cHRM"])
        if any(abs(x - y) > _NEAR for x, y in zip(own, primaries)):
            counting.append("cHRM")
    return counting


def _nothing(image: Image.Image, data: bytes) -> dict[str, Any]:
    return {}


def _png(image: Image.Image, data: bytes) -> dict[str, Any]:
    said: dict[str, Any] = {}
    place = 8
    while data[place + 4 : place + 8] not in (b"IDAT", b""):
        (length,) = struct.unpack_from(">I", data, place)
        name = data[place + 4 : place + 8].decode("latin-1")
        if CHUNKS.get(name) == length:
            said.setdefault(name, data[place + 8 : place + 8 + length])
        place += length + 12
    return said


def _bmp(image: Image.Image, data: bytes) -> dict[str, Any]:
    """Read the header of version 4, whose coordinates are X, Y and Z of the primaries, or 5."""
    (size,) = struct.unpack_from("<I", data, 14)
    kind = data[70:74] if size >= 108 else b""
    if kind == b"DEBM":  # MBED, from its last byte to its first
        start, length = struct.unpack_from("<2I", data, 14 + 112)
        return {"icc_profile": data[14 + start : 14 + start + length]}
    if kind != bytes(4):
        return {}
    ends = [struct.unpack_from("<3i", data, 74 + 12 * i) for i in range(3)]
    gammas = struct.unpack_from("<3I", data, 110)
    said: dict[str, Any] = {}
    if len(set(gammas)) == 1 and gammas[0]:
        said |= _gamma(65_536 / gammas[0])
    if all(sum(end) > 0 for end in ends):
        white = [sum(end[i] for end in ends) for i in range(3)]
        pairs = [(x / (x + y + z), y / (x + y + z)) for x, y, z in [white, *ends]]
        said |= _primaries([value for pair in pairs for value in pair])
    return said


def _gif(image: Image.Image, data: bytes) -> dict[str, Any]:
    place = data.find(GIF_PROFILE)
    if place < 0:
        return {}
    place += len(GIF_PROFILE)
    profile = b""
    while data[place]:
        profile += data[place + 1 : place + 1 + data[place]]
        place += 1 + data[place]
    return {"icc_profile": profile}


def _tiff(image: Any, data: bytes) -> dict[str, Any]:
    return _tagged(image.tag_v2)


def _avif(image: Image.Image, data: bytes) -> dict[str, Any]:
    place = data.find(b"colrnclx")
    if place < 0:
        return {}
    code = struct.unpack_from(">2H", data, place + 8)
    # Pillow's pixels are RGB in full range, by whatever matrix they were stored.
    return {"cICP": bytes([*code, 0, 1])} if 2 not in code and code != _SRGB_CODE else {}


def _jpeg_2000(image: Image.Image, data: bytes) -> dict[str, Any]:
    place = data.find(b"colr\x02")
    if place < 0:
        return {}
    (length,) = struct.unpack_from(">I", data, place - 4)
    return {"icc_profile": data[place + 7 : place - 4 + length]}


def _qoi(image: Image.Image, data: bytes) -> dict[str, Any]:
    return _gamma(1.0) if data[13] == 1 else {}


def _exif(image: Image.Image) -> dict[str, Any]:
    """Read Adobe RGB by its name (DCF 2.0), or what Exif 2.3 has of gamma and primaries."""
    exif = image.getexif()
    said = _tagged(exif)
    if exif.get_ifd(ExifTags.IFD.Interop).get(1) == _ADOBE_INDEX:
        gamma, primaries = _ADOBE
        said = {"gAMA": _GAMMA.pack(gamma), "cHRM": PRIMARIES.pack(*primaries)} | said
    if curve := exif.get_ifd(ExifTags.IFD.Exif).get(_EXIF_GAMMA):
        said |= _gamma(1 / float(curve))
    return said


def _tagged(found: Mapping[int, Any]) -> dict[str, Any]:
    """Return the primaries of TIFF's tags."""
    white, primaries = found.get(WHITE_POINT, ()), found.get(PRIMARY_CHROMATICITIES, ())
    if (len(white), len(primaries)) != (2, 6):
        return {}
    return _primaries([float(value) for value in (*white, *primaries)])


def _gamma(value: float) -> dict[str, Any]:
    return {"gAMA": _GAMMA.pack(round(value * UNIT))}


def _primaries(values: list[float]) -> dict[str, Any]:
    return {"cHRM": PRIMARIES.pack(*(round(value * UNIT) for value in values))}


def _has_gain_map(data: bytes) -> bool:
    """Tell whether a JPEG has a gain map (Ultra HDR, or ISO 21496-1)."""
    return any(name in data for name in (b"hdrgm:Version", b"urn:iso:std:iso:ts:21496:-1"))


_READERS = {
    **dict.fromkeys(("PNG", "APNG"), _png),
    "BMP": _bmp,
    "GIF": _gif,
    "TIFF": _tiff,
    "AVIF": _avif,
    "JPEG2000": _jpeg_2000,
    "QOI": _qoi,
}
