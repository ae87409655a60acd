"""The distance of a row to one centre in float32, as a sum of squared differences.

The features are in explicit vectors; :mod:`lloydia.algorithms.geometry` derives the error.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from lloydia.backends.cpu.runtime.compiled import OVERLOAD
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import LANES

__all__ = ["difference"]

_FLOAT, _INT = ir.FloatType(), ir.IntType(32)
_VECTOR, _IVECTOR = ir.VectorType(_FLOAT, LANES), ir.VectorType(_INT, LANES)


def _splat(builder, scalar, kind):
    undefined = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(_IVECTOR, [0] * LANES))


@intrinsic
def squared_differences(typingctx, row, center, n_features, unit):
    """Return the float32 sum of ``(row * unit - center)**2``.

    Both are addresses of numbers of the type of `unit`, float32 or float64.
    """
    signature = types.float32(types.intp, types.intp, types.intp, unit)

    def codegen(context, builder, sig, args):
        row, center, d, unit = args
        real = _FLOAT if sig.args[3] == types.float32 else ir.DoubleType()
        size, letter = (4, "f32") if real is _FLOAT else (8, "f64")
        reals, mask = ir.VectorType(real, LANES), ir.VectorType(ir.IntType(1), LANES)
        declare = cgutils.get_or_insert_function
        masked = declare(
            builder.module,
            ir.FunctionType(reals, [reals.as_pointer(), _INT, mask, reals]),
            f"llvm.masked.load.v{LANES}{letter}.p0",
        )
        muladd = declare(
            builder.module,
            ir.FunctionType(_VECTOR, [_VECTOR] * 3),
            f"llvm.fmuladd.v{LANES}f32",
        )
        reduce_add = declare(
            builder.module,
            ir.FunctionType(_FLOAT, [_FLOAT, _VECTOR]),
            f"llvm.vector.reduce.fadd.v{LANES}f32",
        )
        units = _splat(builder, unit, reals)
        zero, lanes = ir.Constant(reals, None), ir.Constant(_IVECTOR, list(range(LANES)))
        total = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, None))
        width = ir.Constant(d.type, LANES)
        n_vectors = builder.udiv(builder.add(d, ir.Constant(d.type, LANES - 1)), width)
        with cgutils.for_range(builder, n_vectors) as loop:
            at = builder.mul(loop.index, width)
            left = builder.trunc(builder.sub(d, at), _INT)
            there = builder.icmp_signed("<", lanes, _splat(builder, left, _IVECTOR))
            offset = builder.mul(at, ir.Constant(d.type, size))
            x, c = (
                builder.call(
                    masked,
                    [
                        builder.inttoptr(builder.add(start, offset), reals.as_pointer()),
                        ir.Constant(_INT, size),
                        there,
                        zero,
                    ],
                )
                for start in (row, center)
            )
            y = builder.fsub(builder.fmul(x, units), c)
            if real is not _FLOAT:
                y = builder.fptrunc(y, _VECTOR)
            builder.store(builder.call(muladd, [y, y, builder.load(total)]), total)
        return builder.call(
            reduce_add,
            [ir.Constant(_FLOAT, 0.0), builder.load(total)],
            fastmath=("reassoc",),
        )

    return signature, codegen


def difference(X, i, centers, j, unit):
    """Return the squared distance, in the unit, of row `i` of `X` to row `j` of `centers`.

    The centres are of X's type and already in the unit.
    """
    raise NotImplementedError("compiled code only")


@overload(difference, jit_options=OVERLOAD)
def _difference(X, i, centers, j, unit):
    if isinstance(X, types.Array) and X.layout != "C":

        def strided(X, i, centers, j, unit):
            total = np.float32(0.0)
            for f in range(centers.shape[1]):
                y = np.float32(X[i, f] * X.dtype.type(unit) - centers[j, f])
                total += y * y
            return total

        return strided

    if isinstance(X, types.Array):

        def dense(X, i, centers, j, unit):
            d, size = centers.shape[1], centers.itemsize
            row, center = X.ctypes.data + i * d * size, centers.ctypes.data + j * d * size
            return squared_differences(row, center, d, unit)

        return dense

    def sparse(X, i, centers, j, unit):
        data, indices, indptr = X
        total = 0.0
        at, stop = indptr[i], indptr[i + 1]
        for f in range(centers.shape[1]):
            y = -np.float64(centers[j, f])
            if at < stop and indices[at] == f:
                y += np.float64(data[at]) * unit
                at += 1
            total += y * y
        return np.float32(total)

    return sparse
