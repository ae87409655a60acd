"""Indexed files: PNG and GIF, whose pixels are entries of a palette of at most 256 colours.

A PNG stores the opacity of each entry (in the chunk tRNS); an entry of a GIF is either opaque or
transparent.

**Animations.**  Each frame is read as a whole, as it appears.  For each frame, only the part that
changes is written.  If no opaque pixel becomes transparent, a frame stays and the next one is drawn
over it (disposal 1); otherwise every frame is cleared before the next one (disposal 2).  So each
frame keeps its appearance and its duration; Pillow joins equal consecutive frames and adds up their
durations.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lloydia.data.columns import DataError
from lloydia.data.outputs import Renames, writing
from lloydia.images.formats import colorimetry
from lloydia.images.formats.decoding import check_size, sound, whole
from lloydia.images.formats.embedding import save
from lloydia.images.palettes import Palette

__all__ = ["INDEXED", "Animation", "read_animation", "write_gif", "write_png"]

INDEXED = (".png", ".gif")
MOST = 256
KEEP, CLEAR = 1, 2  # a GIF's disposal


@dataclass(frozen=True)
class Animation:
    """The frames of an animated GIF, as they appear.

    Attributes
    ----------
    pixels : ndarray of uint8, shape (frames, height, width, 3 or 4)
        RGB, or RGBA with an alpha of 0 or 255.
    durations : list of int
        The duration of each frame in milliseconds.
    loop : int or None
        The number of repetitions, 0 for endless; None: the animation is shown once.
    info : dict
        As in :class:`lloydia.images.formats.files.Picture`.
    """

    pixels: NDArray[np.uint8]
    durations: list[int]
    loop: int | None
    info: dict[str, Any] = field(default_factory=dict)


def read_animation(path: Path, *, allow_huge: bool = False) -> Animation | None:
    """Read an animated GIF; return None for another file.

    Parameters
    ----------
    path : Path
    allow_huge : bool
        As for :func:`lloydia.images.formats.files.read`.

    Raises
    ------
    DataError
        If the file is a GIF that is damaged, cut short or too large.
    OSError
        If there is no such file, or it cannot be read.
    """
    with path.open("rb") as stream, sound(str(path), allow_huge):
        if stream.read(4) != b"GIF8":
            return None
        data = whole(stream, str(path), allow_huge)
        image = Image.open(io.BytesIO(data))
        n_frames = getattr(image, "n_frames", 1)
        if n_frames == 1:
            return None
        if not allow_huge:
            check_size(str(path), image.size, n_frames)
        info, _ = colorimetry.found(image, data)
        pixels = np.empty((n_frames, image.height, image.width, 4), np.uint8)
        durations = []
        for number in range(n_frames):
            image.seek(number)
            if (image.height, image.width) != pixels.shape[1:3]:
                raise DataError(f"{path}: frame {number + 1} is larger than the animation.")
            pixels[number] = np.asarray(image.convert("RGBA"))
            durations.append(int(image.info.get("duration", 0)))
    if all((frame[..., 3] == 255).all() for frame in pixels):
        pixels = np.ascontiguousarray(pixels[..., :3])
    return Animation(pixels, durations, image.info.get("loop"), info)


def write_png(
    path: Path,
    indices: NDArray[np.uint8],
    palette: Palette,
    info: Mapping[str, Any],
    renames: Renames | None = None,
) -> None:
    """Write an indexed PNG with 1 to 8 bits per pixel.

    Parameters
    ----------
    path : Path
    indices : ndarray of uint8, shape (height, width)
    palette : Palette
        At most 256 colours; 16 bits per channel are rounded to 8.
    info : mapping
        As in :class:`lloydia.images.formats.files.Picture`.
    renames
        As for :func:`lloydia.images.formats.files.write`.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    table = palette.bytes()
    options: dict[str, Any] = {}
    if palette.alpha is not None:
        options["transparency"] = table[:, 3].tobytes()
    with Renames() as own, writing(path, renames or own) as to:
        save(_image(indices, table), to, "PNG", info, path, optimize=True, **options)


def write_gif(
    path: Path,
    indices: NDArray[np.uint8],
    palettes: Sequence[Palette],
    durations: Sequence[int] = (0,),
    loop: int | None = None,
    info: Mapping[str, Any] | None = None,
    renames: Renames | None = None,
) -> None:
    """Write a GIF.

    Parameters
    ----------
    path : Path
    indices : ndarray of uint8, shape (frames, height, width)
    palettes : sequence of Palette
        One palette for all frames, or one per frame; each entry is transparent or opaque.
    durations, loop
        As in :class:`Animation`.
    info : mapping or None
        As in :class:`lloydia.images.formats.files.Picture`.
    renames
        As for :func:`lloydia.images.formats.files.write`.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    shared = len(palettes) == 1
    tables = [palette.bytes() for palette in palettes]
    hidden = [_hidden(palette) for palette in palettes]
    images = [_image(frame, tables[0 if shared else i]) for i, frame in enumerate(indices)]
    options: dict[str, Any] = {"disposal": _disposal(indices, hidden), "optimize": True}
    if shared:
        options["palette"] = tables[0][:, :3].tobytes()
    if loop is not None:
        options["loop"] = loop
    if len(images) > 1:
        options |= {"save_all": True, "append_images": images[1:], "duration": list(durations)}
    for i, image in enumerate(images):
        entry = hidden[0 if shared else i]
        # An unused entry marks the pixels that do not change.
        spare = entry if entry is not None else len(tables[0 if shared else i])
        if entry is not None or (shared and len(images) > 1 and spare < MOST):
            image.info["transparency"] = spare
    if len(images) == 1 and hidden[0] is not None:
        options["transparency"] = hidden[0]
    with Renames() as own, writing(path, renames or own) as to:
        save(images[0], to, "GIF", info or {}, path, **options)


def binary(pixels: NDArray) -> NDArray:
    """Return pixels with alpha in which each pixel is either opaque or fully transparent."""
    full = np.iinfo(pixels.dtype).max
    kept = pixels.copy()
    kept[..., -1] = np.where(pixels[..., -1] > full // 2, full, 0)
    return kept


def _image(indices: NDArray[np.uint8], table: NDArray[np.uint8]) -> Image.Image:
    image = Image.fromarray(np.ascontiguousarray(indices))
    image.putpalette(table[:, :3].tobytes())
    return image


def _hidden(palette: Palette) -> int | None:
    """Return the transparent entry, which is the last, or None."""
    return len(palette) - 1 if palette.alpha is not None and palette.alpha[-1] == 0 else None


def _disposal(indices: NDArray[np.uint8], hidden: Sequence[int | None]) -> int:
    """Return CLEAR if an opaque pixel turns transparent; the first frame follows the last."""
    if all(entry is None for entry in hidden):
        return KEEP
    entries = np.array([-1 if entry is None else entry for entry in hidden])
    clear = indices == np.broadcast_to(entries, len(indices))[:, np.newaxis, np.newaxis]
    return CLEAR if bool((clear & ~np.roll(clear, 1, axis=0)).any()) else KEEP
