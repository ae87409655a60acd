"""A barrier for all programs (CTAs) of a launch, which must all be resident."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from lloydia.backends.cuda.runtime.launching import COMPILED, INTERPRETED

__all__ = ["THREADS", "leave", "resident", "wait_for_all"]

# Threads of a program.
THREADS = 128


# Thread 0 counts its program and waits until all are counted.  Waiting programs poll with plain
# loads, because atomics would queue behind those of arriving programs.  The last load acquires: the
# program then sees everything that the others wrote before they arrived.
COUNT_AND_WAIT = tl.constexpr(
    """{
    .reg .pred p;
    .reg .b32 number;
    mov.u32 number, %tid.x;
    setp.ne.u32 p, number, 0;
    @p bra DONE;
    red.release.gpu.global.add.s32 [$1], 1;
    WAIT:
    ld.relaxed.gpu.global.b32 number, [$1];
    setp.lt.s32 p, number, $2;
    @p bra WAIT;
    ld.acquire.gpu.global.b32 number, [$1];
    DONE:
    mov.b32 $0, 0;
    }"""
)


@triton.jit
def wait_for_all(arrivals, n_programs):
    """Wait until every program has arrived here; a launch does so once."""
    tl.debug_barrier()
    if n_programs > 1:
        if COMPILED:
            tl.inline_asm_elementwise(
                COUNT_AND_WAIT, "=r,l,r", [arrivals, n_programs],
                dtype=tl.int32, is_pure=False, pack=1,
            )  # fmt: skip
        else:
            tl.atomic_add(arrivals, 1, sem="release")
            while tl.atomic_add(arrivals, 0, sem="acquire") < n_programs:
                pass
        tl.debug_barrier()


@triton.jit
def leave(arrivals, n_programs):
    """Let the last program that leaves reset the barrier for the next launch.

    Return whether this program is the last; it then sees everything that the others wrote.
    `arrivals` has two int32 counters: the first is for :func:`wait_for_all`, the second for this.
    """
    tl.debug_barrier()
    last = tl.atomic_add(arrivals + 1, 1, sem="acq_rel") == n_programs - 1
    if last:
        tl.store(arrivals, 0)
        tl.store(arrivals + 1, 0)
    return last


def resident(programs: int) -> dict[str, Any]:
    """Return launch options that let this many programs be resident on each multiprocessor."""
    registers = 65536 // (THREADS * programs) // 8 * 8
    return {} if INTERPRETED else {"launch_cooperative_grid": True, "maxnreg": registers}
