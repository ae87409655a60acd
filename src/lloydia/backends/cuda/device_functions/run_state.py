"""The state of a run: a few integers on the device that its kernels share.

The host queues the kernels of an iteration before it has read anything of the iterations before.
What these kernels pass to each other is in one int32 tensor, ``run_state``.

A batch is iterated as one data set: its items follow each other in every tensor, each has a run
state, and they are the third axis of every grid.  A single data set is a batch of size 1.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait
from triton.language.target_info import cuda_capability_geq

from lloydia.backends.cuda.runtime.launching import COMPILED

__all__ = [
    "ASSIGNED",
    "ITERATION",
    "N_ACTIVE",
    "N_AMBIGUOUS",
    "N_CHANGED",
    "N_EMPTY",
    "N_NINE",
    "N_PRUNED",
    "N_RECHECKED",
    "N_UNRESOLVED",
    "SIZE",
    "STOPPED",
    "SUM_SQUARED_MOVES",
    "TICKETS",
    "first_row",
    "item_state",
    "programs_each",
    "wait_for_previous_kernel",
]

# Not 0: the run has stopped; the kernels of an iteration return at once and change nothing.
STOPPED = tl.constexpr(0)
# STOPPED where centres moved so little that the run is over, and rows were assigned to them.
ASSIGNED = tl.constexpr(2)
# Completed iterations.
ITERATION = tl.constexpr(1)
# Of this iteration: rows that changed, ambiguous rows, unresolved rows, rechecked rows.
N_CHANGED = tl.constexpr(2)
N_AMBIGUOUS = tl.constexpr(3)
N_UNRESOLVED = tl.constexpr(4)
N_RECHECKED = tl.constexpr(5)
# Of this iteration: clusters of weight 0, and programs that have computed their centres.
N_EMPTY = tl.constexpr(6)
TICKETS = tl.constexpr(7)
# Ambiguous rows that have a record of nine candidates (:mod:`matmul.candidates`).
N_NINE = tl.constexpr(8)
# Active rows, which bounds leave to be scored, and pruned rows (:mod:`matmul.pruning.run`).
N_ACTIVE = tl.constexpr(9)
N_PRUNED = tl.constexpr(10)
# The sum of the squared movements of centres, added in any order: a float64.
SUM_SQUARED_MOVES = tl.constexpr(12)
SIZE = 16
PITCH = tl.constexpr(SIZE)


@triton.jit
def wait_for_previous_kernel():
    """Wait until the kernel launched before this one has ended; then let the next one start.

    Kernels with this call may be launched early, while the kernel before them still runs
    (:mod:`runtime.launch_configs`); kernels without it are launched in order.  Every program makes
    the call before it reads or writes global memory, and in no branch.  The previous kernel has
    itself waited for the one before it.
    """
    if COMPILED and cuda_capability_geq(9, 0):
        gdc_wait()
        # The next launch may start now: its programs wait until all programs of this one have
        # ended.
        gdc_launch_dependents()


@triton.jit
def item_state(run_state):
    """Return the run state of this program's batch item; a pointer into it moves the same way."""
    return run_state + tl.program_id(2) * PITCH


@triton.jit
def first_row(n):
    """Return how many rows precede those of this program's item; each item has n rows."""
    return tl.program_id(2).to(tl.int64) * n


def programs_each(programs: int, batch_size: int) -> int:
    """Return the number of programs for each item of a grid that fills the device.

    Several items get twice an even share, because some of them stop before others.
    """
    return programs if batch_size == 1 else max(1, -(-2 * programs // batch_size))
