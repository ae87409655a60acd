"""Centres in the frame and the layouts that scans read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, local, maximum, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan import tile_panels
from lloydia.backends.cpu.scan.packing import fill_panel
from lloydia.backends.cpu.scan.tile_scores import AMX, columns_of
from lloydia.backends.cpu.scan.tile_scores import depth_of as tile_depth_of
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import BITS, PANEL, depth_of
from lloydia.backends.cpu.simd.pairs import BITS as TILE_BITS
from lloydia.exact import certificate
from lloydia.exact.certificate import MEDIAN_CENTERS

__all__ = ["Packed", "aligned", "pack"]


@dataclass
class Packed:
    """What :func:`lloydia.backends.cpu.scan.panel_scan.panel_scan` and :mod:`tile_scan` take.

    The next centres are written into the same arrays, if their shape is the same.

    Attributes
    ----------
    given : ndarray of shape (k, d)
        The centres, in the type of the rows.
    centers : ndarray of shape (k, d), float64
        The same centres.
    scores : tuple
        Panels of shape (n_panels, d, PANEL), float32; the initial scores of their centres, minus
        half the squared norms, (n_panels * PANEL,), hugely negative where there is no centre; and
        the framed centres feature-major (d, k).
    tiles : tuple
        Panels and initial scores of :mod:`tile_panels`, or its NOTHING.
    reach : float
        A bound on the norms of the framed centres.
    place : tuple
        Arguments of :func:`_pack` that pack other centres into these arrays, in this frame.
    frame : tuple
        Origin of shape (d,) and scale, a power of two, in the type of the rows.
    errors : tuple
        The largest square of a radius that is certified, and (a, b, c) of the error ``a + b R**2 +
        c r**2`` of a tile's score, of a panel's and of a score without an index in its last bits;
        :func:`lloydia.exact.certificate.near_line` of a panel's score and of one without an index;
        and both for the sums of bfloat16 heads.
    """

    given: NDArray
    centers: NDArray[np.float64]
    scores: tuple[Any, ...]
    tiles: tuple[Any, ...]
    reach: float
    place: tuple[Any, ...]
    frame: tuple[Any, ...]
    errors: tuple[Any, ...]

    def panel_errors(self, indexed: bool) -> tuple[Any, ...]:
        """Return the largest square, and both lines of a panel's score, `indexed` or not."""
        return (self.errors[0], *(self.errors[2:5:2] if indexed else self.errors[3:6:2]))

    def take(self, centers: NDArray) -> bool:
        """Pack other centres of the same shape if frame and error bounds can stay; return whether.

        Tiles are not packed.
        """
        _, square, same_frame = _pack(centers, *self.place)
        if same_frame and bound_on(square, centers.shape[1]) == self.reach:
            self.given = centers
            return True
        return False


def bound_on(square: float, d: int) -> float:
    """Return a bound on the norms of framed centres, the largest of which has that square.

    It is rounded up to a multiple of 1/16, so that it mostly stays the same from one iteration to
    the next, and so do the error bounds.
    """
    reach = math.sqrt(square) * (1.0 + (d + 8) * 2.0**-22) + 2.0**-60
    return math.ceil(16.0 * reach) / 16.0


def pack(centers: NDArray, tiles: bool, each_block: Callable, old: Packed | None = None) -> Packed:
    """Centre, scale, round and pack centres of shape (k, d), of the type of the rows.

    The arrays of an `old` result of the same shape are reused.  Without `tiles` its frame, the same
    object, is also reused if these centres are about as far from its origin.
    """
    k, d = centers.shape
    n_panels = -(-k // PANEL)
    median = np.empty(d, dtype=centers.dtype)
    old_origin, old_scale = median, 0.0
    if old is not None and old.given.shape == centers.shape:
        if not tiles and old.take(centers):
            return old
        wide, scores = old.centers, old.scores
        if not tiles:
            old_origin, old_scale = old.frame[0], float(old.frame[1])
    else:
        wide = np.empty((k, d))
        panels = aligned((n_panels, d, PANEL))
        scores = panels, aligned((n_panels * PANEL,)), aligned((d, k))
    max_exponent = certificate.max_scale_exponent(centers.dtype)
    scale, square, same_frame = _pack(
        centers, max_exponent, old_origin, old_scale, median, wide, *scores
    )
    reach = bound_on(square, d)
    line = certificate.error_line(d, reach, scale)
    panel_line = certificate.error_line(d, reach, scale, depth_of(d), BITS)
    near = certificate.near_line(d, reach, scale)
    panel_near = certificate.near_line(d, reach, scale, depth_of(d), BITS)
    tile_line, bf16_head = panel_line, (panel_line, panel_near)
    *tiled, residual = tile_panels.NOTHING
    if tiles:
        *tiled, residual = tile_panels.pack(*scores[:2], each_block)
        of_sum = (d, reach, scale, tile_depth_of(columns_of(d)), TILE_BITS)
        sum_line = certificate.error_line(*of_sum)
        if AMX:
            tile_line = certificate.split_line(sum_line, reach, residual)
        sum_near = certificate.near_line(*of_sum)
        bf16_head = certificate.bf16_head_line(sum_line), certificate.bf16_head_near(sum_near)
    frame = old.frame if old is not None and same_frame else (median, centers.dtype.type(scale))
    return Packed(
        centers,
        wide,
        scores,
        tuple(tiled),
        reach,
        (max_exponent, frame[0], float(scale), np.empty_like(median), wide, *scores),
        frame,
        (certificate.FAR**2, tile_line, panel_line, line, panel_near, near, bf16_head),
    )


def aligned(shape: tuple[int, ...], dtype: Any = np.float32) -> NDArray:
    """Return an empty array that starts at a multiple of 64 bytes."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, dtype=np.uint8)
    return np.ndarray(shape, dtype, raw, -raw.ctypes.data % 64)


scale_of = subroutine(certificate.scale_of, inline="always")

# A frame stays the same if all centres are nearer to its origin than FARTHEST, some are farther
# from their median than NEAREST, and that median is no farther from its origin than this many
# ranges of quartiles.  Its error bounds are then hardly larger than those of a new frame.
NEAREST, FARTHEST, QUARTILE_RANGES = 0.25, 2.0, 4.0


@subroutine(**LEAN)
def reach_of(wide, origin):
    """Return the largest difference of a coordinate to the origin's."""
    reach = 0.0
    for j in upto(len(wide)):
        for f in upto(len(origin)):
            reach = maximum(reach, abs(wide[j, f] - np.float64(origin[f])))
    return reach


@subroutine(inline="always")
def find_median(wide, median):
    """Write the median of some centres, the origin of :func:`lloydia.exact.certificate.frame`.

    Returns the largest range between quartiles of these centres, over the features.
    """
    k, d = wide.shape
    step = -(-k // MEDIAN_CENTERS)
    count = -(-k // step)
    ordered, quartile_range = local(np.float64, MEDIAN_CENTERS), 0.0
    for f in upto(d):
        for i in upto(count):
            value, place = wide[i * step, f], i
            while place > 0 and ordered[place - 1] > value:
                ordered[place] = ordered[place - 1]
                place -= 1
            ordered[place] = value
        median[f] = 0.5 * (ordered[(count - 1) // 2] + ordered[count // 2])
        quartile_range = maximum(quartile_range, ordered[3 * count // 4] - ordered[count // 4])
    return quartile_range


@kernel(**LEAN)
def _pack(
    centers, max_exponent, old_origin, old_scale, median, wide, panels, half_squares, columns
):  # fmt: skip
    """Write the centres in float64, panels, initial scores, and columns.

    The frame is that of `old_origin` and `old_scale`, if that is not 0 and they suit these centres;
    else the origin is `median`, OUT, that of the centres.  Returns the scale, of an exponent of at
    most `max_exponent`, the largest squared norm, and whether the frame stayed the same.
    """
    k, d = centers.shape
    for j in upto(k):
        for f in upto(d):
            wide[j, f] = centers[j, f]
    quartile_range = find_median(wide, median)
    reach, largest, shift = reach_of(wide, median), 0.0, 0.0
    for f in upto(d):
        shift = maximum(shift, abs(np.float64(median[f]) - np.float64(old_origin[f])))
    same_frame = shift <= QUARTILE_RANGES * quartile_range and reach * old_scale > NEAREST
    same_frame = same_frame and reach_of(wide, old_origin) * old_scale < FARTHEST
    origin, scale = old_origin, old_scale
    if not same_frame:
        origin, scale = median, scale_of(reach, max_exponent)
    for number in upto(len(panels)):
        square = fill_panel(wide, origin, scale, number, panels, half_squares, columns)
        largest = maximum(largest, square)
    return scale, largest, same_frame
