"""What a run over rows of few features needs, by its shape: fits of one shape work it out once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import torch

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.device_functions.iteration_report import HEAD
from lloydia.backends.cuda.device_functions.run_state import SIZE
from lloydia.backends.cuda.low_dim.cells import cell_type
from lloydia.backends.cuda.low_dim.lists import entry_size
from lloydia.backends.cuda.low_dim.scores import group_of, kept_of
from lloydia.backends.cuda.low_dim.stored import LISTED
from lloydia.backends.cuda.low_dim.sums import BESIDE, WORDS, is_summed, table_of
from lloydia.backends.cuda.rows.fixed_point_grid import replicas
from lloydia.backends.cuda.rows.low_cost import COST
from lloydia.backends.cuda.runtime.arena import aligned
from lloydia.backends.cuda.runtime.launching import (
    INTERPRETED,
    ceil_div,
    next_power,
    processors,
    shared_memory,
)
from lloydia.backends.cuda.update.mean_variance import room_for

__all__ = ["LIMBS", "LowShape", "shape_of"]

# Programs that a multiprocessor holds: of rows that look up cells, more wait for memory.
PROGRAMS, CELL_PROGRAMS = 2, 3
# Rows that a program looks at together, and the products of clusters and columns whose means it
# computes together.
LEAST_ROWS, ROWS, MEANS = 128, 512, 256
# Limbs that there is room for where the grid is not known yet.
LIMBS = 3
# Integers of 64 bits that hold the run state, and what programs wait for each other and count by.
RUN_STATE = SIZE // 2 + 2 + 9
# Replicas of sums that programs add to seldom: what their tables hold.
FEW_REPLICAS = 64


@dataclass(frozen=True, eq=False)
class LowShape:
    """Sizes; there is one object for each shape, known by its identity.

    Attributes
    ----------
    each : int
        Programs that a multiprocessor holds.
    block : int
        Rows that a program looks at together.
    alone : bool
        Whether these are all, and one program keeps them (:mod:`alone`).
    programs, room : int
        Programs, and the rows of each: of its lists, but for those of :mod:`lists`.
    own : tuple of three int
        The table of a program's own sums: see :func:`lloydia.backends.cuda.low_dim.sums.table_of`.
    summed : bool
        Whether rows are added up as :mod:`summed` does; else as :mod:`moves`.
    n_replicas : int
        Of the sums.
    sides : int
        Cells along each feature; 0: there are none.
    columns, group, kept : int
        Of the table of centres: its pitch, how many are compared together, how many stay in
        registers.
    tile : int
        Clusters whose means a program computes together.
    edges : tuple of int
        Where what is told begins, part by part, and where the sums do, in int64.
    n_zeros : int
        Numbers that begin with zeros.
    places : tuple of int
        Where the lists, the table, the cells, the interpreter's own sums, the centres of iterations
        and the stored rows begin, in bytes, beyond the zeros, and where they end.
    """

    each: int
    block: int
    alone: bool
    programs: int
    room: int
    own: tuple[int, int, int]
    summed: bool
    n_replicas: int
    sides: int
    columns: int
    group: int
    kept: int
    tile: int
    edges: tuple[int, ...]
    n_zeros: int
    places: tuple[int, ...]


@lru_cache(maxsize=256)
def shape_of(
    n: int, d: int, k: int, n_slots: int, n_limbs: int, bits: int, weighted: bool, sides: int,
    itemsize: int, stay: bool, device: torch.device,
) -> LowShape:  # fmt: skip
    """Return what a run needs; `itemsize` is that of the centres; `stay` is whether rows do."""
    each = CELL_PROGRAMS if sides else PROGRAMS
    block, programs, room = _cut(n, device, each)
    if sides and k > room:
        sides, each = 0, PROGRAMS
        block, programs, room = _cut(n, device, each)
    # Rows that come and go may be fewer than a block, which low_summed has no place for; low_moves
    # has no table of them either.  And all programs of a multiprocessor share its memory.
    fits = stay and each * (4 * WORDS + BESIDE) <= shared_memory(device)
    table = table_of(n, d, k, bits, itemsize) if fits and not weighted else (0, 0, 0)
    has_table = table[-1] > 0
    summed = has_table and is_summed(d, k)
    n_replicas = FEW_REPLICAS if summed else replicas(n, k)
    if has_table:
        n_replicas = min(n_replicas, FEW_REPLICAS)
    columns = next_power(d + 1)
    tile = min(max(1, MEANS // (columns * n_replicas)), next_power(k))
    told = (
        5 * (d + 1), 2 * d + 1, COST, ceil_div(k, 2), RUN_STATE, n_slots * (HEAD.value + k),
        room_for(d, LIMBS),
    )  # fmt: skip
    # Every part begins where a vector may.
    edges = 0, *accumulate(size + size % 2 for size in told)
    cells = cell_type(k).itemsize * sides**d if sides else 0
    # Compiled, programs have shared memory.
    own = 4 * WORDS if has_table and INTERPRETED else 0
    # Scores take but what float32 keeps of float64 rows: those are read once.
    stores = summed and itemsize == 8
    stored = 4 * d * ceil_div(n, block) * block if stores else 0
    listed, doubts, history = 8 * programs * room, 4 * programs * room, n_slots * k * d * itemsize
    if summed:
        # Rows that are stored are listed by their numbers.
        size = 4 * entry_size(1, 4) if stores else itemsize * entry_size(d, itemsize)
        listed = programs * min(room, LISTED.value * THREADS) * size
        # Blocks of threads that have rows in doubt, and these rows.
        doubts += doubts // (block // THREADS)
    parts = listed, doubts, 4 * (k + 7) * columns, cells, own, history, stored
    n_zeros = edges[-1] + n_replicas * n_limbs * k * (d + 1)
    first, *rest = map(aligned, (8 * n_zeros, *parts))
    alone = n <= block and not sides and not has_table
    return LowShape(
        each, block, alone, programs, room, table, summed, n_replicas, sides, columns,
        group_of(k), kept_of(k, d), tile, edges, n_zeros, (*accumulate(rest, initial=first),),
    )  # fmt: skip


def _cut(n: int, device: torch.device, each: int) -> tuple[int, int, int]:
    """Return how many rows a program looks at together, how many programs, and their room."""
    most = each * processors(device)
    # One program, which waits for nobody, if it can look at all rows together.
    share = n if n <= ROWS else ceil_div(n, most)
    block = min(max(next_power(share), LEAST_ROWS), ROWS)
    blocks = ceil_div(n, block)
    programs = 1 if INTERPRETED else min(most, blocks)
    return block, programs, ceil_div(blocks, programs) * block
