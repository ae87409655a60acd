"""The search of :mod:`lloydia.algorithms.filtering`: from the roots down to tiles of rows.

Kanungo et al. 2002, "An efficient k-means clustering algorithm: analysis and implementation".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.filtering import FAN, MIXED, TILE, Filtering
from lloydia.backends.cpu.accelerated.tiles import Tiles
from lloydia.backends.cpu.runtime.compiled import (
    LEAN,
    kernel,
    local,
    maximum,
    minimum,
    subroutine,
)
from lloydia.backends.cpu.runtime.counting import upto
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

# More levels than there can be, and one.
LEVELS = 20

LOG_FAN = FAN.bit_length() - 1


def labels_by_row(tiles: Tiles, b: Filtering, start: int, stop: int, labels: NDArray) -> None:
    """Write the labels of the rows at places `start` to `stop` of the curve to their rows."""
    first, after, size = start // TILE, -(-stop // TILE), 1
    owners = b.owner[first:after].copy()
    for node in tiles.firsts[1:]:
        size *= FAN
        nodes = b.owner[node + first // size : node - -after // size]
        above = nodes.repeat(size)[first % size :][: after - first]
        np.copyto(owners, above, where=above != MIXED)
    own = owners.repeat(TILE)[start % TILE :][: stop - start]
    np.copyto(own, b.tile_labels[start:stop], where=own == MIXED)
    labels[tiles.order[start:stop]] = own


def labels_by_place(tiles: Tiles, labels: NDArray[np.int32], b: Filtering) -> None:
    """Set owners and labels of the tiles from labels by row, of another algorithm."""
    n, owner, levels = len(labels), b.owner, tiles.levels
    b.tile_labels[:n] = labels[tiles.order]
    b.tile_labels[n:] = b.tile_labels[n - 1]
    by_tile = b.tile_labels.reshape(-1, TILE)
    owner[: levels[0]] = common(by_tile.min(axis=1), by_tile.max(axis=1))
    for n_children, first, n_nodes in zip(levels, tiles.firsts[1:], levels[1:]):
        starts, children = np.arange(0, n_children, FAN), owner[first - n_children : first]
        lowest, highest = (f.reduceat(children, starts) for f in (np.minimum, np.maximum))
        owner[first : first + n_nodes] = common(lowest, highest)


def common(lowest: NDArray[np.int32], highest: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the owner that all have in common, whose least and largest numbers are these."""
    return np.where(lowest == highest, lowest, np.int32(MIXED))


@subroutine(**LEAN)
def children(level, node, firsts):
    """Return the range of the nodes below a node."""
    start = firsts[level - 1] + (node - firsts[level]) * FAN
    return start, minimum(start + FAN, firsts[level])


@subroutine(inline="always")
def pass_down(owner, node, start, stop):
    """Give the children of an owned node, `start` to `stop`, their owner."""
    if owner[node] != MIXED:
        for child in upto(start, stop):
            owner[child] = owner[node]


@subroutine(inline="always")
def take_up(owner, level, node, firsts):
    """Give a node the owner that its children have in common."""
    start, stop = children(level, node, firsts)
    common = owner[start]
    for child in upto(start + 1, stop):
        common = common if owner[child] == common else MIXED
    owner[node] = common


@subroutine(inline="always")
def assign_tile(tile, n, fresh, owner, tile_labels):
    """Give the rows of a tile their fresh labels, and the tile its owner.

    Returns a bit for each row that changed its label, up to the n-th row; `fresh` then holds the
    old labels.
    """
    first = tile * TILE
    if owner[tile] != MIXED:
        for p in upto(TILE):
            tile_labels[first + p] = owner[tile]
    changed = differing(tile_labels.ctypes.data + 4 * first, fresh.ctypes.data)
    if changed != 0:
        lowest = highest = fresh[0]
        for p in upto(TILE):
            lowest, highest = minimum(lowest, fresh[p]), maximum(highest, fresh[p])
            tile_labels[first + p], fresh[p] = fresh[p], tile_labels[first + p]
        owner[tile] = lowest if lowest == highest else MIXED
        if n - first < TILE:
            changed &= (np.uint64(1) << np.uint64(n - first)) - np.uint64(1)
    return changed


@subroutine(inline="always")
def list_updates(changed, tile, x, weights, old, tile_labels, scratch, count):
    """Append the changed rows of a tile to the list in `scratch`; return its length.

    `old`, IN, are the labels that its rows had.
    """
    _, _, rows, row_weights, olds, news = scratch
    while changed != 0:
        p = lowest_bit(changed)
        changed &= changed - np.uint64(1)
        for f in upto(x.shape[1]):
            rows[count, f] = x[tile, f, p]
        if len(weights):
            row_weights[count] = weights[tile * TILE + p]
        olds[count] = old[p]
        news[count] = tile_labels[tile * TILE + p]
        count += 1
    return count


@subroutine(**LEAN)
def take(level, node, new, firsts, n, owner, node_sums, totals, touched, last):
    """Give all rows of an owned node to another cluster; return how many."""
    old = owner[node]
    owner[node] = new
    if not last:
        # What joins its first cluster leaves none.
        leaves = old >= 0
        old = old if leaves else new
        for limb in upto(node_sums.shape[1]):
            for f in upto(node_sums.shape[2]):
                value = node_sums[node, limb, f]
                totals[limb, new, f] += value
                totals[limb, old, f] -= value if leaves else 0
        touched[new] = touched[old] = True
    rows = TILE << (LOG_FAN * level)
    return minimum(rows, n - (node - firsts[level]) * rows)


def scratch_for(
    centers: NDArray[np.float64], dtype: np.dtype, n_levels: int, weighted: bool
) -> tuple[Any, ...]:
    """Return the scratch of :func:`search`.

    It is lists of candidates with their names, for each level and, last, of all centres, and room
    for distances to them; and rows that change, with their weights and their old and new clusters,
    which are moved many at a time.
    """
    (k, d), room = centers.shape, BATCH + TILE
    pitch = k + WIDTH
    lists, names = np.empty((n_levels + 2, d, pitch)), np.empty((n_levels + 1, pitch), np.int32)
    lists[n_levels, :, :k], names[n_levels, :k] = centers.T, np.arange(k)
    return (
        lists, names, np.empty((room, d), dtype), np.empty(room if weighted else 0),
        np.empty(room, np.int32), np.empty(room, np.int32),
    )  # fmt: skip


@kernel(**LEAN)
def search(
    axes, k, start, stop, firsts, boxes, x, weights, node_sums, n, owner, tile_labels, every, grid,
    totals, touched, last, scratch,
):  # fmt: skip
    """Assign the rows of the roots `start` to `stop`.

    Parameters
    ----------
    axes : tuple of d numbers
        See :mod:`simd.candidates`.
    k : int
        Centres.
    firsts, boxes, x, weights, node_sums : IN
        Those of :class:`lloydia.backends.cpu.accelerated.tiles.Tiles`.
    n : int
        Rows.
    owner, tile_labels : IN/OUT
        Those of :class:`lloydia.algorithms.filtering.Filtering`.
    every : EVERY
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
    lists, names, rows, row_weights, old, new_labels = scratch
    top, d, pitch = len(firsts) - 1, x.shape[1], lists.shape[2]
    # Of each level: how many candidates there are, and the present node.
    counts, at, fresh = local(np.int64, LEVELS), local(np.int64, LEVELS), local(np.int32, TILE)
    counts[top + 1] = k
    # Bytes of a row, of a list, and of its names.  Addresses, because views would count references.
    side, list_size, name_size = d * x.itemsize, d * pitch * 8, pitch * 4
    # Not literals, for whose types functions would be compiled again.
    none = n_listed = changed = evaluated = np.int64(0)
    level = np.int64(top)
    at[top] = firsts[top] + start
    while at[top] < firsts[top] + stop:
        node, before = at[level], counts[level + 1]
        # Kanungo et al. 2002 rule out a centre if no point of the box is nearer to it than to z.
        left = prune_candidates(
            axes, x[0, 0, 0], boxes.ctypes.data + node * side,
            boxes.ctypes.data + boxes.strides[0] + node * side,
            lists.ctypes.data + (level + 1) * list_size, pitch * 8,
            names.ctypes.data + (level + 1) * name_size, before,
            lists.ctypes.data + (top + 2) * list_size,
            lists.ctypes.data + level * list_size, names.ctypes.data + level * name_size,
        )  # fmt: skip
        evaluated += before
        counts[level] = left
        own, new = owner[node], names[level, 0]
        owned = left == 1 and own != MIXED
        if level > 0 and not owned:
            first, after = children(level, node, firsts)
            pass_down(owner, node, first, after)
            level -= 1
            at[level] = first
            continue
        if not owned:
            nearest(
                axes, x[0, 0, 0], x.ctypes.data + node * TILE * side, lists.ctypes.data,
                pitch * 8, names.ctypes.data, left, fresh.ctypes.data,
            )  # fmt: skip
            evaluated += left * TILE
            new = fresh[TILE // 2]
        # In the first assignment all rows of a tile join one cluster, then others leave it.
        joins = not owned and own == -1 and not last
        if joins or (owned and own != new):
            changed += take(level, node, new, firsts, n, owner, node_sums, totals, touched, last)
        if not owned:
            moved = assign_tile(node, n, fresh, owner, tile_labels)
            if moved != 0 and not last:
                listed = n_listed
                n_listed = list_updates(
                    moved, node, x, weights, fresh, tile_labels, scratch, n_listed
                )
                changed -= n_listed - listed if joins else 0
        if n_listed >= BATCH:
            changed += accumulate(
                rows, every, none, n_listed, row_weights, grid, new_labels, old, totals, touched
            )
            n_listed = none
        at[level] += 1
        while level < top and at[level] == children(level + 1, at[level + 1], firsts)[1]:
            level += 1
            take_up(owner, level, at[level], firsts)
            at[level] += 1
    changed += accumulate(
        rows, every, none, n_listed, row_weights, grid, new_labels, old, totals, touched
    )
    return changed, evaluated
