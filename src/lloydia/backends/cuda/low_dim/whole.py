"""The first launch of a run over few rows of few features, if no limit is asked for.

One program holds all rows (:mod:`alone`): it measures them, iterates, and ends the run, and
waits for no other between these.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.low_dim.grid import measure_kernel
from lloydia.backends.cuda.low_dim.kernel import low_kernel
from lloydia.backends.cuda.rows.low_cost import end_kernel

__all__ = ["whole_kernel"]

LANES = tl.constexpr(THREADS)


@triton.jit(
    do_not_specialize=[
        "n", "k", "n_zeros", "most_limbs", "bits", "most", "n_slots", "settles", "n_iterations",
        "assigns", "n_told",
    ]
)  # fmt: skip
def whole_kernel(
    X, n, k, desk, zeros, n_zeros, bounds, numbers, most_limbs, bits, start, most, labels, sums,
    current, history, n_slots, report, run_state, settles, table, arrivals,
    n_iterations, assigns, cost, seen, told, n_told, host,
    d: tl.constexpr, EACH: tl.constexpr, COLUMNS: tl.constexpr,
    CENTERS: tl.constexpr, GROUP: tl.constexpr, KEPT: tl.constexpr, REPLICAS: tl.constexpr,
    BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Do what the three kernels do; the parameters are theirs."""
    measure_kernel(
        X, n, desk, zeros, n_zeros, bounds, bits, numbers, most_limbs, run_state, start, current, k,
        most, d, EACH * LANES,
    )  # fmt: skip
    # What all threads have written is there.
    tl.debug_barrier()
    low_kernel(
        X, n, k, None, numbers, bounds, labels, sums, 0, bits, current, history, n_slots, report,
        run_state, settles, None, None, None, 0, table, None, 0, arrivals, n_iterations,
        assigns, None, None,
        d, False, False, EACH, COLUMNS, CENTERS, GROUP, KEPT, REPLICAS, BLOCK_K, 0, 0, 0, False,
        True,
    )  # fmt: skip
    tl.debug_barrier()
    end_kernel(
        X, n, k, labels, current, None, cost, bits, seen, report, n_slots, run_state, arrivals,
        assigns, told, n_told, host, d,
    )  # fmt: skip
