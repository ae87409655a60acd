"""The silhouette of dense rows in Numba, with explicit SIMD vectors over panels of rows.

The rows are sorted by cluster and stored in tiles of ``TILE`` rows.  A tile consists of panels of
``LANES`` rows, and a panel is stored feature by feature: ``tiles[t, p, f, l]`` is feature f of row
``t * TILE + p * LANES + l``.  One load reads a feature of eight rows, and each panel is read
contiguously.

This module is imported late, because importing Numba takes longer than importing the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lloydia.backends.cpu.runtime.compiled import kernel

__all__ = ["LANES", "TILE", "silhouette_tile"]

TILE = 64  # rows per tile, the unit of work
LANES = 8  # rows per panel: a vector of eight float64
_QUERIES = 4  # rows at a time: their sums stay in registers, even with AVX2 (two per vector)
_INT32, _INT64, _DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)


def _load(builder: Any, pointer: Any, offset: Any, kind: Any) -> Any:
    address = builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer())
    value = builder.load(address)
    value.align = 8
    return value


def _splat(builder: Any, scalar: Any) -> Any:
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, scalar, ir.Constant(_INT32, 0))
    lanes = ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES)
    return builder.shuffle_vector(first, nothing, lanes)


@intrinsic
def _squared_distances(
    typing_context: Any, panel: Any, queries: Any, out: Any, column: Any
) -> tuple[Any, Any]:
    """``out[r, column + l] = sum_f (panel[f, l] - queries[r, f])^2``, f in order.

    `panel` (d, LANES), `queries` (4, d) and `out` (4, TILE) are C-contiguous float64.
    """
    signature = types.void(panel, queries, out, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:3], arguments[:3])
        ]
        x, q, result = (array.data for array in arrays)
        d = builder.extract_value(arrays[0].shape, 0)
        number = lambda value: ir.Constant(_INT64, value)  # noqa: E731
        fma_type = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fma = cgutils.get_or_insert_function(builder.module, fma_type, f"llvm.fmuladd.v{LANES}f64")
        sums = [cgutils.alloca_once(builder, _VECTOR) for _ in range(_QUERIES)]
        for total in sums:
            builder.store(ir.Constant(_VECTOR, [0.0] * LANES), total)
        with cgutils.for_range(builder, d) as loop:
            features = _load(builder, x, builder.mul(loop.index, number(LANES)), _VECTOR)
            for r, total in enumerate(sums):
                at = builder.add(builder.mul(d, number(r)), loop.index)
                gap = builder.fsub(features, _splat(builder, _load(builder, q, at, _DOUBLE)))
                builder.store(builder.call(fma, [gap, gap, builder.load(total)]), total)
        for r, total in enumerate(sums):
            at = builder.add(arguments[3], number(TILE * r))
            address = builder.bitcast(builder.gep(result, [at]), _VECTOR.as_pointer())
            builder.store(builder.load(total), address).align = 8
        return context.get_dummy_value()

    return signature, codegen


# Reassociation allows vector sums; the order of a sum depends only on the number of its terms.
@kernel(fastmath={"reassoc", "nsz"})
def _add_distances(squares: Any, start: int, bounds: Any, cluster: int, sums: Any) -> None:
    """Add the distances to a tile's rows to the sums of their clusters.

    `squares` (4, TILE): squared distances to the rows from `start` on; row `start` belongs to
    `cluster`.  `sums` (4, k): the sum of the distances to the rows of each cluster.
    """
    stop = min(start + squares.shape[1], bounds[-1])
    begin = start
    while begin < stop:
        end = min(stop, bounds[cluster + 1])
        for r in range(squares.shape[0]):
            total = 0.0
            for lane in range(begin - start, end - start):
                total += np.sqrt(squares[r, lane])
            sums[r, cluster] += total
        begin = end
        cluster += 1


@kernel
def silhouette_tile(tiles: Any, tile: int, bounds: Any, first: Any, out: Any) -> None:
    """Compute the silhouettes of the rows of one tile.

    Parameters
    ----------
    tiles : ndarray of shape (n_tiles, TILE // LANES, d, LANES), float64
        The rows sorted by cluster, then zeros up to the end of the last tile.
    tile : int
        The index of the tile.
    bounds : ndarray of shape (k + 1,), intp
        The rows of cluster j are ``bounds[j]`` to ``bounds[j + 1] - 1``.
    first : ndarray of shape (n_tiles,), intp
        The cluster of each tile's first row.
    out : ndarray of shape (n,), float64
        The silhouettes of all rows; the function writes those of this tile.
    """
    n_tiles, n_panels, d, lanes = tiles.shape
    rows = np.empty((TILE, d))
    for i in range(TILE):
        for f in range(d):
            rows[i, f] = tiles[tile, i // lanes, f, i % lanes]
    sums = np.zeros((TILE, bounds.size - 1))
    squares = np.empty((_QUERIES, TILE))
    for t in range(n_tiles):
        for r in range(0, TILE, _QUERIES):
            for p in range(n_panels):
                _squared_distances(  # type: ignore[call-arg]  # Numba passes the typing context
                    tiles[t, p], rows[r : r + _QUERIES], squares, p * lanes
                )
            _add_distances(squares, t * TILE, bounds, first[t], sums[r : r + _QUERIES])
    own = first[tile]
    for i in range(tile * TILE, min((tile + 1) * TILE, bounds[-1])):
        while i >= bounds[own + 1]:
            own += 1
        out[i] = coefficient(sums[i - tile * TILE], bounds, own)


@kernel
def coefficient(sums: Any, bounds: Any, own: int) -> float:
    """Return ``(b - a) / max(a, b)`` for a row of cluster `own`, given its distance sums (k,)."""
    size = bounds[own + 1] - bounds[own]
    if size == 1:
        return 0.0
    a = sums[own] / (size - 1)
    b = np.inf
    for j in range(sums.size):
        if j != own:
            b = min(b, sums[j] / (bounds[j + 1] - bounds[j]))
    larger = max(a, b)
    return (b - a) / larger if larger > 0.0 else 0.0
