"""Kernels for 8-bit pixels: a table with an entry for each colour of the RGB cube.

The code of a colour is ``R 2**16 + G 2**8 + B``.  The table has all 2**24 codes, so the colours of
a picture are counted in one pass without sorting.  The table is divided into shelves; shelves
without pixels are never read.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import kernel, subroutine

__all__ = ["COLORS", "SHELVES", "count", "gather", "locate", "paint"]

COLORS = 1 << 24
SHELVES = 1 << 12


@subroutine
def code_of(pixels, i):
    """Return the code of the colour of a pixel."""
    return np.int64(pixels[i, 0]) << 16 | np.int64(pixels[i, 1]) << 8 | np.int64(pixels[i, 2])


@kernel
def count(pixels, table, touched):
    """Count the colours of `pixels`, (n, 3) or with alpha (n, 4), in a table of zeros.

    An entry becomes twice the number of its pixels that are not fully transparent, plus 1 if the
    colour has any pixels at all.
    """
    alpha = pixels.shape[1] == 4
    for i in range(pixels.shape[0]):
        seen = not (alpha and pixels[i, 3] == 0)
        code = code_of(pixels, i)
        table[code] = (table[code] + np.uint32(2 * seen)) | np.uint32(1)
        touched[code // (COLORS // SHELVES)] = True


@kernel
def gather(table, touched, colors, counts):
    """Write the colours of a counted table, ascending, and their counts; return their number.

    The entry of each colour becomes its index among them.
    """
    size = COLORS // SHELVES
    place = 0
    for shelf in range(SHELVES):
        if not touched[shelf]:
            continue
        for code in range(shelf * size, (shelf + 1) * size):
            entry = table[code]
            if entry != 0:
                colors[place, 0] = code >> 16
                colors[place, 1] = (code >> 8) & 255
                colors[place, 2] = code & 255
                counts[place] = entry >> np.uint32(1)
                table[code] = place
                place += 1
    return place


@kernel
def locate(pixels, table, places, start, stop):
    """Look up the indices of the colours of some pixels."""
    for i in range(start, stop):
        places[i] = table[code_of(pixels, i)]


@kernel
def paint(places, found, palette, labels, pixels, start, stop):
    """Write the labels of some pixels, and paint them in the colours of their labels."""
    for i in range(start, stop):
        label = found[places[i]]
        labels[i] = label
        for channel in range(palette.shape[1]):
            pixels[i, channel] = palette[label, channel]
