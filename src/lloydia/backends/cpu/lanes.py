"""A candidate a lane: scores of rows against all candidates at once, and canonical distances.

Numba has no vector types; these intrinsics emit LLVM IR with vectors of 16 float32 or 8 float64,
which are one register of AVX-512, two of AVX, four of NEON.  A kernel handles ROWS rows at a time,
so that as many sums are on their way as hide an addition's latency.

Arguments are addresses and counts (intp): `rows` holds ROWS rows of `n_features` values, end to
end; `panel` holds the candidates feature-major, ``panel[f, lane]``: 16 lanes of float32, or 8 or 16
of float64 (one octet or two), from a multiple of 64 bytes on.
"""

from __future__ import annotations

from itertools import chain

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = [
    "OCTET",
    "ROWS",
    "above_double",
    "above_doubles",
    "above_single",
    "squares_one",
    "squares_two",
]

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


def _prefetch(builder, address):
    """Ask for a cache line that will be read soon; any address is allowed."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _INT, _INT, _INT])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(fetch, [builder.inttoptr(address, byte), _INT(0), _INT(3), _INT(1)])


def _each_feature(builder, rows, n_features, panel, kind, sums, add, ahead=0):
    """Emit ``sums[r][v] = add(x, c, sums[r][v])`` for every feature, row and vector.

    The rows that come `ahead` times ROWS later are fetched meanwhile, a feature at a time.
    """
    size = _BYTES // kind.count
    pitch = builder.mul(n_features, _ADDRESS(size))
    row = [builder.add(rows, builder.mul(pitch, _ADDRESS(r))) for r in range(ROWS)]
    vectors = len(sums[0])
    with cgutils.for_range(builder, n_features) as loop:
        at = builder.mul(loop.index, _ADDRESS(size))
        column = builder.add(panel, builder.mul(loop.index, _ADDRESS(_BYTES * vectors)))
        if ahead:
            start = builder.add(rows, builder.mul(pitch, _ADDRESS(ROWS * ahead)))
            _prefetch(builder, builder.add(start, builder.mul(at, _ADDRESS(ROWS))))
        c = [_vector(builder, column, _BYTES * v, kind) for v in range(vectors)]
        for r in range(ROWS):
            x = _splat(builder, builder.add(row[r], at), 0, kind)
            for v in range(vectors):
                builder.store(add(x, c[v], builder.load(sums[r][v])), sums[r][v])


def _above(kind, vectors: int):
    """Return the code that compares the scores of ROWS rows with a limit a row.

    A score is the value in `starts` plus the products, fused or not.  Bit j of the row's uint16 in
    `bits` says that candidate j's score is not at most the row's limit.
    """
    signature = types.void(*[types.intp] * 6)

    def codegen(context, builder, sig, args):
        rows, n_features, panel, starts, limits, bits = args
        name = f"llvm.fmuladd.v{kind.count}f{8 * _BYTES // kind.count}"
        muladd = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind] * 3), name
        )
        sums = [[cgutils.alloca_once(builder, kind) for _ in range(vectors)] for _ in range(ROWS)]
        for v in range(vectors):
            start = _vector(builder, starts, _BYTES * v, kind)
            for r in range(ROWS):
                builder.store(start, sums[r][v])
        _each_feature(
            builder, rows, n_features, panel, kind, sums,
            lambda x, c, total: builder.call(muladd, [x, c, total]), ahead=2,
        )  # fmt: skip
        for r in range(ROWS):
            limit = _splat(builder, limits, _BYTES // kind.count * r, kind)
            found = _SHORT(0)
            for v in range(vectors):
                above = builder.fcmp_unordered(">", builder.load(sums[r][v]), limit)
                mask = builder.bitcast(above, ir.IntType(kind.count))
                mask = mask if kind.count == 16 else builder.zext(mask, _SHORT)
                found = builder.or_(found, builder.shl(mask, _SHORT(OCTET * v)))
            builder.store(found, _pointer(builder, bits, 2 * r, _SHORT))
        return context.get_dummy_value()

    return signature, codegen


def _squares(vectors: int):
    """Return the code that writes the canonical D of ROWS rows to `out`, (ROWS, 8 * vectors)."""
    signature = types.void(*[types.intp] * 4)

    def codegen(context, builder, sig, args):
        rows, n_features, panel, out = args
        sums = [
            [cgutils.alloca_once(builder, _DOUBLES) for _ in range(vectors)] for _ in range(ROWS)
        ]
        for total in chain.from_iterable(sums):
            builder.store(ir.Constant(_DOUBLES, [0.0] * OCTET), total)

        def add(x, c, total):
            difference = builder.fsub(x, c)
            return builder.fadd(total, builder.fmul(difference, difference))

        _each_feature(builder, rows, n_features, panel, _DOUBLES, sums, add)
        for r in range(ROWS):
            for v in range(vectors):
                to = _pointer(builder, out, _BYTES * (r * vectors + v), _DOUBLES)
                builder.store(builder.load(sums[r][v]), to).align = _BYTES // OCTET
        return context.get_dummy_value()

    return signature, codegen


# An intrinsic is found by its name when a kernel is read from the disk cache, so each is one.
@intrinsic
def above_single(typingctx, rows, n_features, panel, starts, limits, bits):
    """Compare the float32 scores of 16 candidates with the rows' limits."""
    return _above(_SINGLES, 1)


@intrinsic
def above_double(typingctx, rows, n_features, panel, starts, limits, bits):
    """Compare the float64 scores of one octet of candidates with the rows' limits."""
    return _above(_DOUBLES, 1)


@intrinsic
def above_doubles(typingctx, rows, n_features, panel, starts, limits, bits):
    """Compare those of two octets."""
    return _above(_DOUBLES, 2)


@intrinsic
def squares_one(typingctx, rows, n_features, panel, out):
    """Write the canonical D of ROWS rows to one octet of candidates."""
    return _squares(1)


@intrinsic
def squares_two(typingctx, rows, n_features, panel, out):
    """Write those to two octets."""
    return _squares(2)
