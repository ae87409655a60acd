"""Pixels in the other byte order are the same picture."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.images import boundaries, palette, quantize, segment
from lloydia.images.color import SPACES

LEVELS = np.random.default_rng(0).integers(0, 65536, size=(9, 7, 4)).astype("uint16")


def picture(kind, channels):
    scale = 1 if np.dtype(kind).kind == "u" else 65535
    return (LEVELS[..., :channels] / scale).astype(kind)


def native(pixels):
    return pixels.astype(pixels.dtype.newbyteorder("="))


@pytest.mark.parametrize("kind", [">u2", ">f2", ">f4", ">f8"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_same_picture(kind, channels):
    given = picture(kind, channels)
    same = native(given)
    for function, names in (
        (segment, ("image", "labels", "palette")),
        (quantize, ("image", "indices")),
    ):
        ours, theirs = function(given, 4), function(same, 4)
        for name in names:
            found, wanted = getattr(ours, name), getattr(theirs, name)
            assert found.dtype == wanted.dtype
            assert found.tobytes() == wanted.tobytes()
    found, wanted = palette(given, 3).colors, palette(same, 3).colors
    assert (found.dtype, found.tobytes()) == (wanted.dtype, wanted.tobytes())


@pytest.mark.parametrize("kind", [">u2", ">f4", ">f8"])
@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_the_same_colours(kind, space):
    given = picture(kind, 3)
    for method in ("from_rgb", "points"):
        found, wanted = (getattr(space, method)(one) for one in (given, native(given)))
        assert (found.dtype, found.tobytes()) == (wanted.dtype, wanted.tobytes())


@pytest.mark.parametrize("kind", [">u2", ">f4"])
def test_a_start_and_labels_in_the_other_byte_order(kind):
    pixels = native(picture(kind, 3))
    start = pixels[0, :3]
    found, wanted = (segment(pixels, 3, init=one) for one in (start.astype(kind), start))
    assert found.labels.tobytes() == wanted.labels.tobytes()
    labels = found.labels
    assert np.array_equal(boundaries(labels.astype(">i4")), boundaries(labels))
