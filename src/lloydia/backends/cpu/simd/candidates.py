"""The two inner loops of filtering, with explicit vectors of the processor.

:func:`prune_candidates` compares centres with a box, a centre in each lane; :func:`nearest`
compares the rows of a tile, a row in each lane, with the centres that are left.  `axes` is a tuple
of d values: its type gives the number of features, so that the loops over features are unrolled.

A list of candidates has their coordinates feature by feature, ``lists[f, j]``, float64, with
`pitch` bytes a feature, and their `numbers` among all centres, int32, ascending.  A list has room
for WIDTH more candidates than it holds.
"""

from __future__ import annotations

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.algorithms.filtering import TILE
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import LANES
from lloydia.exact.distance import relative_error

__all__ = ["WIDTH", "differing", "lowest_bit", "nearest", "prune_candidates"]

WIDTH = LANES // 2

# Vector registers; AVX2 and SSE have half as many as AVX-512 and NEON.
_features = get_host_cpu_features()
REGISTERS = 16 if _features.get("sse2") and not _features.get("avx512f") else 32

_DOUBLE, _INT, _ADDRESS = ir.DoubleType(), ir.IntType(32), ir.IntType(64)
_VECTOR, _NUMBERS = ir.VectorType(_DOUBLE, WIDTH), ir.VectorType(_INT, WIDTH)
_BITS = ir.VectorType(ir.IntType(1), WIDTH)
_LANES = ir.Constant(_NUMBERS, list(range(WIDTH)))
_FAR = ir.Constant(_VECTOR, [float("inf")] * WIDTH)


def _splat(builder, scalar):
    kind = ir.VectorType(scalar.type, WIDTH)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, _INT(0))
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), ir.Constant(_NUMBERS, None))


class _Memory:
    """Loads and stores at an address plus bytes, aligned to an element."""

    def __init__(self, builder):
        self.builder = builder

    def pointer(self, address, offset, kind):
        offset = offset if isinstance(offset, ir.Value) else _ADDRESS(offset)
        return self.builder.inttoptr(self.builder.add(address, offset), kind.as_pointer())

    def load(self, address, offset, kind):
        value = self.builder.load(self.pointer(address, offset, kind))
        value.align = 4
        return value

    def store(self, value, address, offset):
        self.builder.store(value, self.pointer(address, offset, value.type)).align = 4


def _bytes(kind):
    return 8 if kind == _DOUBLE else 4


def _kind(number):
    """Return the LLVM type of a Numba float type."""
    return ir.FloatType() if number == types.float32 else _DOUBLE


def _call(builder, name, result, *args, **options):
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, [a.type for a in args]), name
    )
    return builder.call(function, args, **options)


def _muladd(builder, a, b, c):
    suffix = f"v{WIDTH}f64" if isinstance(a.type, ir.VectorType) else "f64"
    return _call(builder, f"llvm.fmuladd.{suffix}", a.type, a, b, c)


def _nearest(d, kind):
    """Return the code of :func:`nearest` for `d` features of the LLVM type `kind`.

    Registers hold `nv` vectors of rows at a time: the features and, for each row, the smallest D
    and the number of its centre.
    """
    nv = max(v for v in (4, 2, 1) if v == 1 or v * (d + 2) + 2 <= REGISTERS)

    def codegen(context, builder, sig, args):
        _, _, x, lists, pitch, numbers, count, fresh = args
        memory = _Memory(builder)
        smallest = [cgutils.alloca_once(builder, _VECTOR) for _ in range(nv)]
        index = [cgutils.alloca_once(builder, _NUMBERS) for _ in range(nv)]
        with cgutils.for_range(builder, _ADDRESS(TILE // (nv * WIDTH))) as group:
            first = builder.mul(group.index, _ADDRESS(nv * WIDTH))
            rows_at = builder.add(x, builder.mul(first, _ADDRESS(_bytes(kind))))
            places = [(f, v) for v in range(nv) for f in range(d)]
            X = {
                (f, v): memory.load(
                    rows_at, (f * TILE + v * WIDTH) * _bytes(kind), ir.VectorType(kind, WIDTH)
                )
                for f, v in places
            }
            if kind != _DOUBLE:
                X = {place: builder.fpext(value, _VECTOR) for place, value in X.items()}
            for v in range(nv):
                builder.store(_FAR, smallest[v])
                builder.store(ir.Constant(_NUMBERS, None), index[v])
            with cgutils.for_range(builder, count) as loop:
                at = builder.mul(loop.index, _ADDRESS(8))
                number = memory.load(builder.add(numbers, builder.lshr(at, _ADDRESS(1))), 0, _INT)
                number = _splat(builder, number)
                C = []
                for f in range(d):
                    column = builder.add(lists, builder.mul(pitch, _ADDRESS(f)))
                    C.append(_splat(builder, memory.load(column, at, _DOUBLE)))
                for v in range(nv):
                    D = None
                    for f in range(d):
                        difference = builder.fsub(X[f, v], C[f])
                        square = builder.fmul(difference, difference)
                        D = square if D is None else builder.fadd(D, square)
                    before = builder.load(smallest[v])
                    nearer = builder.fcmp_ordered("<", D, before)
                    builder.store(builder.select(nearer, D, before), smallest[v])
                    builder.store(builder.select(nearer, number, builder.load(index[v])), index[v])
            labels_at = builder.add(fresh, builder.mul(first, _ADDRESS(4)))
            for v in range(nv):
                memory.store(builder.load(index[v]), labels_at, 4 * v * WIDTH)
        return context.get_dummy_value()

    return codegen


@intrinsic
def nearest(typingctx, axes, example, x, lists, pitch, numbers, count, fresh):
    """Write for each row the number of the candidate with the smallest D, the lowest on a tie.

    Parameters
    ----------
    axes : tuple of d numbers
    example : a number of X's type
    x : IN, address of a tile (d, TILE)
    lists, pitch, numbers, count : IN, the candidates
    fresh : OUT, address of TILE int32
    """
    signature = types.void(axes, example, *[types.intp] * 6)
    return signature, _nearest(len(axes), _kind(example))


def _frame_box(builder, memory, low, high, d, kind):
    """Return the middle of a box, and half of its widths, rounded up: two lists of scalars."""
    middle, half = [], []
    for f in range(d):
        a, b = (memory.load(side, f * _bytes(kind), kind) for side in (low, high))
        if kind != _DOUBLE:
            a, b = builder.fpext(a, _DOUBLE), builder.fpext(b, _DOUBLE)
        m = builder.fadd(a, builder.fmul(builder.fsub(b, a), _DOUBLE(0.5)))
        up, down = builder.fsub(b, m), builder.fsub(m, a)
        wider = builder.select(builder.fcmp_ordered(">", up, down), up, down)
        middle.append(m)
        half.append(builder.fmul(wider, _DOUBLE(1.0 + 2.0**-50)))
    return middle, half


def _prune_candidates(d, kind):
    """Return the code of :func:`prune_candidates`: distances to the middle, then the tests."""
    r = relative_error(d)

    def codegen(context, builder, sig, args):
        _, _, low, high, lists, pitch, numbers, count, distance, lists_out, numbers_out = args
        memory = _Memory(builder)

        def columns(table):
            return [builder.add(table, builder.mul(pitch, _ADDRESS(f))) for f in range(d)]

        middle, half = _frame_box(builder, memory, low, high, d, kind)
        source, target = columns(lists), columns(lists_out)
        steps = builder.udiv(builder.add(count, _ADDRESS(WIDTH - 1)), _ADDRESS(WIDTH))
        length = _splat(builder, builder.trunc(count, _INT))

        def lanes(step):
            base = builder.trunc(builder.mul(step, _ADDRESS(WIDTH)), _INT)
            return builder.add(_splat(builder, base), _LANES)

        smallest = cgutils.alloca_once_value(builder, _FAR)
        where = cgutils.alloca_once_value(builder, ir.Constant(_NUMBERS, None))
        m = [_splat(builder, value) for value in middle]
        with cgutils.for_range(builder, steps) as loop:
            at, place = builder.mul(loop.index, _ADDRESS(8 * WIDTH)), lanes(loop.index)
            D = ir.Constant(_VECTOR, None)
            for f in range(d):
                difference = builder.fsub(memory.load(source[f], at, _VECTOR), m[f])
                D = _muladd(builder, difference, difference, D)
            D = builder.select(builder.icmp_signed("<", place, length), D, _FAR)
            memory.store(D, distance, at)
            before = builder.load(smallest)
            nearer = builder.fcmp_ordered("<", D, before)
            builder.store(builder.select(nearer, D, before), smallest)
            builder.store(builder.select(nearer, place, builder.load(where)), where)

        D, place = builder.load(smallest), builder.load(where)
        least = _call(
            builder, f"llvm.vector.reduce.fmin.v{WIDTH}f64", _DOUBLE, D, fastmath=("nnan",)
        )
        places = builder.select(
            builder.fcmp_ordered("==", D, _splat(builder, least)),
            place,
            ir.Constant(_NUMBERS, [2**31 - 1] * WIDTH),
        )
        z = builder.zext(
            _call(builder, f"llvm.vector.reduce.umin.v{WIDTH}i32", _INT, places), _ADDRESS
        )
        z = builder.mul(z, _ADDRESS(8))
        nearest_one = [memory.load(source[f], z, _DOUBLE) for f in range(d)]
        U = _DOUBLE(0.0)
        for f in range(d):
            away = _call(builder, "llvm.fabs.f64", _DOUBLE, builder.fsub(nearest_one[f], middle[f]))
            away = builder.fadd(away, half[f])
            U = _muladd(builder, away, away, U)
        limit = builder.fadd(_muladd(builder, U, _DOUBLE(8 * r), least), _DOUBLE(2.0**-960))
        limit = _splat(builder, limit)
        near = [_splat(builder, value) for value in nearest_one]
        # 2 G: twice the half widths.
        width = [_splat(builder, builder.fadd(value, value)) for value in half]
        shrink = ir.Constant(_VECTOR, [1.0 - 4.0 * r] * WIDTH)

        left = cgutils.alloca_once_value(builder, _ADDRESS(0))
        with cgutils.for_range(builder, steps) as loop:
            at, place = builder.mul(loop.index, _ADDRESS(8 * WIDTH)), lanes(loop.index)
            C = [memory.load(source[f], at, _VECTOR) for f in range(d)]
            reach = limit
            for f in range(d):
                gap = _call(builder, f"llvm.fabs.v{WIDTH}f64", _VECTOR, builder.fsub(C[f], near[f]))
                reach = _muladd(builder, gap, width[f], reach)
            D = builder.fmul(memory.load(distance, at, _VECTOR), shrink)
            # (1 - 4 r) |m - c|^2 > |m - z|^2 + 2 G + 8 r U + 2**-960 (algorithms.filtering).
            out = builder.fcmp_ordered(">", D, reach)
            mask = builder.and_(builder.not_(out), builder.icmp_signed("<", place, length))
            number = memory.load(builder.add(numbers, builder.lshr(at, _ADDRESS(1))), 0, _NUMBERS)
            to = builder.load(left)
            target_at = builder.mul(to, _ADDRESS(8))
            for f in range(d):
                memory.store(_compress(builder, C[f], mask), target[f], target_at)
            memory.store(
                _compress(builder, number, mask), numbers_out, builder.lshr(target_at, _ADDRESS(1))
            )
            bits = builder.bitcast(mask, ir.IntType(WIDTH))
            n_left = _call(builder, f"llvm.ctpop.i{WIDTH}", ir.IntType(WIDTH), bits)
            builder.store(builder.add(to, builder.zext(n_left, _ADDRESS)), left)
        return builder.load(left)

    return codegen


def _compress(builder, value, mask):
    suffix = f"v{WIDTH}f64" if value.type == _VECTOR else f"v{WIDTH}i32"
    undefined = ir.Constant(value.type, ir.Undefined)
    return _call(
        builder, f"llvm.experimental.vector.compress.{suffix}", value.type, value, mask, undefined
    )


@intrinsic
def prune_candidates(
    typingctx,
    axes,
    example,
    low,
    high,
    lists,
    pitch,
    numbers,
    count,
    distance,
    lists_out,
    numbers_out,
):
    """Write the candidates that the test of filtering does not exclude; return their number.

    Parameters
    ----------
    axes : tuple of d numbers
    example : a number of X's type
    low, high : IN, addresses of the sides of a box (d,), X's type
    lists, pitch, numbers, count : IN, the candidates
    distance : scratch, address of ``count + WIDTH`` float64
    lists_out, numbers_out : OUT, the candidates that are left
    """
    signature = types.intp(axes, example, *[types.intp] * 9)
    return signature, _prune_candidates(len(axes), _kind(example))


@intrinsic
def differing(typingctx, a, b):
    """Return a bit for each entry in which two lists of TILE int32, given by address, differ."""
    signature = types.uint64(types.intp, types.intp)

    def codegen(context, builder, sig, args):
        memory, labels = _Memory(builder), ir.VectorType(_INT, TILE)
        unequal = builder.icmp_signed("!=", *[memory.load(list, 0, labels) for list in args])
        return builder.bitcast(unequal, ir.IntType(TILE))

    return signature, codegen


@intrinsic
def lowest_bit(typingctx, bits):
    """Return the position of the lowest bit that is set; `bits` is not 0."""

    def codegen(context, builder, sig, args):
        return _call(builder, "llvm.cttz.i64", _ADDRESS, args[0], ir.IntType(1)(True))

    return types.int64(types.uint64), codegen
