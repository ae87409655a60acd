"""A candidate in every lane: scores of rows with all candidates, and canonical distances.

Numba has no vector types; these intrinsics emit LLVM IR with vectors of 16 float32 or 8 float64,
which are one register of AVX-512, two of AVX, four of NEON.  A kernel handles ROWS rows at a time,
so that enough sums are in flight to hide the latency of an addition.

Arguments are addresses and counts (intp): `rows` has ROWS contiguous rows of `n_features` values;
`panel` has a vector of candidates for each feature, `pitch` bytes apart, from a multiple of 64
bytes on.
"""

from __future__ import annotations

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["OCTET", "ROWS", "above", "fetch", "products", "squares"]

OCTET = 8
ROWS = 8 if get_host_cpu_features().get("avx512f") else 4

_ADDRESS, _INT, _SHORT = ir.IntType(64), ir.IntType(32), ir.IntType(16)
_SINGLES = ir.VectorType(ir.FloatType(), 2 * OCTET)
_DOUBLES = ir.VectorType(ir.DoubleType(), OCTET)
_BYTES = 64


def _pointer(builder, address, offset, kind):
    return builder.inttoptr(builder.add(address, _ADDRESS(offset)), kind.as_pointer())


def _vector(builder, address, offset, kind):
    value = builder.load(_pointer(builder, address, offset, kind))
    value.align = _BYTES
    return value


def _splat(builder, address, offset, kind):
    scalar = builder.load(_pointer(builder, address, offset, kind.element))
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, scalar, _INT(0))
    lanes = ir.Constant(ir.VectorType(_INT, kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, nothing, lanes)


def _prefetch(builder, address, locality=3):
    """Prefetch a cache line; any address is allowed.  A lower locality is a larger cache."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _INT, _INT, _INT])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    hints = [_INT(0), _INT(locality), _INT(1)]
    builder.call(fetch, [builder.inttoptr(address, byte), *hints])


def _each_feature(builder, rows, n_features, panel, pitch, kind, sums, add, prefetch_depth=0):
    """Emit ``sums[r] = add(x, c, sums[r])`` for every feature and row.

    The rows that come `prefetch_depth` times ROWS later are prefetched, a feature at a time.
    """
    size = _BYTES // kind.count
    length = builder.mul(n_features, _ADDRESS(size))
    row = [builder.add(rows, builder.mul(length, _ADDRESS(r))) for r in range(ROWS)]
    with cgutils.for_range(builder, n_features) as loop:
        at = builder.mul(loop.index, _ADDRESS(size))
        if prefetch_depth:
            start = builder.add(rows, builder.mul(length, _ADDRESS(ROWS * prefetch_depth)))
            _prefetch(builder, builder.add(start, builder.mul(at, _ADDRESS(ROWS))))
        c = _vector(builder, builder.add(panel, builder.mul(loop.index, pitch)), 0, kind)
        for r in range(ROWS):
            x = _splat(builder, builder.add(row[r], at), 0, kind)
            builder.store(add(x, c, builder.load(sums[r])), sums[r])


@intrinsic
def fetch(typingctx, address, size):
    """Prefetch some bytes, from an address on, to the second-level cache."""

    def codegen(context, builder, sig, args):
        address, size = args
        lines = builder.udiv(builder.add(size, _ADDRESS(_BYTES - 1)), _ADDRESS(_BYTES))
        with cgutils.for_range(builder, lines) as loop:
            at = builder.add(address, builder.mul(loop.index, _ADDRESS(_BYTES)))
            _prefetch(builder, at, locality=2)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), codegen


@intrinsic
def above(typingctx, X, rows, n_features, panel, pitch, initial_scores, first, limits, bits):
    """Compare the scores of ROWS rows, in the type of `X`, with a limit per row.

    A score is its initial score plus the products, fused or not.  Bit j of the row's uint16 in
    `bits`, OUT, is set if the score of candidate j is above the row's limit, or NaN.  The vector is
    that of the candidates from `first` on; if `first` is 0, `bits` is overwritten, else added to.
    """
    signature = types.void(X, *[types.intp] * 8)
    kind = _SINGLES if X.dtype == types.float32 else _DOUBLES

    def codegen(context, builder, sig, args):
        _, rows, n_features, panel, pitch, initial_scores, first, limits, bits = args
        name = f"llvm.fmuladd.v{kind.count}f{8 * _BYTES // kind.count}"
        muladd = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind] * 3), name
        )
        start = _vector(builder, initial_scores, 0, kind)
        sums = [cgutils.alloca_once(builder, kind) for _ in range(ROWS)]
        for r in range(ROWS):
            builder.store(start, sums[r])
        _each_feature(
            builder, rows, n_features, panel, pitch, kind, sums,
            lambda x, c, total: builder.call(muladd, [x, c, total]), prefetch_depth=2,
        )  # fmt: skip
        is_first = builder.icmp_signed("==", first, _ADDRESS(0))
        shift = builder.trunc(first, _SHORT)
        for r in range(ROWS):
            limit = _splat(builder, limits, _BYTES // kind.count * r, kind)
            over = builder.fcmp_unordered(">", builder.load(sums[r]), limit)
            mask = builder.bitcast(over, ir.IntType(kind.count))
            mask = mask if kind.count == 16 else builder.zext(mask, _SHORT)
            to = _pointer(builder, bits, 2 * r, _SHORT)
            before = builder.select(is_first, _SHORT(0), builder.load(to))
            builder.store(builder.or_(before, builder.shl(mask, shift)), to)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def products(typingctx, rows, n_features, panel, pitch, out, out_pitch):
    """Write the products, float32, of ROWS rows and a vector of candidates, fused or not.

    Those of a row are contiguous in `out`, `out_pitch` bytes after those of the previous row.
    """
    signature = types.void(*[types.intp] * 6)

    def codegen(context, builder, sig, args):
        rows, n_features, panel, pitch, out, out_pitch = args
        kind = ir.FunctionType(_SINGLES, [_SINGLES] * 3)
        name = f"llvm.fmuladd.v{_SINGLES.count}f32"
        muladd = cgutils.get_or_insert_function(builder.module, kind, name)
        sums = [cgutils.alloca_once(builder, _SINGLES) for _ in range(ROWS)]
        for total in sums:
            builder.store(ir.Constant(_SINGLES, [0.0] * _SINGLES.count), total)
        _each_feature(
            builder, rows, n_features, panel, pitch, _SINGLES, sums,
            lambda x, c, total: builder.call(muladd, [x, c, total]),
        )  # fmt: skip
        for r in range(ROWS):
            to = builder.add(out, builder.mul(out_pitch, _ADDRESS(r)))
            value = builder.load(sums[r])
            builder.store(value, _pointer(builder, to, 0, _SINGLES)).align = 4
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def squares(typingctx, rows, n_features, panel, pitch, out):
    """Write the canonical D of ROWS rows, float64, to an octet of candidates.

    Those of a row are contiguous in `out`, `pitch` bytes after those of the previous row.
    """
    signature = types.void(*[types.intp] * 5)

    def codegen(context, builder, sig, args):
        rows, n_features, panel, pitch, out = args
        sums = [cgutils.alloca_once(builder, _DOUBLES) for _ in range(ROWS)]
        for total in sums:
            builder.store(ir.Constant(_DOUBLES, [0.0] * OCTET), total)

        def add(x, c, total):
            difference = builder.fsub(x, c)
            return builder.fadd(total, builder.fmul(difference, difference))

        _each_feature(builder, rows, n_features, panel, pitch, _DOUBLES, sums, add)
        for r in range(ROWS):
            to = builder.add(out, builder.mul(pitch, _ADDRESS(r)))
            value = builder.load(sums[r])
            builder.store(value, _pointer(builder, to, 0, _DOUBLES)).align = _BYTES // OCTET
        return context.get_dummy_value()

    return signature, codegen
