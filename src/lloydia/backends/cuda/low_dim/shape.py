"""What a run over rows of few features needs, by its shape: fits of one shape work it out once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch

from lloydia.backends.cuda.device_functions.iteration_report import HEAD
from lloydia.backends.cuda.device_functions.ptx.warp_lists import BLOCK, LISTS
from lloydia.backends.cuda.device_functions.run_state import SIZE
from lloydia.backends.cuda.low_dim.center_table import table_size
from lloydia.backends.cuda.low_dim.table_sums import TABLE_ROWS, WORDS, copies_of
from lloydia.backends.cuda.low_dim.update import LISTS_PER_PROGRAM
from lloydia.backends.cuda.rows.fixed_point_grid import replicas
from lloydia.backends.cuda.rows.low_cost import COST
from lloydia.backends.cuda.runtime.arena import VECTOR, Offsets, aligned, offsets_of_parts
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
        Lists of rows, and entries of each: see :mod:`device_functions.ptx.warp_lists`.
    updaters : int
        Programs that move rows from sum to sum.
    copies : int
        Of a program's table of sums: see :mod:`table_sums`; 0: there is none.
    n_replicas : int
        Of the sums.
    n_slots : int
        Iterations whose centres and reports are kept.
    offsets : Offsets
        Of the parts of :class:`lloydia.backends.cuda.low_dim.memory.LowMemory`.
    """

    programs: int
    n_lists: int
    room: int
    updaters: int
    copies: int
    n_replicas: int
    n_slots: int
    offsets: Offsets

    @property
    def message_bytes(self) -> int:
        """The first bytes of the arena: what the host reads in one copy."""
        return self.offsets[0]["all_sums"][0]

    @property
    def n_zeros(self) -> int:
        """The first numbers of 64 bits of the arena: those that begin with 0."""
        begin, size, _ = self.offsets[0]["all_sums"]
        return (begin + size) // 8


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
    updaters = max(updaters, ceil_div(n_lists, LISTS_PER_PROGRAM))
    copies = copies_of(n, d, k, bits, itemsize == 8) if tables else 0
    n_replicas = min(replicas(n, k), TABLE_REPLICAS if copies else MEMORY_REPLICAS)
    offsets = offsets_of(
        (n_slots, k, d), n_replicas * n_limbs, n_lists, room, itemsize, copies > 0 and INTERPRETED
    )
    return LowShape(programs, n_lists, room, updaters, copies, n_replicas, n_slots, offsets)


def offsets_of(
    history: tuple[int, int, int],
    n_sums: int,
    n_lists: int,
    room: int,
    itemsize: int,
    interpreted: bool,
) -> Offsets:
    """Return the offsets of all parts of the memory.

    Parameters
    ----------
    history : tuple of int
        n_slots, k and d.
    n_sums : int
        Sums of a column of a cluster: limbs, times replicas.
    n_lists, room, itemsize : int
        See :class:`LowShape` and :func:`shape_of`.
    interpreted : bool
        Whether there is memory for the table of sums: compiled, it is in shared memory.
    """
    n_slots, k, d = history
    int64, int32, m = torch.int64, torch.int32, d + 1
    first, end = offsets_of_parts(
        alignment=VECTOR,
        numbers=(int64, (5 * m,)), bounds=(int64, (2 * d + 1,)), cost=(int64, (COST,)),
        seen=(int32, (k,)), run_state=(int32, (SIZE,)), arrivals=(int32, (2,)),
        no_limit=(torch.float64, (1,)), report=(int64, (n_slots, HEAD.value + k)),
        variance=(int64, (room_for(d, LIMBS),)), all_sums=(int64, (n_sums * k * m,)),
    )  # fmt: skip
    listed = int32, (n_lists * room,)
    rest, end = offsets_of_parts(
        aligned(end),
        changed_rows=listed, changed_old=listed, changed_new=listed, ambiguous_rows=listed,
        n_changed=(int32, (n_lists,)), n_ambiguous=(int32, (n_lists,)),
        table=(torch.float32, (table_size(k, d),)),
        interpreter_table=(int32, (WORDS if interpreted else 0,)),
        history=(torch.float64 if itemsize == 8 else torch.float32, history),
    )  # fmt: skip
    return first | rest, end
