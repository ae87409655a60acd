"""A photograph and its segments, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

MARGIN = 20
CAPTION = 44
SWATCH = 22
NARROWEST = 260  # of a column, for its caption
INK = (40, 40, 40)


def side_by_side(
    photo: NDArray[np.uint8],
    labels: NDArray[np.integer],
    centers: NDArray[Any],
    *,
    n_colors: int,
) -> Image.Image:
    """Draw a photograph beside the same photograph in its k mean colours.

    Parameters
    ----------
    photo : ndarray of uint8, shape (height, width, 3)
    labels : ndarray of int, shape (height * width,)
        Cluster of each pixel.
    centers : ndarray of shape (k, 3)
        Mean colours, from 0 to 255.
    n_colors : int
        Colours of the photograph, for its caption.

    Returns
    -------
    PIL.Image.Image
        With a caption under each picture, and the k colours as a strip whose parts are as long as
        the clusters are large.
    """
    height, width, _ = photo.shape
    palette = np.rint(centers).clip(0, 255).astype(np.uint8)
    column = max(width, NARROWEST)
    left, right, top = MARGIN, 2 * MARGIN + column, MARGIN
    sheet = Image.new("RGB", (right + column + MARGIN, top + height + CAPTION + MARGIN), "white")
    sheet.paste(Image.fromarray(photo), (left, top))
    sheet.paste(Image.fromarray(palette[labels].reshape(photo.shape)), (right, top))
    strip = _strip(palette, np.bincount(labels, minlength=len(palette)), column - 130)
    sheet.paste(strip, (right + 130, top + height + 16))
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=20)
    for x, text in ((left, f"{n_colors:,} colours"), (right, f"{len(palette)} colours")):
        draw.text((x, top + height + 16 + SWATCH // 2), text, INK, font, anchor="lm")
    return sheet


def _strip(palette: NDArray[np.uint8], counts: NDArray[np.integer], length: int) -> Image.Image:
    """Draw colours from dark to light, each as long as its share of the pixels."""
    order = np.argsort(palette @ np.array([0.299, 0.587, 0.114]))
    ends = np.rint(np.cumsum(counts[order]) / counts.sum() * length).astype(int)
    strip = Image.new("RGB", (length, SWATCH))
    draw = ImageDraw.Draw(strip)
    for color, start, end in zip(palette[order], (0, *ends[:-1]), ends):
        if end > start:
            draw.rectangle((start, 0, end - 1, SWATCH), fill=tuple(color.tolist()))
    return strip
