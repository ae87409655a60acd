"""The microkernel with a row in every lane, and PANEL centres at a time.

Numba has no vector types; :func:`scan_panel` emits LLVM IR with those of the processor.  It is the
inner loop of a matrix multiplication, but instead of storing the scores it keeps, lane by lane, the
two largest and where the largest is.  All layouts are float32 (or int32) and aligned to 64 bytes:

* a group is GROUP = VECTORS * LANES rows, feature-major: ``y[f, row]``;
* a panel is PANEL centres, feature-major: ``panel[f, centre]``;
* ``best, second, which`` have GROUP values each: ``which`` is the panel of the best.

The centre within its panel is written into the last BITS bits of its score.  That takes one
operation instead of a second vector of indices; the certificate includes the error.
"""

from __future__ import annotations

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = [
    "BITS",
    "DEEP",
    "GROUP",
    "LANES",
    "LOWEST_SCORE",
    "PANEL",
    "certify_vector",
    "depth_of",
    "panel_scores",
    "scan_panel",
]


def _block() -> tuple[int, int, int]:
    """Return (LANES, PANEL, BITS): with VECTORS, what fills the registers without spilling."""
    features = get_host_cpu_features()
    if features.get("avx512f"):
        return 16, 8, 3  # 24 accumulators of 32 registers
    if features.get("avx"):
        return 8, 4, 2  # 12 of 16
    return 4, 8, 3  # NEON: 24 of 32


LANES, PANEL, BITS = _block()
VECTORS = 3
# With more than DEEP features, sums of DEPTH products are added up: the error of a sum grows with
# the number of additions that a term goes through.
DEPTH, DEEP = 128, 256
GROUP = VECTORS * LANES

# Lower than every score: it pads panels behind the last centre.
LOWEST_SCORE = -3e38

FLOAT, INT, ADDRESS = ir.FloatType(), ir.IntType(32), ir.IntType(64)
VECTOR, IVECTOR = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)
BYTES = 4 * LANES


def load(builder, address, offset, kind, align):
    """Return the value at an address."""
    pointer = builder.inttoptr(
        builder.add(address, ir.Constant(ADDRESS, offset)), kind.as_pointer()
    )
    value = builder.load(pointer)
    value.align = align
    return value


def store(builder, value, address, offset):
    """Store a vector at an address."""
    pointer = builder.add(address, ir.Constant(ADDRESS, offset))
    builder.store(value, builder.inttoptr(pointer, value.type.as_pointer())).align = BYTES


def splat(builder, scalar, kind):
    """Return a vector of equal lanes."""
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, scalar, ir.Constant(INT, 0))
    lanes = ir.VectorType(INT, kind.count)
    return builder.shuffle_vector(one, nothing, ir.Constant(lanes, [0] * kind.count))


def _extreme(builder, name, a, b):
    # One instruction, where a comparison and a selection may become two.  A NaN only comes from
    # rows that are too far away to be certified, for which any result will do.
    kind = ir.FunctionType(VECTOR, [VECTOR] * 2)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")
    return builder.call(function, [a, b], fastmath=("nnan", "nsz"))


def larger(builder, a, b):
    """Return the larger of each lane."""
    return _extreme(builder, "maxnum", a, b)


def smaller(builder, a, b):
    """Return the smaller of each lane."""
    return _extreme(builder, "minnum", a, b)


def fold(builder, scores, width, number, is_first, best, second, which):
    """Fold vectors of scores, one per centre, into the best two; return the new three.

    `width`, a power of two, is how many centres a `which` stands for.  If `is_first` is true, the
    old values are ignored.  The scores are compared in a tree, not in a chain, so that latencies
    overlap.
    """
    lowest = ir.Constant(VECTOR, [LOWEST_SCORE] * LANES)
    before = builder.select(is_first, lowest, best)
    mask = ir.Constant(IVECTOR, [-width] * LANES)
    indexed = []
    for r, score in enumerate(scores):
        score_bits = builder.and_(builder.bitcast(score, IVECTOR), mask)
        index = ir.Constant(IVECTOR, [r] * LANES)
        indexed.append(builder.bitcast(builder.or_(score_bits, index), VECTOR))
    pairs = [
        (larger(builder, a, b), smaller(builder, a, b)) for a, b in zip(indexed[::2], indexed[1::2])
    ]
    pairs.append((before, builder.select(is_first, lowest, second)))
    while len(pairs) > 1:
        (a, a_second), (b, b_second) = pairs.pop(0), pairs.pop(0)
        loser = smaller(builder, a, b)
        runner_up = larger(builder, a_second, b_second)
        pairs.append((larger(builder, a, b), larger(builder, loser, runner_up)))
    best, second = pairs[0]
    changed = builder.fcmp_unordered("!=", best, before)
    return best, second, builder.select(changed, splat(builder, number, IVECTOR), which)


def _multiply(builder, y, panel, first, end, total, width):
    """Add the products of features `first` to `end` to the totals."""
    muladd = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(VECTOR, [VECTOR] * 3), f"llvm.fmuladd.v{LANES}f32"
    )
    with cgutils.for_range(builder, end, start=first) as loop:
        points = builder.add(y, builder.mul(loop.index, ir.Constant(ADDRESS, 4 * GROUP)))
        column = builder.add(panel, builder.mul(loop.index, ir.Constant(ADDRESS, 4 * PANEL)))
        x = [load(builder, points, BYTES * v, VECTOR, BYTES) for v in range(VECTORS)]
        for r in range(width):
            c = splat(builder, load(builder, column, 4 * r, FLOAT, 4), VECTOR)
            for v in range(VECTORS):
                value = builder.call(muladd, [x[v], c, builder.load(total[r, v])])
                builder.store(value, total[r, v])


def panel_scores(builder, y, n_features, panel, half_squares, deep, width=PANEL):
    """Return where the scores of a group with a panel are: a vector for (centre, vector).

    The arguments are those of :func:`scan_panel`; `deep` is whether to add up DEPTH features at a
    time, `width` how many centres of the panel are scored.
    """
    places = [(r, v) for r in range(width) for v in range(VECTORS)]
    total, part = ({p: cgutils.alloca_once(builder, VECTOR) for p in places} for _ in range(2))
    for r in range(width):
        start = splat(builder, load(builder, half_squares, 4 * r, FLOAT, 4), VECTOR)
        for v in range(VECTORS):
            builder.store(start, total[r, v])
    zero, depth = ir.Constant(ADDRESS, 0), ir.Constant(ADDRESS, DEPTH)
    if not deep:
        _multiply(builder, y, panel, zero, n_features, total, width)
        return total
    with cgutils.for_range_slice(builder, zero, n_features, depth) as (first, _):
        for p in places:
            builder.store(ir.Constant(VECTOR, [0.0] * LANES), part[p])
        end = builder.add(first, depth)
        end = builder.select(builder.icmp_signed("<", end, n_features), end, n_features)
        _multiply(builder, y, panel, first, end, part, width)
        for p in places:
            both = builder.fadd(builder.load(total[p]), builder.load(part[p]))
            builder.store(both, total[p])
    return total


def scan_panel(builder, deep, y, n_features, panel, half_squares, best, second, which, number):
    """Emit the scan of a group with a panel, folding the scores into the group's best two.

    All arguments but `deep` (add up DEPTH features at a time) are addresses or counts (intp): the
    group; its features; the panel; its initial scores (minus half the squared norms); the best two
    and the panel of the best; and the panel's number.  Number 0 ignores the old best two.  If the
    initial scores show that the second half of a panel is padding, only the first half is scored,
    and so on.
    """
    is_first = builder.icmp_signed("==", number, ir.Constant(ADDRESS, 0))
    name = builder.trunc(number, INT)

    def look_at(width):
        total = panel_scores(builder, y, n_features, panel, half_squares, deep, width)
        for v in range(VECTORS):
            at = BYTES * v
            old = (
                load(builder, best, at, VECTOR, BYTES),
                load(builder, second, at, VECTOR, BYTES),
                load(builder, which, at, IVECTOR, BYTES),
            )
            scores = [builder.load(total[r, v]) for r in range(width)]
            new = fold(builder, scores, PANEL, name, is_first, *old)
            for value, address in zip(new, (best, second, which)):
                store(builder, value, address, at)

    def look_at_part(width):
        if width == 2:
            look_at(width)
            return
        middle = load(builder, half_squares, 4 * (width // 2), FLOAT, 4)
        empty = builder.fcmp_ordered("==", middle, ir.Constant(FLOAT, LOWEST_SCORE))
        with builder.if_else(empty) as (half, full):
            with half:
                look_at_part(width // 2)
            with full:
                look_at(width)

    look_at_part(PANEL)


def depth_of(n_features: int) -> int:
    """Return the largest number of additions that a product goes through in the scan of a panel."""
    return n_features if n_features <= DEEP else DEPTH + -(-n_features // DEPTH)


def address_of(builder, array, index):
    """Return the address of an entry, of 4 bytes, of a contiguous array as compiled code has it."""
    start = builder.ptrtoint(builder.extract_value(array, 4), ADDRESS)
    return builder.add(start, builder.mul(index, ir.Constant(ADDRESS, 4)))


@intrinsic
def certify_vector(
    typingctx, high, low, which, width, squares, residuals, line, far, labels, first, end
):
    """Write the labels of a vector of scanned rows; return which are ambiguous, a bit each.

    A row is certified if ``high - low > 2 (a + b R**2 + c r**2)``, as in
    :func:`lloydia.backends.cpu.scan.nearest.certify`.

    Parameters
    ----------
    high, low, which, squares, residuals : IN
        Arrays; the rows are those from `first` on, up to `end`.
    width : int
        A power of two: the centres that a `which` stands for.
    line, far : float32
    labels : OUT
    """
    signature = types.int64(
        high, low, which, types.intp, squares, residuals, line, far, labels, *[types.intp] * 2
    )

    def codegen(context, builder, sig, args):
        width, line, far, first, end = (args[i] for i in (3, 6, 7, 9, 10))
        high, low, which, squares, residuals, labels = (
            address_of(builder, args[i], first) for i in (0, 1, 2, 4, 5, 8)
        )
        count = builder.sub(end, first)
        best = load(builder, high, 0, VECTOR, BYTES)
        gap = builder.fsub(best, load(builder, low, 0, VECTOR, BYTES))
        square = load(builder, squares, 0, VECTOR, BYTES)
        residual = load(builder, residuals, 0, VECTOR, BYTES)
        a, b, c = (splat(builder, builder.extract_value(line, i), VECTOR) for i in range(3))
        error = builder.fadd(a, builder.fadd(builder.fmul(b, square), builder.fmul(c, residual)))
        certified = builder.fcmp_ordered(">", gap, builder.fadd(error, error))
        near = builder.fcmp_ordered("<", square, splat(builder, far, VECTOR))
        lanes = ir.Constant(ir.VectorType(ADDRESS, LANES), list(range(LANES)))
        there = builder.icmp_signed("<", lanes, splat(builder, count, lanes.type))
        ambiguous = builder.and_(there, builder.not_(builder.and_(certified, near)))
        width = splat(builder, builder.trunc(width, INT), IVECTOR)
        names = builder.bitcast(best, IVECTOR)
        mask = builder.sub(width, ir.Constant(IVECTOR, [1] * LANES))
        first = builder.mul(load(builder, which, 0, IVECTOR, BYTES), width)
        pointer = builder.inttoptr(labels, IVECTOR.as_pointer())
        masked_store = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [IVECTOR, pointer.type, INT, there.type]),
            f"llvm.masked.store.v{LANES}i32.p0",
        )
        builder.call(
            masked_store, [builder.add(first, builder.and_(names, mask)), pointer, INT(4), there]
        )
        bits = builder.bitcast(ambiguous, ir.IntType(LANES))
        return builder.zext(bits, ADDRESS)

    return signature, codegen
