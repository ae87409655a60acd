"""What a run over rows of few features needs, by its shape: fits of one shape work it out once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import torch

from lloydia.backends.cuda.device_functions.iteration_report import HEAD
from lloydia.backends.cuda.device_functions.run_state import SIZE
from lloydia.backends.cuda.low_dim.center_table import table_size
from lloydia.backends.cuda.low_dim.row_lists import BLOCK, LISTS
from lloydia.backends.cuda.low_dim.table_sums import TABLE_ROWS, WORDS, copies_of
from lloydia.backends.cuda.low_dim.update import LISTS_TOGETHER
from lloydia.backends.cuda.rows.fixed_point_grid import replicas
from lloydia.backends.cuda.rows.low_cost import COST
from lloydia.backends.cuda.runtime.arena import aligned
from lloydia.backends.cuda.runtime.launching import INTERPRETED, ceil_div, processors
from lloydia.backends.cuda.update.mean_variance import room_for

__all__ = ["LIMBS", "LowShape", "shape_of"]

# Programs that assign rows, for each multiprocessor: as many as it holds; or, of many rows, several
# times as many, if each has so many blocks: those that a multiprocessor prefers end early, and
# others begin then.
RESIDENT, MAX_RESIDENT, MANY_BLOCKS = 4, 8, 8
# Programs that move rows, for each multiprocessor: as many as it holds.
UPDATERS = 2
# Limbs that there is room for where the grid is not known yet.
LIMBS = 3
# Integers of 64 bits that hold the run state, what programs wait for each other by, and a limit.
STATE = SIZE // 2 + 2
# Replicas of sums that programs add their tables to, and the most that rows are added to.
TABLE_REPLICAS, MEMORY_REPLICAS = 4, 64


@dataclass(frozen=True, eq=False)
class LowShape:
    """Sizes; there is one object for each shape, known by its identity.

    Attributes
    ----------
    programs : int
        That assign rows.
    n_lists, room : int
        Lists of rows, and entries of each: see :mod:`row_lists`.
    updaters : int
        Programs that move rows from sum to sum.
    copies : int
        Of a program's table of sums: see :mod:`table_sums`; 0: there is none.
    n_replicas : int
        Of the sums.
    edges : tuple of int
        Where what is read back begins, part by part, and where the sums do, in int64.
    n_zeros : int
        Numbers that begin with zeros.
    places : tuple of int
        Where the lists of rows that changed, of their old and new labels and of ambiguous rows, the
        lengths of the lists, the table of centres, the interpreter's table of sums and the centres
        of iterations begin, in bytes, beyond the zeros, and where they end.
    """

    programs: int
    n_lists: int
    room: int
    updaters: int
    copies: int
    n_replicas: int
    edges: tuple[int, ...]
    n_zeros: int
    places: tuple[int, ...]


@lru_cache(maxsize=256)
def shape_of(
    n: int, d: int, k: int, n_slots: int, n_limbs: int, bits: int, itemsize: int, tables: bool,
    device: torch.device,
) -> LowShape:  # fmt: skip
    """Return what a run needs; `itemsize` is that of the centres, `tables` whether there may be."""
    blocks = ceil_div(n, BLOCK)
    least, most = (count * processors(device) for count in (RESIDENT, MAX_RESIDENT))
    programs = 1 if INTERPRETED else min(blocks, most, max(least, blocks // MANY_BLOCKS))
    n_lists, room = LISTS * programs, ceil_div(blocks, programs) * (BLOCK // LISTS)
    # Those beyond the lists have work in the first iteration, when all rows are moved.
    updaters = min(UPDATERS * processors(device), ceil_div(n, TABLE_ROWS))
    updaters = max(updaters, ceil_div(n_lists, LISTS_TOGETHER))
    copies = copies_of(n, d, k, bits, itemsize == 8) if tables else 0
    n_replicas = min(replicas(n, k), TABLE_REPLICAS if copies else MEMORY_REPLICAS)
    read_back = (
        5 * (d + 1), 2 * d + 1, COST, ceil_div(k, 2), STATE, n_slots * (HEAD.value + k),
        room_for(d, LIMBS),
    )  # fmt: skip
    # Every part begins where a vector may.
    edges = 0, *accumulate(size + size % 2 for size in read_back)
    listed = 4 * n_lists * room
    # Compiled, programs have shared memory.
    own = 4 * WORDS if copies and INTERPRETED else 0
    parts = (
        listed, listed, listed, listed, 8 * n_lists, 4 * table_size(k, d), own,
        n_slots * k * d * itemsize,
    )  # fmt: skip
    n_zeros = edges[-1] + n_replicas * n_limbs * k * (d + 1)
    first, *rest = map(aligned, (8 * n_zeros, *parts))
    return LowShape(
        programs, n_lists, room, updaters, copies, n_replicas,
        edges, n_zeros, (*accumulate(rest, initial=first),),
    )  # fmt: skip
