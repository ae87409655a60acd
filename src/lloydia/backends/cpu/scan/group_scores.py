"""Framed rows, group by group, against panels of centres: the scan that fits their features."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.frames import ask
from lloydia.backends.cpu.simd.low_points import scan_few, scan_low
from lloydia.backends.cpu.simd.points import ADDRESS, BYTES, GROUP, PANEL, VECTORS, scan_panel

__all__ = ["score_panels"]


class _Scan:
    """What is scanned, as compiled code has it."""

    def __init__(self, context, builder, sig, args) -> None:
        self.builder, self.d, self.groups = builder, args[1], args[2]
        y, panels, halves, *out = (
            context.make_array(sig.args[i])(context, builder, args[i]) for i in (0, 3, 4, 5, 6, 7)
        )
        self.pitch = builder.extract_value(y.strides, 0)
        self.y, self.panels, self.halves, *self.out = (
            builder.ptrtoint(array.data, ADDRESS) for array in (y, panels, halves, *out)
        )
        self.n_panels = builder.udiv(builder.extract_value(halves.shape, 0), ADDRESS(PANEL))
        self.ahead, self.part = args[9:]

    def plus(self, base, index, size):
        """Return ``base + index * size``."""
        size = ADDRESS(size) if isinstance(size, int) else size
        return self.builder.add(base, self.builder.mul(index, size))

    def found(self, g, vector=None):
        """Return where the results of a group are, or of a vector of it."""
        if vector is None:
            return [self.plus(place, g, 4 * GROUP) for place in self.out]
        number = self.plus(vector, g, VECTORS)
        return [self.plus(place, number, BYTES) for place in self.out]

    def ask(self, turn, times=None):
        """Ask for the part of what comes that is due, `times` as much."""
        size = self.builder.mul(self.part, times) if times else self.part
        ask(self.builder, self.plus(self.ahead, turn, size), size)

    def few(self, d, k) -> None:
        """Emit the scan of `k` centres one after the other."""
        with cgutils.for_range(self.builder, self.groups) as loop:
            self.ask(loop.index, self.n_panels)
            y = self.plus(self.y, loop.index, self.pitch)
            centers = self.panels, self.halves, k
            scan_few(self.builder, d, y, *centers, *self.found(loop.index))

    def low(self, d) -> None:
        """Emit the scan of few features."""
        with cgutils.for_range(self.builder, self.groups) as loop:
            self.ask(loop.index, self.n_panels)
            y = self.plus(self.y, loop.index, self.pitch)
            centers = self.panels, self.halves, self.n_panels
            with cgutils.for_range(self.builder, ADDRESS(VECTORS)) as inner:
                found = self.found(loop.index, inner.index)
                scan_low(self.builder, d, self.plus(y, inner.index, BYTES), *centers, *found)

    def any_number(self, deep) -> None:
        """Emit the scan of any number of features."""
        size = self.builder.mul(self.d, ADDRESS(4 * PANEL))
        with cgutils.for_range(self.builder, self.n_panels) as outer:
            number = outer.index
            panel = self.plus(self.panels, number, size)
            half = self.plus(self.halves, number, 4 * PANEL)
            with cgutils.for_range(self.builder, self.groups) as loop:
                self.ask(self.plus(loop.index, number, self.groups))
                y = self.plus(self.y, loop.index, self.pitch)
                found = self.found(loop.index)
                scan_panel(self.builder, deep, y, self.d, panel, half, *found, number)


@intrinsic
def score_panels(
    typingctx, y, d, groups, panels, halves, best, second, which, shape, ahead, part
):  # fmt: skip
    """Scan framed rows; `best` and so on receive each one's best two scores and a panel.

    The type of `shape` says how many features there are: a tuple of d numbers for up to LOW (and
    for up to FEW centres a pair of such a tuple and k), True for more than DEEP, or None.  With
    each group and panel `part` bytes are asked for, from the address `ahead` on.  Returns the
    centres that `which` counts by: with a tuple that is 1, and no score holds a name.
    """
    signature = types.int64(
        y, types.int64, types.int64, panels, halves, best, second, which, shape,
        types.int64, types.int64,
    )  # fmt: skip

    def codegen(context, builder, sig, args):
        scan = _Scan(context, builder, sig, args)
        if isinstance(shape, types.Tuple):
            scan.few(shape[0].count, builder.extract_value(args[8], 1))
        elif isinstance(shape, types.UniTuple):
            scan.low(shape.count)
        else:
            scan.any_number(not isinstance(shape, types.NoneType))
            return ir.Constant(ADDRESS, PANEL)
        return ir.Constant(ADDRESS, 1)

    return signature, codegen
