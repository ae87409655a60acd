"""Scores of framed rows, group by group, against panels of centres, by one of the microkernels."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.frames import emit_prefetch
from lloydia.backends.cpu.simd.microkernel_low_dim import scan_low_dim, scan_sequential
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import (
    ADDRESS,
    BYTES,
    GROUP,
    PANEL,
    VECTORS,
    scan_panel,
)

__all__ = ["score_panels"]


class _Scan:
    """The arrays of a scan as LLVM values, and code for the loops around the microkernels."""

    def __init__(self, context, builder, sig, args) -> None:
        self.builder, self.d, self.groups = builder, args[1], args[2]
        y, panels, half_squares, *out = (
            context.make_array(sig.args[i])(context, builder, args[i]) for i in (0, 3, 4, 5, 6, 7)
        )
        self.pitch = builder.extract_value(y.strides, 0)
        self.y, self.panels, self.half_squares, *self.out = (
            builder.ptrtoint(array.data, ADDRESS) for array in (y, panels, half_squares, *out)
        )
        self.n_panels = builder.udiv(builder.extract_value(half_squares.shape, 0), ADDRESS(PANEL))
        self.next_rows, self.part = args[9:]

    def plus(self, base, index, size):
        """Return ``base + index * size``."""
        size = ADDRESS(size) if isinstance(size, int) else size
        return self.builder.add(base, self.builder.mul(index, size))

    def results_at(self, g, vector=None):
        """Return the addresses of the results of a group, or of a vector of it."""
        if vector is None:
            return [self.plus(place, g, 4 * GROUP) for place in self.out]
        number = self.plus(vector, g, VECTORS)
        return [self.plus(place, number, BYTES) for place in self.out]

    def emit_prefetch(self, turn, times=None):
        """Prefetch one more part of the next rows, or `times` as much."""
        size = self.builder.mul(self.part, times) if times else self.part
        emit_prefetch(self.builder, self.plus(self.next_rows, turn, size), size)

    def sequential(self, d, k) -> None:
        """Emit the scan of `k` centres, one after the other."""
        with cgutils.for_range(self.builder, self.groups) as loop:
            self.emit_prefetch(loop.index, self.n_panels)
            y = self.plus(self.y, loop.index, self.pitch)
            centers = self.panels, self.half_squares, k
            scan_sequential(self.builder, d, y, *centers, *self.results_at(loop.index))

    def low_dim(self, d) -> None:
        """Emit the scan of few features."""
        with cgutils.for_range(self.builder, self.groups) as loop:
            self.emit_prefetch(loop.index, self.n_panels)
            y = self.plus(self.y, loop.index, self.pitch)
            centers = self.panels, self.half_squares, self.n_panels
            with cgutils.for_range(self.builder, ADDRESS(VECTORS)) as inner:
                results = self.results_at(loop.index, inner.index)
                scan_low_dim(self.builder, d, self.plus(y, inner.index, BYTES), *centers, *results)

    def any_dim(self, deep) -> None:
        """Emit the scan of any number of features."""
        size = self.builder.mul(self.d, ADDRESS(4 * PANEL))
        with cgutils.for_range(self.builder, self.n_panels) as outer:
            number = outer.index
            panel = self.plus(self.panels, number, size)
            half = self.plus(self.half_squares, number, 4 * PANEL)
            with cgutils.for_range(self.builder, self.groups) as loop:
                self.emit_prefetch(self.plus(loop.index, number, self.groups))
                y = self.plus(self.y, loop.index, self.pitch)
                results = self.results_at(loop.index)
                scan_panel(self.builder, deep, y, self.d, panel, half, *results, number)


@intrinsic
def score_panels(
    typingctx, y, d, groups, panels, half_squares, best, second, which, shape, next_rows, part
):  # fmt: skip
    """Find the best two scores of each framed row.

    Parameters
    ----------
    y : IN, ndarray (groups, d, GROUP), float32
        The framed rows.
    panels : IN, ndarray (n_panels, d, PANEL), float32
    half_squares : IN, ndarray (n_panels * PANEL,), float32
        Minus half the squared norms of the centres: the initial scores.
    best, second : OUT, ndarray (groups * GROUP,), float32
    which : OUT, ndarray (groups * GROUP,), int32
        The best centre, in units of the returned width.
    shape
        A constant whose type chooses the microkernel: a tuple of d numbers for up to LOW_DIM
        features (with up to SEQUENTIAL_CENTERS centres a pair of such a tuple and k), True for more
        than DEEP, else None.
    next_rows, part : int
        With each group and panel, `part` bytes from the address `next_rows` on are prefetched.

    Returns
    -------
    int
        1 if `shape` is a tuple: `which` is the centre.  Else PANEL: `which` is the panel, and the
        last bits of `best` are the centre within it.
    """
    signature = types.int64(
        y, types.int64, types.int64, panels, half_squares, best, second, which, shape,
        types.int64, types.int64,
    )  # fmt: skip

    def codegen(context, builder, sig, args):
        scan = _Scan(context, builder, sig, args)
        if isinstance(shape, types.Tuple):
            scan.sequential(shape[0].count, builder.extract_value(args[8], 1))
        elif isinstance(shape, types.UniTuple):
            scan.low_dim(shape.count)
        else:
            scan.any_dim(not isinstance(shape, types.NoneType))
            return ir.Constant(ADDRESS, PANEL)
        return ir.Constant(ADDRESS, 1)

    return signature, codegen
