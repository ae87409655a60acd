"""Draw one photograph in k colours, found in every colour space, on one sheet.

python examples/color_spaces.py                            docs/images/color_spaces.jpg
python examples/color_spaces.py photo.jpg 6 sheet.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_sample_image

from lloydia.data.outputs import replacing
from lloydia.images import segment
from lloydia.images.color import SPACES

COLUMNS = 5
CELL = 320  # pixels, of width
MARGIN = 12
CAPTION = 34


def contact_sheet(photo: Image.Image, k: int) -> Image.Image:
    """Return the photograph and its k segments in every space, COLUMNS a row."""
    photo = photo.convert("RGB")
    pixels = np.asarray(photo)
    cells = {"original": photo}
    for space in SPACES:
        cells[space.name] = Image.fromarray(segment(pixels, k, space.name).image)
    height = round(CELL * photo.height / photo.width)
    wide, high = CELL + MARGIN, height + CAPTION
    rows = -(-len(cells) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * wide + MARGIN, rows * high + MARGIN), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=18)
    for i, (name, cell) in enumerate(cells.items()):
        x, y = MARGIN + i % COLUMNS * wide, MARGIN + i // COLUMNS * high
        sheet.paste(cell.resize((CELL, height), Image.Resampling.BOX), (x, y))
        draw.text((x, y + height + CAPTION // 2 - 4), name, (40, 40, 40), font, anchor="lm")
    return sheet


if __name__ == "__main__":
    given = sys.argv[1:]
    photo = Image.open(given[0]) if given else Image.fromarray(load_sample_image("flower.jpg"))
    sheet = contact_sheet(photo, int(given[1]) if len(given) > 1 else 5)
    docs = Path(__file__).resolve().parents[1] / "docs"
    to = Path(given[2]) if len(given) > 2 else docs / "images/color_spaces.jpg"
    with replacing(to) as temporary:
        sheet.save(temporary, quality=88)
    print(to)
