"""A picture and its segments on the screen, or in a file where there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    from lloydia.images.formats.files import Picture
    from lloydia.images.segments import Segments

__all__ = ["eight_bits", "has_screen", "show"]

SHOWN = 1200  # pixels: the longer side of each of two pictures side by side


def eight_bits(values: NDArray) -> NDArray:
    """Return grey or RGB levels as RGB in 8 bits, shape (..., 3)."""
    import numpy as np

    from lloydia.images.pixels import levels

    eight = np.rint(values * (255 / levels(values.dtype))).astype(np.uint8)
    if eight.ndim > 1 and eight.shape[-1] == 3:
        return eight
    return np.repeat(eight.reshape(*values.shape[:2], 1), 3, axis=-1)


def has_screen() -> bool:
    """Return whether there is a screen to show a picture on."""
    on_x = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return sys.platform in ("darwin", "win32") or on_x


def show(picture: Picture, found: Segments, beside: Path, force: bool) -> str:
    """Show the picture and its segments, or write them to `beside`; say which."""
    from PIL import ImageShow

    from lloydia.data.outputs import Renames, writing
    from lloydia.images.formats.embedding import save

    sheet = _side_by_side(picture, found)
    if has_screen() and ImageShow.show(sheet):
        return "shown"
    with Renames(force=force) as renames, writing(beside, renames) as to:
        save(sheet, to, "PNG", picture.info, beside, optimize=True)
    return str(beside)


def _side_by_side(picture: Picture, found: Segments) -> Image:
    from lloydia.cli.images.photo import side_by_side

    step = -(-max(found.labels.shape) // SHOWN)
    thin = (slice(None, None, step), slice(None, None, step))
    return side_by_side(
        eight_bits(picture.pixels[thin]),
        found.labels[thin].ravel(),
        eight_bits(found.palette),
        n_colors=found.n_colors,
    )
