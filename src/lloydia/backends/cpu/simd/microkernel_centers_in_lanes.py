"""The microkernel with a centre in every lane: MR rows times NV vectors of centres.

Numba has no vector types; these intrinsics emit LLVM IR with them.  :func:`scan_three` is the inner
loop of a matrix multiplication, but instead of storing the scores it keeps, lane by lane, the two
largest and the vector of the largest.  :func:`reduce_lanes` reduces the lanes of a row.  Layouts
(all float32, panels and lanes aligned to 64 bytes):

* a panel has up to NV vectors of LANES centres, feature-major: ``panel[f, v, lane]``;
* ``first, second, which`` have LANES values a row; ``which`` is the number of the vector of
  centres, so that centre = which * LANES + lane.
"""

from __future__ import annotations

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = [
    "LANES", "MR", "NV", "emit_reduction", "reduce_lanes", "scan_one", "scan_three", "scan_two",
]  # fmt: skip


def _block() -> tuple[int, int]:
    """Return (LANES, MR): with NV, what fills the vector registers without spilling."""
    features = get_host_cpu_features()
    if features.get("avx512f"):
        return 16, 8  # 24 accumulators of 32 registers
    if features.get("avx"):
        return 8, 4  # 12 of 16
    return 4, 8  # NEON: 24 of 32


LANES, MR = _block()
NV = 3

# Lower than every score: it pads panels behind the last centre.
LOWEST_SCORE = -3e38

_FLOAT, _INT, _ADDRESS = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR, _IVECTOR = ir.VectorType(_FLOAT, LANES), ir.VectorType(_INT, LANES)
_BYTES = 4 * LANES


def _load(builder, address, offset, kind, align):
    pointer = builder.inttoptr(builder.add(address, offset), kind.as_pointer())
    value = builder.load(pointer)
    value.align = align
    return value


def _store(builder, value, address, offset):
    pointer = builder.inttoptr(builder.add(address, offset), value.type.as_pointer())
    builder.store(value, pointer).align = 64 if _BYTES >= 64 else _BYTES


def _constant(value):
    return ir.Constant(_ADDRESS, value)


def _splat(builder, scalar, kind):
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(_INT, 0))
    return builder.shuffle_vector(
        one, ir.Constant(kind, ir.Undefined), ir.Constant(_IVECTOR, [0] * LANES)
    )


def _scan_panel(nv: int):
    """Return the code of the scan of a panel of `nv` vectors.

    All arguments are addresses or counts (intp): MR rows of `n_features`; the panel; the initial
    scores (minus half the squared norms); the lanes' best two and their vectors; and the number of
    the panel's first vector.  Number 0 ignores the old best two.
    """
    signature = types.void(*[types.intp] * 8)

    def codegen(context, builder, sig, args):
        rows, n_features, panel, half_squares, first, second, which, number = args
        align = min(64, _BYTES)
        muladd = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_VECTOR, [_VECTOR] * 3),
            f"llvm.fmuladd.v{LANES}f32",
        )
        total = [[cgutils.alloca_once(builder, _VECTOR) for _ in range(nv)] for _ in range(MR)]
        for v in range(nv):
            start = _load(builder, half_squares, _constant(_BYTES * v), _VECTOR, align)
            for r in range(MR):
                builder.store(start, total[r][v])
        pitch = builder.mul(n_features, _constant(4))
        row = [builder.add(rows, builder.mul(pitch, _constant(r))) for r in range(MR)]
        with cgutils.for_range(builder, n_features) as loop:
            at = builder.mul(loop.index, _constant(4))
            column = builder.mul(loop.index, _constant(_BYTES * nv))
            c = [
                _load(builder, panel, builder.add(column, _constant(_BYTES * v)), _VECTOR, align)
                for v in range(nv)
            ]
            for r in range(MR):
                x = _splat(builder, _load(builder, row[r], at, _FLOAT, 4), _VECTOR)
                for v in range(nv):
                    builder.store(
                        builder.call(muladd, [x, c[v], builder.load(total[r][v])]), total[r][v]
                    )
        base = builder.trunc(number, _INT)
        numbers = [
            _splat(builder, builder.add(base, ir.Constant(_INT, v)), _IVECTOR) for v in range(nv)
        ]
        is_first = builder.icmp_signed("==", number, _constant(0))
        lowest = ir.Constant(_VECTOR, [LOWEST_SCORE] * LANES)
        for r in range(MR):
            offset = _constant(_BYTES * r)
            best = builder.select(is_first, lowest, _load(builder, first, offset, _VECTOR, align))
            second_score = builder.select(
                is_first, lowest, _load(builder, second, offset, _VECTOR, align)
            )
            index = _load(builder, which, offset, _IVECTOR, align)
            for v in range(nv):
                score = builder.load(total[r][v])
                better = builder.fcmp_ordered(">", score, best)
                loser = builder.select(better, best, score)
                second_score = builder.select(
                    builder.fcmp_ordered(">", loser, second_score), loser, second_score
                )
                index = builder.select(better, numbers[v], index)
                best = builder.select(better, score, best)
            _store(builder, best, first, offset)
            _store(builder, second_score, second, offset)
            _store(builder, index, which, offset)
        return context.get_dummy_value()

    return signature, codegen


# Kernels on disk find an intrinsic by its name, so each has its own definition.
@intrinsic
def scan_one(typingctx, rows, n_features, panel, half_squares, first, second, which, number):
    """Score MR rows against a panel of one vector and fold the scores into their best two."""
    return _scan_panel(1)


@intrinsic
def scan_two(typingctx, rows, n_features, panel, half_squares, first, second, which, number):
    """Do the same with a panel of two vectors."""
    return _scan_panel(2)


@intrinsic
def scan_three(typingctx, rows, n_features, panel, half_squares, first, second, which, number):
    """Do the same with a panel of three vectors."""
    return _scan_panel(3)


def emit_reduction(builder, best, second_score, index):
    """Emit the reduction of the lanes of a row: vectors of the best two scores, and the vector.

    Returns what :func:`reduce_lanes` does.
    """
    largest = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_FLOAT, [_VECTOR]),
        f"llvm.vector.reduce.fmax.v{LANES}f32",
    )
    smallest = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_INT, [_IVECTOR]),
        f"llvm.vector.reduce.umin.v{LANES}i32",
    )

    def top(vector):
        return builder.call(largest, [vector], fastmath=("nnan",))

    winner = top(best)
    here = builder.fcmp_ordered("==", best, _splat(builder, winner, _VECTOR))
    lanes = ir.Constant(_IVECTOR, list(range(LANES)))
    centre = builder.add(builder.mul(index, ir.Constant(_IVECTOR, [LANES] * LANES)), lanes)
    nowhere = ir.Constant(_IVECTOR, [2**31 - 1] * LANES)
    chosen = builder.call(smallest, [builder.select(here, centre, nowhere)])
    # The winning lane is left out, so that an equal score becomes the second best.
    only = builder.icmp_signed("==", centre, _splat(builder, chosen, _IVECTOR))
    others = builder.select(only, second_score, best)
    runner_up = top(
        builder.select(builder.fcmp_ordered(">", others, second_score), others, second_score)
    )
    return winner, runner_up, chosen


@intrinsic
def reduce_lanes(typingctx, first, second, which):
    """Reduce the lanes of one row: (best score, second best score, centre of the best).

    Two lanes that share the best score make the second best equal to it.
    """
    signature = types.Tuple([types.float32, types.float32, types.int32])(*[types.intp] * 3)

    def codegen(context, builder, sig, args):
        align, kinds = min(64, _BYTES), (_VECTOR, _VECTOR, _IVECTOR)
        lanes = [_load(builder, at, _constant(0), kind, align) for at, kind in zip(args, kinds)]
        return context.make_tuple(builder, sig.return_type, emit_reduction(builder, *lanes))

    return signature, codegen
