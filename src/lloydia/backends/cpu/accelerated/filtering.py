"""The search of :mod:`lloydia.algorithms.filtering`: from the roots down to tiles of rows.

Kanungo et al. 2002, "An efficient k-means clustering algorithm: analysis and implementation".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lloydia.algorithms.filtering import FAN, MIXED, TILE
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, maximum, minimum, subroutine
from lloydia.backends.cpu.simd.candidates import (
    WIDTH,
    differing,
    lowest_bit,
    nearest,
    prune_candidates,
)
from lloydia.backends.cpu.update.sums import accumulate

__all__ = ["labels_by_place", "labels_by_row", "scratch_for", "search"]


# Rows that are moved together.
BATCH = 512


@subroutine(**LEAN)
def move_node(sums, node, old, new, totals):
    """Move what a node adds from one cluster (-1: none) to another."""
    for limb in range(sums.shape[1]):
        for f in range(sums.shape[2]):
            totals[limb, new, f] += sums[node, limb, f]
            if old >= 0:
                totals[limb, old, f] -= sums[node, limb, f]


@subroutine(**LEAN)
def children(level, node, firsts, levels):
    """Return the range of the nodes below a node."""
    start = firsts[level - 1] + (node - firsts[level]) * FAN
    return start, minimum(start + FAN, firsts[level - 1] + levels[level - 1])


@subroutine(**LEAN)
def n_rows(level, node, firsts, n):
    """Return how many of the n rows a node has."""
    rows = TILE
    for _ in range(level):
        rows *= FAN
    return minimum(rows, n - (node - firsts[level]) * rows)


@subroutine(**LEAN)
def pass_down(owner, level, node, firsts, levels):
    """Give the children of an owned node their owner."""
    if owner[node] != MIXED:
        start, stop = children(level, node, firsts, levels)
        for child in range(start, stop):
            owner[child] = owner[node]


@subroutine(**LEAN)
def take_up(owner, level, node, firsts, levels):
    """Give a node the owner that its children have in common."""
    start, stop = children(level, node, firsts, levels)
    common = owner[start]
    for child in range(start + 1, stop):
        common = common if owner[child] == common else MIXED
    owner[node] = common


@kernel(**LEAN)
def labels_by_row(levels, owner, tile_labels, order, start, stop, labels):
    """Write the labels of the rows at places `start` to `stop` of the curve to their rows."""
    for at in range(start, stop):
        first, place, label = 0, at // TILE, tile_labels[at]
        for level in range(len(levels)):
            if owner[first + place] != MIXED:
                label = owner[first + place]
            first += levels[level]
            place //= FAN
        labels[order[at]] = label


@kernel(**LEAN)
def labels_by_place(levels, firsts, order, labels, owner, tile_labels):
    """Set owners and labels of the tiles from labels by row, of another algorithm."""
    n = len(order)
    for tile in range(levels[0]):
        lowest = highest = labels[order[tile * TILE]]
        for p in range(TILE):
            label = labels[order[minimum(tile * TILE + p, n - 1)]]
            tile_labels[tile * TILE + p] = label
            lowest, highest = minimum(lowest, label), maximum(highest, label)
        owner[tile] = lowest if lowest == highest else MIXED
    for level in range(1, len(levels)):
        for node in range(firsts[level], firsts[level] + levels[level]):
            take_up(owner, level, node, firsts, levels)


@subroutine(**LEAN)
def assign_tile(tile, n, fresh, owner, tile_labels):
    """Give the rows of a tile their fresh labels, and the tile its owner.

    Returns a bit for each row that changed its label, up to the n-th row; `fresh` then holds the
    old labels.
    """
    first = tile * TILE
    if owner[tile] != MIXED:
        for p in range(TILE):
            tile_labels[first + p] = owner[tile]
    changed = differing(tile_labels.ctypes.data + 4 * first, fresh.ctypes.data)
    if changed == 0:
        return changed
    lowest = highest = fresh[0]
    for p in range(TILE):
        lowest, highest = minimum(lowest, fresh[p]), maximum(highest, fresh[p])
        tile_labels[first + p], fresh[p] = fresh[p], tile_labels[first + p]
    owner[tile] = lowest if lowest == highest else MIXED
    if n - first < TILE:
        changed &= (np.uint64(1) << np.uint64(n - first)) - np.uint64(1)
    return changed


@subroutine(**LEAN)
def list_updates(changed, tile, x, weights, old, tile_labels, updates, count):
    """Append the changed rows of a tile to `updates`; return the length of the list.

    `old`, IN, are the labels that its rows had.
    """
    rows, row_weights, olds, news = updates
    while changed != 0:
        p = lowest_bit(changed)
        changed &= changed - np.uint64(1)
        for f in range(x.shape[1]):
            rows[count, f] = x[tile, f, p]
        if len(weights):
            row_weights[count] = weights[tile * TILE + p]
        olds[count] = old[p]
        news[count] = tile_labels[tile * TILE + p]
        count += 1
    return count


@subroutine(**LEAN)
def move_rows(updates, count, weighted, grid, totals, touched):
    """Move the listed rows from their old clusters to the new ones; return how many."""
    rows, weights, old, new = updates
    w = weights if weighted else weights[:0]
    return accumulate(rows, EVERY, 0, count, w, grid, new, old, totals, touched)


@subroutine(**LEAN)
def take(level, node, new, firsts, n, owner, node_sums, totals, touched, last):
    """Give all rows of an owned node to another cluster; return how many."""
    if not last:
        move_node(node_sums, node, owner[node], new, totals)
        touched[new] = True
        if owner[node] >= 0:
            touched[owner[node]] = True
    owner[node] = new
    return n_rows(level, node, firsts, n)


@subroutine(**LEAN)
def list_all(centers, columns, names):
    """Write the list of all centres, feature-major."""
    for j in range(len(centers)):
        names[j] = j
        for f in range(centers.shape[1]):
            columns[f, j] = centers[j, f]


def scratch_for(k: int, d: int, dtype: np.dtype, n_levels: int) -> tuple[Any, ...]:
    """Return the scratch of :func:`search`.

    It is lists of candidates with their names and lengths, for each level and, last, of all
    centres; distances to them; the labels of a tile; rows that change, with their weights and their
    old and new clusters, which are moved many at a time; and the present node of each level.
    """
    pitch = k + WIDTH
    updates = (
        np.empty((BATCH + TILE, d), dtype),
        np.empty(BATCH + TILE),
        np.empty(BATCH + TILE, np.int32),
        np.empty(BATCH + TILE, np.int32),
    )
    lists = np.empty((n_levels + 1, d, pitch)), np.empty((n_levels + 1, pitch), np.int32)
    return (
        *lists, np.zeros(n_levels + 1, np.int64), np.empty(pitch), np.empty(TILE, np.int32),
        updates, np.zeros(n_levels, np.int64),
    )  # fmt: skip


@kernel(**LEAN)
def search(
    axes, start, stop, levels, firsts, low, high, x, weights, node_sums, n, centers, owner,
    tile_labels, grid, totals, touched, last, scratch,
):  # fmt: skip
    """Assign the rows of the roots `start` to `stop`.

    Parameters
    ----------
    axes : tuple of d numbers
        See :mod:`simd.candidates`.
    levels, firsts, low, high, x, weights, node_sums : IN
        Those of :class:`lloydia.backends.cpu.accelerated.tiles.Tiles`.
    n : int
        Rows.
    centers : IN, ndarray (k, d), float64
    owner, tile_labels : IN/OUT
        Those of :class:`lloydia.algorithms.filtering.Filtering`.
    grid : IN; totals, touched : IN/OUT
        The grid, the sums and the flags of :func:`lloydia.backends.cpu.update.sums.accumulate`.
    last : bool
        Whether the sums stay as they are.
    scratch : tuple
        From :func:`scratch_for`.

    Returns
    -------
    changed, evaluated : int
    """
    (k, d), top = centers.shape, len(levels) - 1
    lists, names, counts, distance, fresh, updates, at = scratch
    pitch = len(distance)
    list_all(centers, lists[top + 1], names[top + 1])
    counts[top + 1] = k
    # Bytes of a row, of a list, and of its names.  Addresses, because views would count references.
    side, list_size, name_size = d * x.itemsize, d * pitch * 8, pitch * 4
    n_waiting = 0
    changed = evaluated = 0
    level = top
    at[top] = firsts[top] + start
    while at[top] < firsts[top] + stop:
        node, before = at[level], counts[level + 1]
        # Kanungo et al. 2002 rule out a centre if no point of the box is nearer to it than to z.
        left = prune_candidates(
            axes, x[0, 0, 0], low.ctypes.data + node * side, high.ctypes.data + node * side,
            lists.ctypes.data + (level + 1) * list_size, pitch * 8,
            names.ctypes.data + (level + 1) * name_size, before, distance.ctypes.data,
            lists.ctypes.data + level * list_size, names.ctypes.data + level * name_size,
        )  # fmt: skip
        evaluated += before
        counts[level] = left
        if left == 1 and owner[node] != MIXED:
            new = names[level, 0]
            if owner[node] != new:
                changed += take(
                    level, node, new, firsts, n, owner, node_sums, totals, touched, last
                )
        elif level > 0:
            pass_down(owner, level, node, firsts, levels)
            level -= 1
            at[level] = children(level + 1, node, firsts, levels)[0]
            continue
        else:
            nearest(
                axes, x[0, 0, 0], x.ctypes.data + node * TILE * side, lists.ctypes.data,
                pitch * 8, names.ctypes.data, left, fresh.ctypes.data,
            )  # fmt: skip
            evaluated += left * TILE
            before = n_waiting
            joins = owner[node] == -1 and not last
            if joins:
                # In the first assignment all rows join one cluster, then others leave it.
                new = fresh[TILE // 2]
                changed += take(0, node, new, firsts, n, owner, node_sums, totals, touched, last)
            moved = assign_tile(node, n, fresh, owner, tile_labels)
            if moved != 0 and not last:
                n_waiting = list_updates(
                    moved, node, x, weights, fresh, tile_labels, updates, n_waiting
                )
                changed -= n_waiting - before if joins else 0
            if n_waiting >= BATCH:
                changed += move_rows(updates, n_waiting, len(weights) > 0, grid, totals, touched)
                n_waiting = 0
        at[level] += 1
        while level < top and at[level] == children(level + 1, at[level + 1], firsts, levels)[1]:
            level += 1
            take_up(owner, level, at[level], firsts, levels)
            at[level] += 1
    changed += move_rows(updates, n_waiting, len(weights) > 0, grid, totals, touched)
    return changed, evaluated
