"""Every colour of the 8-bit cube, 16.8 million, through every colour space and back.

    python benchmarks/color_cube.py       about two minutes on one core

For each space: the largest error of the way back in grey levels (half a level is the limit), the
colours whose points do not lead back to them (none may be), the smallest distance of a point to the
middle between two multiples of its step, in steps (mathematical libraries must not disagree by as
much; a float64 that is off by one unit in its last place is off by about 1e-10), and nanoseconds a
colour, there and back.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

from lloydia.images.color import SPACES, Space
from lloydia.images.pixels import unit


def planes() -> list[NDArray[np.uint8]]:
    """Return the cube in 256 planes of shape (65536, 3)."""
    g, b = np.indices((256, 256), dtype=np.uint8).reshape(2, -1)
    return [np.stack([np.full_like(g, r), g, b], axis=-1) for r in range(256)]


def margin(space: Space, pixels: NDArray) -> float:
    """Return how near a point comes to where its rounding would change, in steps."""
    if space.step is None:
        return 0.5
    places = space.embed(space.encode(np.ascontiguousarray(unit(pixels).T))) / space.step
    return float((0.5 - np.abs(places - np.rint(places))).min())


def check(space: Space) -> bool:
    """Print what the whole cube shows, and return whether it is as it must be."""
    error, lost, least, seconds = 0.0, 0, 0.5, 0.0
    for pixels in planes():
        begin = time.perf_counter()
        back = space.to_rgb(space.from_rgb(pixels), np.float64) * 255
        seconds += time.perf_counter() - begin
        error = max(error, float(np.abs(back - pixels).max()))
        lost += int((space.colors(space.points(pixels), np.uint8) != pixels).any(axis=1).sum())
        least = min(least, margin(space, pixels))
    nanoseconds = seconds / 2**24 * 1e9
    print(f"{space.name:<7} {error:9.1e} {lost:6d} {least:9.1e} {nanoseconds:6.0f}", flush=True)
    return error < 0.5 and lost == 0 and least > 1e-9


if __name__ == "__main__":
    print("space       error   lost    margin     ns")
    failed = [space.name for space in SPACES if not check(space)]
    sys.exit(f"not as it must be: {', '.join(failed)}" if failed else 0)
