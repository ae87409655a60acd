"""Scores of MR rows with one panel of centres, for the few rows that bounds select.

The block of registers is that of :mod:`simd.microkernel_centers_in_lanes`, but each row has an
address of its own.  The functions named best_of find for each row the best score, the second best
and the number of the best.  They merge MR rows of LANES lanes pairwise, in a tree that halves the
lanes of a row at every level, so that MR rows take hardly longer than one row.  If two scores are
equal and best, the second best equals the best.

:func:`score_block` writes all scores of a block of rows.  For one row, LANES centres at a time,
:func:`store_bounds` finds the best two scores and computes bounds from all of them, and
:func:`collect` compares bounds with the largest distance of interest.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import (
    _ADDRESS,
    _BYTES,
    _FLOAT,
    _INT,
    _IVECTOR,
    _VECTOR,
    LANES,
    LOWEST_SCORE,
    MR,
    NV,
    _constant,
    _load,
    _splat,
    _store,
    emit_reduction,
)

__all__ = ["best_of_all", "best_of_one", "collect", "score_block", "store_bounds"]

ALIGN = min(64, _BYTES)


def _scores(builder, row, n_features, panel, half_squares, nv):
    """Emit the scores of MR rows, of which `row` has the addresses: MR lists of `nv` vectors."""
    muladd = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fmuladd.v{LANES}f32"
    )
    total = [[cgutils.alloca_once(builder, _VECTOR) for _ in range(nv)] for _ in range(MR)]
    for v in range(nv):
        start = _load(builder, half_squares, _constant(_BYTES * v), _VECTOR, ALIGN)
        for r in range(MR):
            builder.store(start, total[r][v])
    with cgutils.for_range(builder, n_features) as loop:
        at = builder.mul(loop.index, _constant(4))
        column = builder.add(panel, builder.mul(loop.index, _constant(_BYTES * nv)))
        c = [_load(builder, column, _constant(_BYTES * v), _VECTOR, ALIGN) for v in range(nv)]
        for r in range(MR):
            x = _splat(builder, _load(builder, row[r], at, _FLOAT, 4), _VECTOR)
            for v in range(nv):
                builder.store(
                    builder.call(muladd, [x, c[v], builder.load(total[r][v])]), total[r][v]
                )
    return [[builder.load(total[r][v]) for v in range(nv)] for r in range(MR)]


def _merge(builder, a, b):
    """Emit the merge of two (best, second, which), lane by lane; on a tie the first is kept."""
    better = builder.fcmp_ordered(">", b[0], a[0])
    best = builder.select(better, b[0], a[0])
    loser = builder.select(better, a[0], b[0])
    second = builder.select(better, b[1], a[1])
    second = builder.select(builder.fcmp_ordered(">", loser, second), loser, second)
    return best, second, builder.select(better, b[2], a[2])


def _halve(builder, a, b, width):
    """Emit the merge of the lower with the upper half of every row of `a` and `b`.

    A row has `width` consecutive lanes, and half as many in the result.
    """
    runs = range(0, 2 * LANES, width)
    lower = [run + lane for run in runs for lane in range(width // 2)]
    low, high = (
        ir.Constant(_IVECTOR, [lane + shift for lane in lower][:LANES]) for shift in (0, width // 2)
    )
    pairs = [
        tuple(builder.shuffle_vector(x, y, mask) for x, y in zip(a, b, strict=True))
        for mask in (low, high)
    ]
    return _merge(builder, *pairs)


def _best_of(nv):
    """Return the code for a panel of `nv` vectors.

    Arguments are addresses or counts: the list of MR row addresses; d; the panel; its initial
    scores; OUT: the best, the second best (float32) and the number of the best (int32) of the MR
    rows; the number of the panel's first centre; and `overwrite`, 0 if the results are merged with
    those of earlier panels.
    """
    signature = types.void(*[types.intp] * 9)

    def codegen(context, builder, sig, args):
        rows, n_features, panel, half_squares, first, second, which, number, overwrite = args
        row = [_load(builder, rows, _constant(8 * r), _ADDRESS, 8) for r in range(MR)]
        scores = _scores(builder, row, n_features, panel, half_squares, nv)
        base = _splat(builder, builder.trunc(number, _INT), _IVECTOR)
        lanes = [
            builder.add(base, ir.Constant(_IVECTOR, list(range(v * LANES, (v + 1) * LANES))))
            for v in range(nv)
        ]
        lowest = ir.Constant(_VECTOR, [float("-inf")] * LANES)
        level = []
        for row in scores:
            stored = (row[0], lowest, lanes[0])
            for v in range(1, nv):
                stored = _merge(builder, stored, (row[v], lowest, lanes[v]))
            level.append(stored)
        width = LANES
        while width > 1:
            pairs = zip(level[::2], level[1::2], strict=True) if len(level) > 1 else [level * 2]
            level = [_halve(builder, a, b, width) for a, b in pairs]
            width //= 2
        each = min(LANES, MR)
        mask = ir.Constant(ir.VectorType(_INT, each), list(range(each)))
        overwrites = builder.icmp_signed("!=", overwrite, _constant(0))
        for part, found in enumerate(level):
            found = tuple(builder.shuffle_vector(x, x, mask) for x in found)
            places = [builder.add(at, _constant(4 * each * part)) for at in (first, second, which)]
            old = tuple(
                _load(builder, at, _constant(0), x.type, 4)
                for at, x in zip(places, found, strict=True)
            )
            merged = _merge(builder, old, found)
            for at, x, y in zip(places, found, merged, strict=True):
                pointer = builder.inttoptr(at, x.type.as_pointer())
                builder.store(builder.select(overwrites, x, y), pointer).align = 4
        return context.get_dummy_value()

    return signature, codegen


# Compiled kernels on disk refer to an intrinsic by its name, so each has a definition of its own.
@intrinsic
def best_of_one(
    typingctx, rows, n_features, panel, half_squares, first, second, which, number, overwrite
):
    """Find the best two scores of MR rows with a panel of one vector."""
    return _best_of(1)


@intrinsic
def best_of_all(
    typingctx, rows, n_features, panel, half_squares, first, second, which, number, overwrite
):
    """Find the best two scores of MR rows with a panel of NV vectors."""
    return _best_of(NV)


def _arrays(context, builder, sig, args):
    """Return the arguments that are arrays, as Numba's structures."""
    return [
        context.make_array(kind)(context, builder, value)
        for kind, value in zip(sig.args, args, strict=True)
        if isinstance(kind, types.Array)
    ]


def _row(builder, array, i=None):
    """Return the address of row `i` of an array in C order, or of the array."""
    start = builder.ptrtoint(array.data, _ADDRESS)
    if i is None:
        return start
    return builder.add(start, builder.mul(i, builder.extract_value(array.strides, 0)))


def _n_vectors(builder, array):
    """Return the vectors of LANES elements that an array of one axis has."""
    return builder.udiv(builder.extract_value(array.shape, 0), _constant(LANES))


@intrinsic
def score_block(typingctx, y, m, panels, half_squares, scores):
    """Write the scores of a block of rows with all panels of one vector.

    Parameters
    ----------
    y : IN, ndarray (block, d), float32
        The framed rows; `block` is a multiple of MR.
    m : int
        The rows to score, and as many more as make a multiple of MR.
    panels : IN, ndarray (n_panels, d, LANES), float32
    half_squares : IN, ndarray (n_panels * LANES,), float32
        The initial scores.
    scores : OUT, ndarray (block, n_panels * LANES), float32
    """
    signature = types.void(y, types.int64, panels, half_squares, scores)

    def codegen(context, builder, sig, args):
        y, panels, half_squares, scores = _arrays(context, builder, sig, args)
        n_panels, d, _ = cgutils.unpack_tuple(builder, panels.shape)
        turns = builder.udiv(builder.add(args[1], _constant(MR - 1)), _constant(MR))
        with cgutils.for_range(builder, n_panels) as outer:
            column = builder.mul(outer.index, _constant(_BYTES))
            panel = _row(builder, panels, outer.index)
            half = builder.add(_row(builder, half_squares), column)
            with cgutils.for_range(builder, turns) as inner:
                first = builder.mul(inner.index, _constant(MR))
                numbers = [builder.add(first, _constant(r)) for r in range(MR)]
                rows = [_row(builder, y, p) for p in numbers]
                found = _scores(builder, rows, d, panel, half, 1)
                for p, (score,) in zip(numbers, found, strict=True):
                    _store(builder, score, _row(builder, scores, p), column)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def collect(typingctx, lower, i, drift, half_gaps, a, reach, out):
    """List the numbers j whose bound is not above `reach`.

    The bound is the larger of ``lower[i, j] - drift[j]`` and ``half_gaps[a, j]``: in Elkan's
    algorithm ``max(l_j, d(c_a, c_j) / 2)``.  Returns how many are listed, and the smallest bound of
    the others.

    Parameters
    ----------
    lower, half_gaps : IN, ndarray (..., width), float32
        `width` is a multiple of LANES.
    i, a : int
        A row of each.
    drift : IN, ndarray (width,), float32
    reach : float32
    out : OUT, ndarray (width,), int32
    """
    signature = types.Tuple([types.intp, types.float32])(
        lower, types.int64, drift, half_gaps, types.int64, types.float32, out
    )

    def codegen(context, builder, sig, args):
        lower, drift, half_gaps, out = _arrays(context, builder, sig, args)
        _, i, _, _, a, reach, _ = args
        starts = _row(builder, lower, i), _row(builder, drift), _row(builder, half_gaps, a)
        n_vectors, out = _n_vectors(builder, drift), _row(builder, out)
        mask = ir.VectorType(ir.IntType(1), LANES)
        compress = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [_IVECTOR, _INT.as_pointer(), mask]),
            f"llvm.masked.compressstore.v{LANES}i32",
        )
        smallest = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_FLOAT, [_VECTOR]),
            f"llvm.vector.reduce.fmin.v{LANES}f32",
        )
        infinities = ir.Constant(_VECTOR, [float("inf")] * LANES)
        lanes = ir.Constant(_IVECTOR, list(range(LANES)))
        lowest = cgutils.alloca_once_value(builder, infinities)
        count = cgutils.alloca_once_value(builder, _constant(0))
        limit = _splat(builder, reach, _VECTOR)
        with cgutils.for_range(builder, n_vectors) as loop:
            at = builder.mul(loop.index, _constant(_BYTES))
            stored, drifted, gap = (_load(builder, start, at, _VECTOR, 4) for start in starts)
            bound = builder.fsub(stored, drifted)
            bound = builder.select(builder.fcmp_ordered(">", gap, bound), gap, bound)
            near = builder.fcmp_unordered(">=", limit, bound)
            low = builder.load(lowest)
            others = builder.select(near, infinities, bound)
            builder.store(
                builder.select(builder.fcmp_ordered("<", others, low), others, low), lowest
            )
            bits = builder.bitcast(near, ir.IntType(LANES))
            with builder.if_then(builder.icmp_unsigned("!=", bits, bits.type(0)), likely=False):
                base = builder.mul(loop.index, _constant(LANES))
                numbers = builder.add(_splat(builder, builder.trunc(base, _INT), _IVECTOR), lanes)
                place = builder.add(out, builder.mul(builder.load(count), _constant(4)))
                builder.call(compress, [numbers, builder.inttoptr(place, _INT.as_pointer()), near])
                more = builder.zext(builder.ctpop(bits), _ADDRESS)
                builder.store(builder.add(builder.load(count), more), count)
        minimum = builder.call(smallest, [builder.load(lowest)], fastmath=("nnan",))
        return context.make_tuple(builder, sig.return_type, [builder.load(count), minimum])

    return signature, codegen


@intrinsic
def store_bounds(typingctx, scores, p, drift, lower, i, lowest, factor, shrink, tiny):
    """Store the lower bounds that all scores of a row give, as :func:`scores.stored_bound` does.

    Returns the best score, the second best, and the number of the best.

    Parameters
    ----------
    scores : IN, ndarray (block, width), float32
        `width` is a multiple of LANES.
    p, i : int
        The row's place in `scores`, and in `lower`.
    drift : IN, ndarray (width,), float32
    lower : OUT, ndarray (n, width), float32
    lowest, factor : float32
        `low_square` and `factor` of :func:`scores.below`.
    shrink, tiny : float32
        One minus the relative padding, and the absolute padding.
    """
    signature = types.Tuple([types.float32, types.float32, types.int64])(
        scores, types.int64, drift, lower, types.int64, *[types.float32] * 4
    )

    def codegen(context, builder, sig, args):
        scores, drift, lower = _arrays(context, builder, sig, args)
        p, i, scalars = args[1], args[4], args[5:]
        starts = _row(builder, scores, p), _row(builder, drift)
        stored, n_vectors = _row(builder, lower, i), _n_vectors(builder, drift)
        lowest, factor, shrink, tiny = (_splat(builder, x, _VECTOR) for x in scalars)
        zero, two = ir.Constant(_VECTOR, [0.0] * LANES), ir.Constant(_VECTOR, [2.0] * LANES)
        worst = ir.Constant(_VECTOR, [LOWEST_SCORE] * LANES)
        # The best score, the second best and the vector of the best, lane by lane.
        lanes = [
            cgutils.alloca_once_value(builder, value)
            for value in (worst, worst, ir.Constant(_IVECTOR, [0] * LANES))
        ]
        root = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.sqrt.v{LANES}f32"
        )

        def positive(x):
            # An ordered comparison is also false for NaN.
            return builder.select(builder.fcmp_ordered(">", x, zero), x, zero)

        def shrunk(x):
            return positive(builder.fsub(builder.fmul(x, shrink), tiny))

        with cgutils.for_range(builder, n_vectors) as loop:
            at = builder.mul(loop.index, _constant(_BYTES))
            score, drifted = (_load(builder, start, at, _VECTOR, 4) for start in starts)
            square = positive(builder.fsub(lowest, builder.fmul(two, score)))
            bound = shrunk(builder.fmul(builder.call(root, [square]), factor))
            pointer = builder.inttoptr(builder.add(stored, at), _VECTOR.as_pointer())
            builder.store(shrunk(builder.fadd(bound, drifted)), pointer).align = 4
            number = _splat(builder, builder.trunc(loop.index, _INT), _IVECTOR)
            old = [builder.load(place) for place in lanes]
            for value, place in zip(_merge(builder, old, (score, worst, number)), lanes):
                builder.store(value, place)
        *best, number = emit_reduction(builder, *(builder.load(place) for place in lanes))
        found = [*best, builder.zext(number, _ADDRESS)]
        return context.make_tuple(builder, sig.return_type, found)

    return signature, codegen
