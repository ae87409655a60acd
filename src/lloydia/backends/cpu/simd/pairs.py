r"""Rows as pairs of bfloat16, for units that multiply pairs.

A float32 y is split into two bfloat16 numbers, head and tail, ``y = h + l`` to within
``2**-16 |y|``, and an inner product into three: ``y.b ~ h.h' + l.h' + h.l'``, one product of rows
of length 3 d, summed in float32.  The heads come first, and :mod:`scan.bf16_prefilter` multiplies
only these.  Layouts, in tiles of 1 KiB:

* ABREAST vectors of rows: ``[step, vector, pair of columns, row]``, a pair in 32 bits;
* a panel is ABREAST * TILE centres: ``[step, tile, centre, column]``; its initial scores are tiles
  whose rows are minus half a squared norm each;
* scores: ``[tile, vector, centre, row]``, float32.

:mod:`amx` and :mod:`dot_pairs` multiply; :mod:`scan.tile_scores` has the loops around them.
:mod:`microkernel_rows_in_lanes` defines the groups, and `fold`, which keeps the best two scores.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import (
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
    "ABREAST", "BITS", "KIB", "TILE", "compiled_for", "fold_tiles", "split_bf16_heads",
    "split_points",
]  # fmt: skip

# Rows of a tile; tiles of centres in a panel.
TILE = 16
ABREAST = 2
BITS = 4
KIB = 1024

_ROW = ir.Constant(ADDRESS, 64)


def compiled_for(unit: str) -> bool:
    """Return whether this processor, and those Numba compiles for, have a unit of LLVM's name."""
    named = vars(config)["CPU_FEATURES"]
    return f"+{unit}" in (get_host_cpu_features() if named is None else named).split(",")


def _split(with_tails: bool):
    """Return the code that writes heads and tails of a vector of rows, or only the heads."""
    half = ir.Constant(IVECTOR, [0x8000] * LANES)
    high = ir.Constant(IVECTOR, [-0x10000] * LANES)
    shift = ir.Constant(IVECTOR, [16] * LANES)

    def rounded(builder, value):
        """Return the nearest bfloat16, in the upper halves of 32 bits."""
        return builder.and_(builder.add(builder.bitcast(value, IVECTOR), half), high)

    def codegen(context, builder, sig, args):
        y, n_pairs, n_head_pairs, out, residuals = args
        total = cgutils.alloca_once_value(builder, ir.Constant(VECTOR, [0.0] * LANES))
        with cgutils.for_range(builder, n_pairs) as loop:
            pair = builder.add(y, builder.mul(loop.index, ir.Constant(ADDRESS, 8 * GROUP)))
            parts_of_pair = []
            for offset in (0, 4 * GROUP):
                value = load(builder, pair, offset, VECTOR, BYTES)
                head = rounded(builder, value)
                residual = builder.fsub(value, builder.bitcast(head, VECTOR))
                tail = rounded(builder, residual)
                if with_tails:
                    residual = builder.bitcast(tail, VECTOR)
                square = builder.fmul(residual, residual)
                builder.store(builder.fadd(builder.load(total), square), total)
                parts_of_pair.append((head, tail))
            head, tail = (builder.or_(builder.lshr(a, shift), b) for a, b in zip(*parts_of_pair))
            after = builder.add(n_head_pairs, loop.index)
            parts = [(head, loop.index)]
            if with_tails:
                parts += [(tail, after), (head, builder.add(after, n_pairs))]
            for value, row in parts:
                step = builder.lshr(row, ir.Constant(ADDRESS, 4))
                line = builder.and_(row, ir.Constant(ADDRESS, TILE - 1))
                place = builder.add(
                    builder.mul(step, ir.Constant(ADDRESS, ABREAST * KIB)),
                    builder.mul(line, _ROW),
                )
                store(builder, value, builder.add(out, place), 0)
        store(builder, builder.load(total), residuals, 0)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5), codegen


# Kernels on disk find an intrinsic by its name, so each has its own definition.
@intrinsic
def split_points(typingctx, y, n_pairs, n_head_pairs, out, residuals):
    """Write the tiles of one vector of rows; all are addresses or counts (intp).

    Parameters
    ----------
    y : IN
        An even number of features, twice `n_pairs`.
    n_head_pairs : int
        The column that the tails begin at.
    out : OUT
        Columns without a feature are not written.
    residuals : OUT
        The squared norms of the tails.
    """
    return _split(with_tails=True)


@intrinsic
def split_bf16_heads(typingctx, y, n_pairs, n_head_pairs, out, residuals):
    """Write only the heads; `residuals` receives their squared errors, ``|y - h|**2``."""
    return _split(with_tails=False)


@intrinsic
def fold_tiles(typingctx, scores, best, second, which, number):
    """Fold what :func:`amx.multiply` wrote into the best two scores of the rows.

    All are addresses (intp) but the number of the panel; number 0 ignores the old best two.
    """

    def codegen(context, builder, sig, args):
        scores, best, second, which, number = args
        is_first = builder.icmp_signed("==", number, ir.Constant(ADDRESS, 0))
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
                fresh = is_first if c == 0 else ir.Constant(ir.IntType(1), 0)
                state = fold(builder, rows, len(rows), name, fresh, *state)
            for value, address in zip(state, (best, second, which)):
                store(builder, value, address, at)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5), codegen
