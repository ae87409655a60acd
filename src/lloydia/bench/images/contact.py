"""Contact sheets: one detail of a photograph by every contender, and by every dither."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from lloydia.bench.images.contenders import Contender

__all__ = ["beside_peers", "beside_undithered"]

GAP, CAPTION = 10, 26
INK = (40, 40, 40)
ACROSS = 3

Panel = tuple[str, NDArray[np.uint8]]


def beside_peers(
    pixels: NDArray[np.uint8], k: int, contenders: Sequence[Contender], part: tuple[slice, slice]
) -> Image.Image:
    """Show a part of a picture as each contender reduces the whole to k colours."""
    from lloydia.images.quality import psnr

    panels: list[Panel] = [("original", pixels[part])]
    for contender in contenders:
        image = contender.reduce(pixels, k, 1)
        panels.append((f"{contender.name}: {psnr(pixels, image):.1f} dB", image[part]))
    return _sheet(panels)


def beside_undithered(
    pixels: NDArray[np.uint8], sizes: Sequence[int], part: tuple[slice, slice]
) -> Image.Image:
    """Show a part of a picture in each number of colours, by every dither."""
    from lloydia.images.quantization import DITHERS, quantize

    reduce = partial(quantize, pixels)
    return _sheet(
        [
            (f"k = {k}, {dither}", reduce(k, dither=dither).image[part])
            for k in sizes
            for dither in DITHERS
        ]
    )


def _sheet(panels: Sequence[Panel]) -> Image.Image:
    height, width, _ = panels[0][1].shape
    rows = -(-len(panels) // ACROSS)
    size = (ACROSS * (width + GAP) + GAP, rows * (height + CAPTION + GAP) + GAP)
    sheet = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=15)
    for i, (caption, image) in enumerate(panels):
        x = GAP + i % ACROSS * (width + GAP)
        y = GAP + i // ACROSS * (height + CAPTION + GAP)
        sheet.paste(Image.fromarray(np.ascontiguousarray(image)), (x, y))
        draw.text((x, y + height + CAPTION // 2), caption, INK, font, anchor="lm")
    return sheet
