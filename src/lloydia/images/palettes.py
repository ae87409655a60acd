"""Palettes: the k colours of a picture, and their files.

========= ==========================================================================================
extension what is written
========= ==========================================================================================
.png      a swatch for each colour, 16 a row
.json     an object: the colour space, and of each colour its hexadecimal name, values and share
.gpl      GIMP's palette (also Inkscape, Krita, Aseprite): a text of RGB values
.ase      Adobe Swatch Exchange (also Affinity, Krita), a binary format
========= ==========================================================================================

JSON keeps everything.  .gpl and .ase have no transparency; .png and .gpl have 8 bits per channel.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.columns import DataError
from lloydia.data.outputs import Renames, writing
from lloydia.images.pixels import levels

__all__ = ["KINDS", "Palette"]

SWATCH = 48  # pixels
A_ROW = 16


@dataclass(frozen=True)
class Palette:
    """The colours of a picture, from dark to light; a fully transparent colour comes last.

    Attributes
    ----------
    colors : ndarray of shape (k, 3)
        RGB values, in the type of the picture.
    alpha : ndarray of shape (k,) or None
        The opacity of each colour, in the type of the picture; None for a picture without alpha.
    shares : ndarray of shape (k,), float64
        The share of the pixels that each colour has, from 0 to 1.
    space : str
        The colour space in which the palette was found.
    """

    colors: NDArray
    alpha: NDArray | None
    shares: NDArray[np.float64]
    space: str

    def __len__(self) -> int:
        return len(self.colors)

    def bytes(self) -> NDArray[np.uint8]:
        """Return the colours with 8 bits per channel.

        Returns
        -------
        ndarray of shape (k, 3), or (k, 4) with alpha, uint8
        """
        parts = [self.colors] if self.alpha is None else [self.colors, self.alpha]
        colors, full = np.column_stack(parts), levels(self.colors.dtype)
        return np.rint(colors * (255 / full)).astype(np.uint8)

    def write(
        self,
        path: str | Path,
        info: Mapping[str, Any] | None = None,
        renames: Renames | None = None,
    ) -> None:
        """Write the palette to a file.

        Parameters
        ----------
        path : str or Path
            The file; its extension chooses the format: .png (a swatch per colour), .json, .gpl
            (GIMP) or .ase (Adobe Swatch Exchange).
        info : mapping or None, default=None
            The colour profile of the picture's file, as in
            :class:`lloydia.images.formats.files.Picture`.  A .png keeps it.
        renames : Renames or None, default=None
            As for :func:`lloydia.images.formats.files.write`.

        Raises
        ------
        DataError
            If the extension is not one of these.
        OSError
            If the file cannot be written.

        Warns
        -----
        UserWarning
            If the format cannot hold `info`.
        """
        path = Path(path)
        kind = path.suffix.lower()
        if kind not in KINDS:
            raise DataError(
                f"cannot write {path}: its extension must be one of {', '.join(KINDS)}."
            )
        with Renames() as own, writing(path, renames or own) as to:
            from lloydia.images.formats.colorimetry import kept
            from lloydia.images.formats.embedding import save

            if kind == ".png":
                save(_swatches(self), to, "PNG", info or {}, path, optimize=True)
            else:
                kept(info or {}, kind, False, path)
                _WRITERS[kind](self, to, path.stem)


def _names(palette: Palette) -> list[str]:
    return ["#" + color.tobytes().hex() for color in palette.bytes()]


def _swatches(palette: Palette) -> Any:
    from PIL import Image

    colors = palette.bytes()
    rows = -(-len(colors) // A_ROW)
    width = min(len(colors), A_ROW)
    blank = (255, 255, 255, 0)[: colors.shape[1]]
    cells = np.full((rows * width, colors.shape[1]), blank, np.uint8)
    cells[: len(colors)] = colors
    grid = cells.reshape(rows, width, -1)
    return Image.fromarray(grid.repeat(SWATCH, axis=0).repeat(SWATCH, axis=1))


def _write_json(palette: Palette, to: Path, name: str) -> None:
    alpha = [None] * len(palette) if palette.alpha is None else palette.alpha.tolist()
    colors = [
        {
            "hex": hexadecimal,
            "rgb": values,
            **({} if opaque is None else {"alpha": opaque}),
            "share": share,
        }
        for hexadecimal, values, opaque, share in zip(
            _names(palette),
            palette.colors.tolist(),
            alpha,
            palette.shares.tolist(),
        )
    ]
    full = levels(palette.colors.dtype)
    facts = {"name": name, "space": palette.space, "full": full, "colors": colors}
    to.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _write_gimp(palette: Palette, to: Path, name: str) -> None:
    lines = ["GIMP Palette", f"Name: {name}", f"Columns: {min(len(palette), A_ROW)}", "#"]
    for color, hexadecimal in zip(palette.bytes().tolist(), _names(palette)):
        lines.append("{:3d} {:3d} {:3d}".format(*color) + f"\t{hexadecimal}")
    to.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_adobe(palette: Palette, to: Path, name: str) -> None:
    """Write blocks, big-endian: a name in UTF-16, the model, three floats in [0, 1], a kind."""
    blocks = []
    full = levels(palette.colors.dtype)
    for color, hexadecimal in zip(palette.colors, _names(palette)):
        name = hexadecimal + "\0"
        values = (float(value) / full for value in color)
        body = struct.pack(">H", len(name)) + name.encode("utf-16-be")
        body += b"RGB " + struct.pack(">3fH", *values, 2)  # 2: neither global nor a spot colour
        blocks.append(struct.pack(">HI", 1, len(body)) + body)
    to.write_bytes(b"ASEF" + struct.pack(">HHI", 1, 0, len(blocks)) + b"".join(blocks))


_WRITERS = {
    ".json": _write_json,
    ".gpl": _write_gimp,
    ".ase": _write_adobe,
}
KINDS = (".png", *_WRITERS)
