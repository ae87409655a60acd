r"""Rows as pairs of bfloat16, as the units want them that multiply pairs.

A float32 y is split into two bfloat16 numbers, ``y = h + l`` to within ``2**-16 |y|``, and an inner
product into three: ``y.b ~ h.h' + l.h' + h.l'``, one product of rows of length 3 d, summed in
float32.  The leading parts alone come first, and :mod:`scan.coarse_scan` stops at them.  Layouts,
in tiles of 1 KiB:

* ABREAST vectors of points: ``[step, vector, pair of columns, point]``, a pair in 32 bits;
* a panel is ABREAST * TILE centres: ``[step, tile, centre, column]``; its scores start from tiles
  whose rows are minus half a squared norm each;
* scores: ``[tile, vector, centre, point]``, float32.

:mod:`amx` and :mod:`dot_pairs` multiply, :mod:`scan.tile_scores` puts all together; :mod:`points`
defines the groups, and :func:`lloydia.backends.cpu.simd.points.fold` the other end.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.points import (
    ADDRESS,
    BYTES,
    GROUP,
    INT,
    IVECTOR,
    LANES,
    VECTOR,
    fold,
    load,
    store,
)

__all__ = [
    "ABREAST", "BITS", "KIB", "TILE", "compiled_for", "fold_tiles", "lead_points",
    "split_points",
]  # fmt: skip

# Rows of a tile; tiles of centres in a panel.
TILE = 16
ABREAST = 2
BITS = 4
KIB = 1024

_ROW = ir.Constant(ADDRESS, 64)


def compiled_for(unit: str) -> bool:
    """Return whether Numba compiles for processors with a unit, and this is one: by LLVM's name."""
    named = vars(config)["CPU_FEATURES"]
    return f"+{unit}" in (get_host_cpu_features() if named is None else named).split(",")


def _split(whole: bool):
    """Return the code that writes both parts of a vector of points, or the leading ones alone."""
    half = ir.Constant(IVECTOR, [0x8000] * LANES)
    high = ir.Constant(IVECTOR, [-0x10000] * LANES)
    shift = ir.Constant(IVECTOR, [16] * LANES)

    def rounded(builder, value):
        """Return the nearest bfloat16, in the upper halves of 32 bits."""
        return builder.and_(builder.add(builder.bitcast(value, IVECTOR), half), high)

    def codegen(context, builder, sig, args):
        y, n_pairs, lead, out, rests = args
        total = cgutils.alloca_once_value(builder, ir.Constant(VECTOR, [0.0] * LANES))
        with cgutils.for_range(builder, n_pairs) as loop:
            pair = builder.add(y, builder.mul(loop.index, ir.Constant(ADDRESS, 8 * GROUP)))
            halves = []
            for offset in (0, 4 * GROUP):
                value = load(builder, pair, offset, VECTOR, BYTES)
                leading = rounded(builder, value)
                rest = builder.fsub(value, builder.bitcast(leading, VECTOR))
                following = rounded(builder, rest)
                if whole:
                    rest = builder.bitcast(following, VECTOR)
                square = builder.fmul(rest, rest)
                builder.store(builder.fadd(builder.load(total), square), total)
                halves.append((leading, following))
            leading, following = (builder.or_(builder.lshr(a, shift), b) for a, b in zip(*halves))
            after = builder.add(lead, loop.index)
            parts = [(leading, loop.index)]
            if whole:
                parts += [(following, after), (leading, builder.add(after, n_pairs))]
            for value, row in parts:
                step = builder.lshr(row, ir.Constant(ADDRESS, 4))
                line = builder.and_(row, ir.Constant(ADDRESS, TILE - 1))
                place = builder.add(
                    builder.mul(step, ir.Constant(ADDRESS, ABREAST * KIB)),
                    builder.mul(line, _ROW),
                )
                store(builder, value, builder.add(out, place), 0)
        store(builder, builder.load(total), rests, 0)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5), codegen


# An intrinsic is found by its name when a kernel is read from the disk cache, so each is one.
@intrinsic
def split_points(typingctx, y, n_pairs, lead, out, rests):
    """Write the tiles of one vector of points; all are addresses or counts (intp).

    `y` holds an even number of features, twice `n_pairs`; the following parts begin at column
    `lead`, and what `out` holds elsewhere stays.  `rests` receives the squared norms of the
    following parts.
    """
    return _split(whole=True)


@intrinsic
def lead_points(typingctx, y, n_pairs, lead, out, rests):
    """Write the leading parts alone; `rests` receives the squared norms of what they leave."""
    return _split(whole=False)


@intrinsic
def fold_tiles(typingctx, scores, best, second, which, number):
    """Fold what :func:`multiply` wrote into the points' best two scores.

    All are addresses (intp) but the number of the panel; 0 starts anew.
    """

    def codegen(context, builder, sig, args):
        scores, best, second, which, number = args
        anew = builder.icmp_signed("==", number, ir.Constant(ADDRESS, 0))
        first = builder.trunc(builder.mul(number, ir.Constant(ADDRESS, ABREAST)), INT)
        for v in range(ABREAST):
            at = BYTES * v
            state = (
                load(builder, best, at, VECTOR, BYTES),
                load(builder, second, at, VECTOR, BYTES),
                load(builder, which, at, IVECTOR, BYTES),
            )
            for c in range(ABREAST):
                place = KIB * (ABREAST * c + v)
                rows = [load(builder, scores, place + 64 * r, VECTOR, BYTES) for r in range(TILE)]
                name = builder.add(first, ir.Constant(INT, c))
                fresh = anew if c == 0 else ir.Constant(ir.IntType(1), 0)
                state = fold(builder, rows, len(rows), name, fresh, *state)
            for value, address in zip(state, (best, second, which)):
                store(builder, value, address, at)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5), codegen
