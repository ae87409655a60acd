"""Programs that wait for each other: all of a launch are resident."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from lloydia.backends.cuda.runtime.launching import INTERPRETED

__all__ = ["THREADS", "leave", "resident", "wait_for_all"]

# Threads of a program.
THREADS = 128


# One thread counts its program, and waits until so many were counted.  It looks on by loads (atomic
# operations would stand in line with those of the programs that come) that leave the cache to the
# programs that work beside it; the last one has this program see what the others have written.
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
def wait_for_all(arrivals, n_programs, n_passed):
    """Wait until every program has come here; `n_passed` is how often they have before."""
    tl.debug_barrier()
    if n_programs > 1:
        tl.inline_asm_elementwise(
            COUNT_AND_WAIT, "=r,l,r", [arrivals, n_programs * (n_passed + 1)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
        tl.debug_barrier()


@triton.jit
def leave(arrivals, n_programs):
    """Have the last program to leave make the barrier ready for the next launch.

    Return whether this is the last: what all have written, it sees.  Of the two int32 of `arrivals`
    :func:`wait_for_all` counts in the first, and this in the second.
    """
    tl.debug_barrier()
    last = tl.atomic_add(arrivals + 1, 1, sem="acq_rel") == n_programs - 1
    if last:
        tl.store(arrivals, 0)
        tl.store(arrivals + 1, 0)
    return last


def resident(programs: int) -> dict[str, Any]:
    """Return the launch options with which a multiprocessor holds so many programs."""
    registers = 65536 // (THREADS * programs) // 8 * 8
    return {} if INTERPRETED else {"launch_cooperative_grid": True, "maxnreg": registers}
