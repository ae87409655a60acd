"""Images with 16 bits per channel, of which Pillow decodes 8: reading by halves, and writing PNG.

Pillow supports 16-bit grey.  For 16-bit colours it decodes one byte of each sample; the *raw mode*
chooses the first byte (``RGB;16B``) or the second (``RGB;16L``).  So decoding the file twice, with
both raw modes, gives both bytes, and no other library is needed.  Pillow cannot write such images;
this module writes a PNG of four chunks (W3C, Portable Network Graphics Specification, third
edition, section 5), whose rows are filtered by their difference to the row above.
"""

from __future__ import annotations

import io
import struct
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps
from PIL.PngImagePlugin import putchunk

from lloydia.images.formats.embedding import put_chunks

__all__ = ["KEPT", "keyed", "rawmode", "samples", "write"]

# Raw modes for which both bytes of the samples can be decoded.
KEPT = frozenset(f"{kind};16{order}" for kind in ("RGB", "RGBA", "LA") for order in "BLN")

# The byte order whose raw mode decodes the other byte of a sample; N is this machine's order.
_OTHER = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}
_UP = 2  # the filter that subtracts the row above
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # by channels


def rawmode(image: Image.Image) -> str | None:
    """Return the raw mode of a file, Pillow's name of the storage of its samples, or None."""
    tiles = getattr(image, "tile", None)
    arguments = tiles[0][3] if tiles else None
    found = arguments[0] if isinstance(arguments, tuple) and arguments else arguments
    return found if isinstance(found, str) else None


def samples(data: bytes) -> NDArray[np.uint16]:
    """Decode an image file of 16-bit colours.

    Parameters
    ----------
    data : bytes
        The bytes of the file; its `rawmode` is one of `KEPT`.

    Returns
    -------
    ndarray of uint16, shape (height, width, 2 to 4)
        The pixels, upright.  With 2 or 4 channels, the last one is alpha.
    """
    image = Image.open(io.BytesIO(data))
    stored = rawmode(image)
    assert stored is not None
    if stored.startswith("LA"):  # no raw mode decodes the second bytes: decode pixels as four bytes
        four = _decoded(data, "RGBA")
        return _joined(four[..., 0::2], four[..., 1::2])
    kind, order = stored[:-1], stored[-1]
    pixels = _joined(_decoded(data, stored), _decoded(data, kind + _OTHER[order]))
    return keyed(pixels, image.info.get("transparency"))


def _joined(high: NDArray[np.uint8], low: NDArray[np.uint8]) -> NDArray[np.uint16]:
    return np.stack([low, high], axis=-1).view("<u2")[..., 0].astype(np.uint16, copy=False)


def _decoded(data: bytes, raw: str) -> NDArray[np.uint8]:
    """Decode a file with a given raw mode instead of its plugin's."""
    image: Any = Image.open(io.BytesIO(data))
    image.tile = [
        tile._replace(args=raw if isinstance(tile.args, str) else (raw, *tile.args[1:]))
        for tile in image.tile
    ]
    return np.asarray(ImageOps.exif_transpose(image))


def keyed(pixels: NDArray[np.uint16], key: int | tuple[int, ...] | None) -> NDArray[np.uint16]:
    """Add an alpha channel in which one colour is transparent and all others are opaque."""
    if key is None:
        return pixels
    alpha = np.where((pixels == np.asarray(key)).all(axis=2), 0, 65_535)
    return np.dstack([pixels, alpha.astype(np.uint16)])


def write(path: Path, values: NDArray[np.uint16], info: Mapping[str, Any]) -> None:
    """Write a PNG with 16 bits a channel.

    Parameters
    ----------
    path : Path
    values : ndarray of uint16, shape (height, width, 1 to 4)
        With 2 or 4 channels, the last one is alpha.
    info : mapping
        As in :class:`lloydia.images.formats.files.Picture`.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    height, width, channels = values.shape
    rows = values.astype(">u2").reshape(height, -1).view(np.uint8)
    filtered = np.empty((height, 1 + rows.shape[1]), np.uint8)
    filtered[:, 0] = _UP
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])  # modulo 256
    with path.open("wb") as stream:
        stream.write(b"\x89PNG\r\n\x1a\n")
        head = struct.pack(">IIBBBBB", width, height, 16, _COLOR_TYPES[channels], 0, 0, 0)
        putchunk(stream, b"IHDR", head)
        if profile := info.get("icc_profile"):
            putchunk(stream, b"iCCP", b"ICC Profile\0\0" + zlib.compress(profile))
        put_chunks(stream, info)
        if dpi := info.get("dpi"):
            metre = (round(value / 0.0254) for value in dpi)
            putchunk(stream, b"pHYs", struct.pack(">IIB", *metre, 1))
        putchunk(stream, b"IDAT", zlib.compress(filtered.tobytes()))
        putchunk(stream, b"IEND")
