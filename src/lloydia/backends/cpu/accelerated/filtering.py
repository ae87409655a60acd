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

# The changed rows are added to the sums in batches of so many.
BATCH = 512

# One more than the largest possible number of levels.
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
    found = owners.repeat(TILE)[start % TILE :][: stop - start]
    np.copyto(found, b.tile_labels[start:stop], where=found == MIXED)
    labels[tiles.order[start:stop]] = found


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
    """Return the common owner of rows with this smallest and largest label, or MIXED."""
    return np.where(lowest == highest, lowest, np.int32(MIXED))


@subroutine(**LEAN)
def children(level, node, firsts):
    """Return the range of the nodes below a node."""
    start = firsts[level - 1] + (node - firsts[level]) * FAN
    return start, minimum(start + FAN, firsts[level])


@subroutine(inline="always")
def pass_down(owner, node, start, stop):
    """Set the owner of the children `start` to `stop` of an owned node."""
    if owner[node] != MIXED:
        for child in upto(start, stop):
            owner[child] = owner[node]


@subroutine(inline="always")
def pass_up(owner, level, node, firsts):
    """Set the owner of a node to the one that its children have in common, or to MIXED."""
    start, stop = children(level, node, firsts)
    common = owner[start]
    for child in upto(start + 1, stop):
        common = common if owner[child] == common else MIXED
    owner[node] = common


@subroutine(inline="always")
def assign_tile(tile, n, fresh, owner, tile_labels):
    """Set the labels of the rows of a tile to the fresh ones, and the owner of the tile.

    Returns a bit for each of the first `n` rows whose label changed; `fresh` then holds the old
    labels.
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
def move_node(level, node, new, firsts, n, owner, node_sums, totals, touched, last):
    """Move all rows of an owned node to another cluster; return their number."""
    old = owner[node]
    owner[node] = new
    if not last:
        # Rows that join their first cluster leave no other.
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

    It has lists of candidates with their numbers, one for each level and then one of all centres;
    room for distances to candidates; and a batch of changed rows, with their weights and their old
    and new clusters.
    """
    (k, d), room = centers.shape, BATCH + TILE
    pitch = k + WIDTH
    lists, numbers = np.empty((n_levels + 2, d, pitch)), np.empty((n_levels + 1, pitch), np.int32)
    lists[n_levels, :, :k], numbers[n_levels, :k] = centers.T, np.arange(k)
    return (
        lists, numbers, np.empty((room, d), dtype), np.empty(room if weighted else 0),
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
        The list of rows for :func:`~lloydia.backends.cpu.update.sums.accumulate`.
    grid : IN; totals, touched : IN/OUT
        The grid, the sums and the flags of :func:`lloydia.backends.cpu.update.sums.accumulate`.
    last : bool
        Whether this is the last assignment, which leaves the sums as they are.
    scratch : tuple
        From :func:`scratch_for`.

    Returns
    -------
    changed, evaluated : int
    """
    lists, numbers, rows, row_weights, old, new_labels = scratch
    top, d, pitch = len(firsts) - 1, x.shape[1], lists.shape[2]
    # For each level: the number of candidates, and the current node.
    counts, at, fresh = local(np.int64, LEVELS), local(np.int64, LEVELS), local(np.int32, TILE)
    counts[top + 1] = k
    # Bytes of a row, of a list, and of its numbers.  The code uses addresses, because views would
    # count references.
    row_size, list_size, numbers_size = d * x.itemsize, d * pitch * 8, pitch * 4
    # Typed zeros: functions would be compiled again for the types of literals.
    zero = n_listed = changed = evaluated = np.int64(0)
    level = np.int64(top)
    at[top] = firsts[top] + start
    while at[top] < firsts[top] + stop:
        node, before = at[level], counts[level + 1]
        # Kanungo et al. 2002 rule out a centre if no point of the box is nearer to it than to z.
        left = prune_candidates(
            axes, x[0, 0, 0], boxes.ctypes.data + node * row_size,
            boxes.ctypes.data + boxes.strides[0] + node * row_size,
            lists.ctypes.data + (level + 1) * list_size, pitch * 8,
            numbers.ctypes.data + (level + 1) * numbers_size, before,
            lists.ctypes.data + (top + 2) * list_size,
            lists.ctypes.data + level * list_size, numbers.ctypes.data + level * numbers_size,
        )  # fmt: skip
        evaluated += before
        counts[level] = left
        node_owner, new = owner[node], numbers[level, 0]
        owned = left == 1 and node_owner != MIXED
        if level > 0 and not owned:
            first, after = children(level, node, firsts)
            pass_down(owner, node, first, after)
            level -= 1
            at[level] = first
            continue
        if not owned:
            nearest(
                axes, x[0, 0, 0], x.ctypes.data + node * TILE * row_size, lists.ctypes.data,
                pitch * 8, numbers.ctypes.data, left, fresh.ctypes.data,
            )  # fmt: skip
            evaluated += left * TILE
            new = fresh[TILE // 2]
        # In the first assignment all rows of a tile join one cluster; then some rows leave it.
        joins = not owned and node_owner == -1 and not last
        if joins or (owned and node_owner != new):
            changed += move_node(
                level, node, new, firsts, n, owner, node_sums, totals, touched, last
            )
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
                rows, every, zero, n_listed, row_weights, grid, new_labels, old, totals, touched
            )
            n_listed = zero
        at[level] += 1
        while level < top and at[level] == children(level + 1, at[level + 1], firsts)[1]:
            level += 1
            pass_up(owner, level, at[level], firsts)
            at[level] += 1
    changed += accumulate(
        rows, every, zero, n_listed, row_weights, grid, new_labels, old, totals, touched
    )
    return changed, evaluated
